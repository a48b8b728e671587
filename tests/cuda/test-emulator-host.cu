/* test-emulator-host.cu - tests the emulated device as the host sees it: memory, streams, graphs,
 * overlapping kernels, and failing calls. */
#include "tests/cuda/emulator-fixture.h"

/* ---- memory ---- */

static __global__ void writes_shared(int i)
{
    SHARED(char, bytes);
    wait_for_inputs();
    bytes[i] = 1;
}
static __global__ void writes(int *y, int i)
{
    wait_for_inputs();
    y[i] = 1;
}

static void test_memory()
{
    if (ADDRESSES_CHECKED)
        ok(dies([] { run(writes_shared, dim3(1), dim3(1), 13, 13); }, "heap-buffer-overflow"),
           "a byte behind shared memory");
    else
        skip("AddressSanitizer is needed to see one byte behind shared memory");
    ok(dies([] {
           array<int> y(5);
           run(writes, dim3(1), dim3(1), 0, y.p, 5);
       },
            ADDRESSES_CHECKED ? "use-after-poison" : "has written behind the 20 bytes"),
       "a value behind an array");
    ok(dies([] {
           array<int> y(128);
           run(writes, dim3(1), dim3(1), 0, y.p, 128);
       },
            ""),
       "a value behind an array that fills its block");
    ok(dies([] {
           int here;
           run(writes, dim3(1), dim3(1), 0, &here, 0);
       },
            "no memory of the device"),
       "a kernel gets memory of the host");
    ok(dies([] {
           array<int> y(1);
           *y.p = 1;
       },
            ""),
       "the host follows a pointer of the device");
    array<int> y(3);
    int all = 1;
    for (int v : y.values())
        all &= v == -1;
    ok(all, "fresh memory is full of NaN");
    void *p;
    setenv("EMULATE_MEMORY", "1e6", 1);
    ok(cudaMalloc(&p, 2000000) == cudaErrorMemoryAllocation && !p && cudaMalloc(&p, 900000) == 0 &&
           cudaFree(p) == 0 && cudaFree(&all) == cudaErrorInvalidValue,
       "an allocation beyond the memory is refused");
    unsetenv("EMULATE_MEMORY");
}

/* ---- streams, events, graphs ---- */

static __global__ void add(int *y, int by)
{
    wait_for_inputs();
    y[threadIdx.x] += by;
}

static void test_streams()
{
    cudaStream_t s;
    cudaEvent_t e;
    int *pinned, pageable = 1;
    array<int> y(1);
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaEventCreate(&e);
    cudaMallocHost(&pinned, sizeof *pinned);
    *pinned = 5;
    cudaMemcpyAsync(y.p, &pageable, sizeof pageable, cudaMemcpyHostToDevice, s);
    pageable = 100;
    start_kernel(add, dim3(1), dim3(1), 0, s, false, SHARED_PART, 1u, y.p, 1);
    ok(y.values()[0] == -1, "nothing runs before it is waited for");
    cudaEventRecord(e, s);
    start_kernel(add, dim3(1), dim3(1), 0, s, false, SHARED_PART, 1u, y.p, 10);
    cudaEventSynchronize(e);
    ok(y.values()[0] == 2, "an event waits for what is ahead; pageable memory is read at once");
    cudaMemcpyAsync(pinned, y.p, sizeof(int), cudaMemcpyDeviceToHost, s);
    int before = *pinned;
    cudaStreamSynchronize(s);
    ok(before == 5 && *pinned == 12, "pinned memory is written when the stream comes to it");
    cudaMemcpyAsync(y.p, pinned, sizeof(int), cudaMemcpyHostToDevice, s);
    *pinned = 40;
    int asked = 0;
    while (cudaStreamQuery(s) == cudaErrorNotReady)
        asked++;
    ok(y.values()[0] == 40 && asked == 1, "pinned memory is read when the stream comes to it");
    cudaEvent_t later;
    float ms = -1;
    cudaEventCreate(&later);
    cudaEventRecord(later, s);
    ok(cudaEventElapsedTime(&ms, e, later) == cudaErrorNotReady &&
           cudaEventSynchronize(later) == 0 && !cudaEventElapsedTime(&ms, e, later) && ms >= 0,
       "events tell the time");
    cudaEventDestroy(e);
    cudaEventDestroy(later);
    cudaFreeHost(pinned);
    cudaStreamDestroy(s);
}

