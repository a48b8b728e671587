/* store.cu - a store in pinned memory of the host. A stream of its own copies blocks to the device
 * while kernels run. Events order the two streams: a copy waits for the operations called before
 * it, because they may still read the place that it writes; operations that read the block wait for
 * the copy. All of this can be recorded (graph.cu): the copy stream joins a record with its first
 * copy, and has left it when all copies were waited for.
 *
 * A kernel writes rows back to the memory of the host, because only the device knows which rows. */
#include <assert.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/runtime.h"
#include "lib/base/mem.h"

struct store {
    void **block; /* [blocks] of `bytes`, allocated one by one, which the system pins more easily */
    size_t blocks, bytes;
    cudaStream_t stream;
    cudaEvent_t asked[STORE_DEPTH], there[STORE_DEPTH];
    size_t staged, arrived; /* copies so far */
};

/* 0: no more host memory can be pinned. */
static int get_blocks(struct store *s, size_t blocks)
{
    s->block = (void **)mem_zero(blocks, sizeof *s->block);
    for (; s->blocks < blocks; s->blocks++)
        if (!CHECK_MEMORY(cudaMallocHost(&s->block[s->blocks], s->bytes)))
            return 0;
    return 1;
}

struct store *cuda_store_open(struct backend *b, const char *folder, size_t blocks, size_t bytes,
                              struct err *e)
{
    (void)folder;
    struct store *s = (struct store *)mem_zero(1, sizeof *s);
    s->bytes = bytes;
    CHECK(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < STORE_DEPTH; i++) {
        CHECK(cudaEventCreateWithFlags(&s->asked[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&s->there[i], cudaEventDisableTiming));
    }
    if (get_blocks(s, blocks))
        return s;
    err_set(e, EXIT_FAILED_RECORDS, "cannot pin %zu bytes of host memory for layers: only %zu "
            "could be pinned (see ulimit -l)", blocks * bytes, s->blocks * bytes);
    cuda_store_close(b, s);
    return NULL;
}

void cuda_store_close(struct backend *b, struct store *s)
{
    if (!s)
        return;
    runtime_wait(b, "stage"); /* the staged blocks have arrived */
    graph_drop(b);
    for (size_t i = 0; i < s->blocks; i++)
        CHECK(cudaFreeHost(s->block[i]));
    for (size_t i = 0; i < STORE_DEPTH; i++) {
        CHECK(cudaEventDestroy(s->asked[i]));
        CHECK(cudaEventDestroy(s->there[i]));
    }
    CHECK(cudaStreamDestroy(s->stream));
    free(s->block);
    free(s);
}

int cuda_store_put(struct backend *b, struct store *s, size_t block, size_t at, const void *from,
                   size_t bytes, struct err *e)
{
    (void)e;
    assert(at % STORE_GRAIN == 0 && bytes <= s->bytes && at <= s->bytes - bytes);
    cuda_read(b, (unsigned char *)s->block[block] + at, from, bytes);
    return 0;
}

void cuda_stage(struct backend *b, struct store *s, size_t block, void *to)
{
    struct device *d = device_of(b);
    waiting here(d, "stage");
    assert(s->staged - s->arrived < STORE_DEPTH);
    size_t i = s->staged++ % STORE_DEPTH;
    CHECK(cudaEventRecord(s->asked[i], device_stream(b)));
    CHECK(cudaStreamWaitEvent(s->stream, s->asked[i], 0));
    CHECK(cudaMemcpyAsync(to, s->block[block], s->bytes, cudaMemcpyHostToDevice, s->stream));
    CHECK(cudaEventRecord(s->there[i], s->stream));
}

/* The copied data are weights, which a kernel may read before it waits for the kernel ahead. */
void cuda_arrive(struct backend *b, struct store *s)
{
    struct device *d = device_of(b);
    assert(s->arrived < s->staged);
    CHECK(cudaStreamWaitEvent(device_stream(b), s->there[s->arrived++ % STORE_DEPTH], 0));
    d->in_turn = 1;
}

enum { ROW_THREADS = 128 };

/* Block (t, i) owns row t of array i: `words` words of type W. */
template <class W>
static __global__ void __launch_bounds__(ROW_THREADS)
write_rows(unsigned char *to, const unsigned char *from, struct store_rows r, size_t words)
{
    let_next_start();
    wait_for_inputs();
    size_t row = r.slot ? (size_t)r.slot[blockIdx.x] : blockIdx.x;
    size_t at = row * r.bytes + (blockIdx.y ? r.second : 0);
    for (size_t i = threadIdx.x; i < words; i += ROW_THREADS)
        ((W *)(to + at))[i] = ((const W *)(from + at))[i];
}

void cuda_store_rows(struct backend *b, struct store *s, size_t block, const void *from,
                     const struct store_rows *r)
{
    struct range here("store_rows");
    unsigned char *to = (unsigned char *)s->block[block];
    dim3 grid((unsigned)r->T, 2);
    if (!(r->bytes % sizeof(uint4)))
        launch(b, write_rows<uint4>, grid, dim3(ROW_THREADS), 0, to, (const unsigned char *)from,
               *r, r->bytes / sizeof(uint4));
    else
        launch(b, write_rows<uint16_t>, grid, dim3(ROW_THREADS), 0, to,
               (const unsigned char *)from, *r, r->bytes / sizeof(uint16_t));
}
