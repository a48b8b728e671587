/* test-faults.cu - makes every call of the CUDA runtime fail once, on the emulated device. Lack of
 * memory is an ordinary answer; every other failure ends the process with 70 and one line. Each try
 * runs in a separate process (EMULATE_FAIL). */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/product/gemm.h"
#include "lib/base/mem.h"
#include "tests/tap.h"

enum { MIB = 1 << 20, N = 1000, CALLS_MOST = 3000, CALLS_LEAST = 60, WRONG = 99 };

/* Thread i adds 1 to value i. */
static __global__ void count_up(int *value, int n)
{
    wait_for_inputs();
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        value[i]++;
}

struct step {
    struct backend *b;
    int *value;
};

static void run_step(void *ctx)
{
    struct step *s = (struct step *)ctx;
    launch(s->b, count_up, dim3((N + 63) / 64), dim3(64), 0, s->value, (int)N);
}

/* Uses every part of the back end. After lack of memory it tries once more. */
static int use_everything(struct backend *b)
{
    static int start[N], back[N];
    int *mirror = (int *)cuda_mirror(b, sizeof start);
    struct step s = {b, (int *)cuda_alloc(b, sizeof start, MEMORY_ACTIVATIONS)};
    if (!mirror)
        mirror = (int *)cuda_mirror(b, sizeof start);
    if (!s.value)
        s.value = (int *)cuda_alloc(b, sizeof start, MEMORY_ACTIVATIONS);
    void *weights = cuda_alloc(b, 11 * MIB, MEMORY_WEIGHTS);
    struct gemm_job job = {weights, weights, weights, gemm_job::GEMM_F32, 65, 8, 8, 8, 8, 8,
                           0, 0, 0};
    if (weights && gemm_takes(b, &job))
        gemm(b, &job);
    for (int i = 0; i < N; i++)
        start[i] = 3 * i;
    cuda_write(b, s.value, start, sizeof start);
    for (int i = 0; i < 4; i++)
        cuda_run(b, "key", 3, run_step, &s);
    cuda_fetch(b, mirror, s.value, sizeof start);
    cuda_event_wait(b, cuda_event_record(b));
    cuda_read(b, back, s.value, sizeof back);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong |= back[i] != 3 * i + 4 || mirror[i] != back[i];
    cuda_free(b, weights);
    cuda_free(b, s.value);
    cuda_mirror_free(b, mirror);
    cuda_close(b);
    return wrong || b->memory.requested || b->memory.reserved ? WRONG : 0;
}

/* On a device of 64 MiB: a larger request is refused, and cached memory is given back for it. */
static int fill_up(struct backend *b)
{
    void *half = cuda_alloc(b, 40 * MIB, MEMORY_KV), *small = cuda_alloc(b, 100, MEMORY_KV);
    int good = half && small && !cuda_alloc(b, 30 * MIB, MEMORY_KV) &&
               !cuda_alloc(b, 30 * MIB, MEMORY_WEIGHTS);
    cuda_free(b, half);
    half = cuda_alloc(b, 60 * MIB, MEMORY_KV);
    good &= half && b->memory.reserved == 62 * MIB;
    cuda_free(b, half);
    cuda_free(b, small);
    return good ? 0 : WRONG;
}

struct fault_job {
    int device;
    int (*use)(struct backend *b);
};