/* A second stream joins a capture by an event, and the capture must have waited for it at the
 * end. */
static void test_two_streams(cudaStream_t s)
{
    cudaStream_t other;
    cudaEvent_t begun, done;
    cudaGraph_t graph;
    array<int> y(std::vector<int>{0});
    cudaStreamCreate(&other);
    cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    for (int waits = 0; waits < 2; waits++) {
        cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
        cudaEventRecord(begun, s);
        cudaStreamWaitEvent(other, begun, 0);
        start_kernel(add, dim3(1), dim3(1), 0, other, false, SHARED_PART, 1u, y.p, 1);
        cudaEventRecord(done, other);
        if (waits)
            cudaStreamWaitEvent(s, done, 0);
        ok(cudaStreamEndCapture(s, &graph) ==
               (waits ? cudaSuccess : cudaErrorStreamCaptureUnjoined),
           "a graph %s for the work of another stream", waits ? "waits" : "does not wait");
    }
    cudaGraphDestroy(graph);
    start_kernel(add, dim3(1), dim3(1), 0, s, false, SHARED_PART, 1u, y.p, 5);
    cudaEventRecord(begun, s);
    cudaStreamWaitEvent(other, begun, 0);
    start_kernel(add, dim3(1), dim3(1), 0, other, false, SHARED_PART, 1u, y.p, 2);
    cudaStreamSynchronize(other);
    ok(y.values()[0] == 7, "a stream waits for another one");
    cudaEventDestroy(begun);
    cudaEventDestroy(done);
    cudaStreamDestroy(other);
}

static void test_graphs()
{
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    array<int> y(std::vector<int>{0, 0});
    cudaStreamCreate(&s);
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    start_kernel(add, dim3(1), dim3(2), 0, s, false, SHARED_PART, 1u, y.p, 1);
    start_kernel(add, dim3(1), dim3(1), 0, s, false, SHARED_PART, 1u, y.p, 10);
    cudaStreamEndCapture(s, &graph);
    cudaStreamSynchronize(s);
    int before = y.values()[0];
    cudaGraphInstantiateWithFlags(&replay, graph, 0);
    cudaGraphDestroy(graph);
    for (int i = 0; i < 3; i++)
        cudaGraphLaunch(replay, s);
    cudaStreamSynchronize(s);
    ok(before == 0 && y.values()[0] == 33 && y.values()[1] == 3, "a graph is recorded, replayed");
    cudaGraphExecDestroy(replay);
    test_two_streams(s);
    void *p;
    cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
    ok(cudaMalloc(&p, 1) == cudaErrorStreamCaptureUnsupported &&
           cudaStreamEndCapture(s, &graph) == cudaErrorStreamCaptureInvalidated,
       "a call that no graph can hold spoils the record");
    cudaStreamDestroy(s);
}

/* ---- kernels that overlap the kernel before them ---- */

static __global__ void slow_add(int *y, const int *x)
{
    let_next_start();
    wait_for_inputs();
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[0] + 1;
}
/* y[i] = the sum of x[n]. If hasty, it reads x before it waits for the kernel before it. */
static __global__ void sum_of(int *y, const int *x, int n, int hasty)
{
    let_next_start();
    int sum = 0;
    if (!hasty)
        wait_for_inputs();
    for (int i = 0; i < n; i++)
        sum += x[i];
    if (hasty)
        wait_for_inputs();
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/* Counts wrong results of a chain of three overlapping kernels, over SEEDS seeds. */
static int wrong_chains(int hasty, bool overlap)
{
    int wrong = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        set_seed(seed);
        array<int> x(std::vector<int>{1}), y(64), z(64);
        start_kernel(slow_add, dim3(2), dim3(32), 0, nullptr, overlap, SHARED_PART, 1u, y.p, x.p);
        start_kernel(sum_of, dim3(1), dim3(32), 0, nullptr, overlap, SHARED_PART, 1u,
                     z.p, y.p, 64, hasty);
        start_kernel(sum_of, dim3(2), dim3(32), 0, nullptr, overlap, SHARED_PART, 1u,
                     y.p, z.p, 32, hasty);
        for (int value : y.values())
            if (value != 128 * 32) {
                wrong++;
                break;
            }
    }
    set_seed(1);
    return wrong;
}

static void test_overlap()
{
    ok(!wrong_chains(0, true) && !wrong_chains(1, false), "kernels that overlap, and wait");
    if (THREADS_WATCHED)
        ok(dies([] { wrong_chains(1, true); }, "data race"), "one reads before it waits: a race");
    else
        ok(wrong_chains(1, true) == SEEDS, "one that reads before it waits is wrong every time");
}

/* ---- calls that fail, devices ---- */

static void fails_once()
{
    void *p;
    int n;
    setenv("EMULATE_FAIL", "2:2", 1);
    _exit(cudaGetDeviceCount(&n) == cudaSuccess && cudaMalloc(&p, 1) == cudaErrorMemoryAllocation &&
          cudaGetLastError() == cudaErrorMemoryAllocation && cudaGetLastError() == cudaSuccess &&
          cudaMalloc(&p, 1) == cudaSuccess);
}

static void fails_for_good()
{
    void *p;
    int n;
    setenv("EMULATE_FAIL", "1:700", 1);
    _exit(cudaGetDeviceCount(&n) == cudaErrorIllegalAddress &&
          cudaMalloc(&p, 1) == cudaErrorIllegalAddress &&
          cudaGetLastError() == cudaErrorIllegalAddress &&
          cudaGetLastError() == cudaErrorIllegalAddress);
}

/* This test runs first, because the processes that it starts count their calls from here. */
static void test_failures()
{
    ok(dies(fails_once, ""), "a call fails when it is told to");
    ok(dies(fails_for_good, ""), "after some errors nothing works");
    int n, major, minor;
    struct cudaDeviceProp p;
    setenv("EMULATE_DEVICES", "0", 1);
    cudaError_t none = cudaGetDeviceCount(&n);
    setenv("EMULATE_DEVICES", "2", 1);
    setenv("EMULATE_CAPABILITY", "8.6", 1);
    cudaGetDeviceCount(&n);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 1);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 1);
    cudaGetDeviceProperties(&p, 1);
    ok(none == cudaErrorNoDevice && n == 2 && major == 8 && minor == 6 &&
           p.sharedMemPerBlockOptin == 101376 && strstr(p.name, "emulated") &&
           cudaSetDevice(2) == cudaErrorInvalidDevice &&
           !strcmp(cudaGetErrorName(none), "cudaErrorNoDevice"),
       "as many devices as asked for");
    unsetenv("EMULATE_DEVICES");
    unsetenv("EMULATE_CAPABILITY");
    cudaGetLastError();
    run(writes_shared, dim3(1), dim3(2000), 0, 0);
    cudaError_t too_many = cudaGetLastError();
    run(writes_shared, dim3(1), dim3(1), 300000, 0);
    ok(too_many == cudaErrorInvalidConfiguration && cudaGetLastError() == cudaErrorInvalidValue,
       "a launch beyond the limits of a device is refused");
}

int main(void)
{
    test_failures();
    test_memory();
    test_streams();
    test_graphs();
    test_overlap();
    return tap_done();
}