static int open_and_use(struct fault_job job)
{
    struct backend b = {};
    struct err e = {};
    b.pool = pool_new(1);
    if (crossover_cuda_open(&b, job.device, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return *e.text ? e.code : WRONG;
    }
    return job.use(&b);
}

/* Runs a job in a process in which the n-th call fails with `code`. Returns its exit status; text[]
 * gets its message. */
static int try_job(struct fault_job job, int n, int code, char *text, size_t room)
{
    int pipe_ends[2], status;
    size_t got = 0;
    fflush(stdout);
    if (pipe(pipe_ends))
        exit(WRONG);
    pid_t child = fork();
    if (!child) {
        char fail[32];
        snprintf(fail, sizeof fail, "%d:%d", n, code);
        if (n)
            setenv("EMULATE_FAIL", fail, 1);
        dup2(pipe_ends[1], 2);
        _exit(open_and_use(job));
    }
    close(pipe_ends[1]);
    for (ssize_t r; (r = read(pipe_ends[0], text + got, room - 1 - got)) > 0;)
        got += (size_t)r;
    text[got] = 0;
    close(pipe_ends[0]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return WRONG;
    return WEXITSTATUS(status);
}

static int try_one(int n, int code, char *text, size_t room)
{
    return try_job((struct fault_job){-1, use_everything}, n, code, text, room);
}

static int is_one_line(const char *text)
{
    const char *end = strchr(text, '\n');
    return end && !end[1];
}

static int has_number(const char *text, int code)
{
    char number[16];
    snprintf(number, sizeof number, " (%d): ", code);
    return strstr(text, number) != NULL;
}

/* Returns the number of calls of a run without a failure. A sticky error shows in any of them. */
static int count_calls(void)
{
    char text[2048];
    int reached = 0, beyond = CALLS_MOST;
    while (beyond - reached > 1) {
        int n = (reached + beyond) / 2;
        if (try_one(n, cudaErrorIllegalAddress, text, sizeof text) == EXIT_OK)
            beyond = n;
        else
            reached = n;
    }
    return reached;
}

/* Tests errors other than lack of memory: exit status 70, and a line that names file, call and
 * error, at whichever call they come. Every `stride`-th call is tried. */
static void test_errors(int code, int sticky, int calls, int stride)
{
    char text[2048];
    int good = 1, n = 1;
    for (; good && n <= calls; n += stride) {
        int status = try_one(n, code, text, sizeof text);
        good = status == EXIT_INTERNAL && is_one_line(text) && has_number(text, code) &&
               strstr(text, "kernels/cuda/") && strstr(text, "cuda") &&
               !strstr(text, "a restart may help") == !sticky;
        if (!good)
            printf("# call %d: status %d: %s\n", n, status, text);
    }
    ok(good && calls > CALLS_LEAST, "error %d at call 1, %d ... %d ends with 70", code, 1 + stride,
       n - stride);
}

/* Lack of memory is harmless in calls that request memory, and an error like any other elsewhere. A
 * device that cannot be opened for lack of memory counts as absent. */
static void test_want_of_memory(int calls)
{
    static const char *const asking[] = {"cudaMalloc", "cudaMallocHost", "Instantiate",
                                         "cudaGraphLaunch"};
    char text[2048];
    int good = 1, recovered = 0, absent = 0;
    for (int n = 1; n <= calls && good; n++) {
        int status = try_one(n, cudaErrorMemoryAllocation, text, sizeof text);
        recovered += status == EXIT_OK;
        absent += status == EXIT_NO_DEVICE;
        good = status == EXIT_OK || (is_one_line(text) && (status == EXIT_NO_DEVICE ||
                                                           status == EXIT_INTERNAL));
        for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
            good &= status != EXIT_INTERNAL || !strstr(text, asking[i]);
        if (!good)
            printf("# call %d: status %d: %s\n", n, status, text);
    }
    ok(good && recovered >= 8 && absent >= 2,
       "lack of memory: %d times survived, %d times no device", recovered, absent);
}

/* Tests the entry point on an emulated machine that the environment variable `name` describes. */
static void test_door(const char *name, const char *value, const char *expected)
{
    char text[2048];
    setenv(name, value, 1);
    int status = try_one(0, 0, text, sizeof text);
    unsetenv(name);
    ok(status == EXIT_NO_DEVICE && is_one_line(text) && strstr(text, expected), "%s=%s: 69, %s",
       name, value, expected);
}

/* Tests the entry point with three devices, one of which is chosen. */
static void test_choice(int device, const char *expected)
{
    char text[2048];
    setenv("EMULATE_DEVICES", "3", 1);
    int status = try_job((struct fault_job){device, use_everything}, 0, 0, text, sizeof text);
    unsetenv("EMULATE_DEVICES");
    ok(status == (*expected ? EXIT_NO_DEVICE : EXIT_OK) && strstr(text, expected),
       "device %d of three%s%s", device, *expected ? ": " : "", expected);
}

static void test_small_device(void)
{
    char text[2048];
    setenv("EMULATE_MEMORY", "67108864", 1);
    ok(try_job((struct fault_job){-1, fill_up}, 0, 0, text, sizeof text) == EXIT_OK && !*text,
       "a full device refuses, and works on");
    unsetenv("EMULATE_MEMORY");
}

int main(void)
{
    char text[2048];
    ok(try_one(0, 0, text, sizeof text) == EXIT_OK && !*text, "without a fault nothing fails");
    int calls = count_calls();
    /* This error is not sticky, so a call whose status is not checked shows. */
    test_errors(cudaErrorUnknown, 0, calls, 1);
    test_errors(cudaErrorIllegalAddress, 1, calls, 7);
    test_errors(cudaErrorECCUncorrectable, 1, calls, 7);
    test_errors(cudaErrorLaunchFailure, 1, calls, 7);
    test_want_of_memory(calls);
    test_door("EMULATE_FAIL", "1:35", "update the driver");
    test_door("EMULATE_DRIVER", "0", "no NVIDIA driver is installed");
    test_door("EMULATE_DRIVER", "11040", "the NVIDIA driver is for CUDA 11.4, this build needs");
    test_door("EMULATE_FAIL", "1:100", "no CUDA device");
    test_door("EMULATE_DEVICES", "0", "no CUDA device");
    test_door("EMULATE_CAPABILITY", "7.0", "no code for CUDA device 0, which has compute");
    test_choice(-1, "");
    test_choice(2, "");
    test_choice(3, "there is no CUDA device 3, the last is 2");
    test_small_device();
    return tap_done();
}
