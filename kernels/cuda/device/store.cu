/* store.cu - the store of offloaded blocks in pinned memory of the host. A second stream copies
 * blocks to the device while kernels run. Events order the two streams: a copy waits for all
 * operations called before it, because they may still read the memory that the copy overwrites;
 * operations that read the block wait for the copy. All of this can be recorded (graph.cu): the
 * second stream becomes part of a record with its first copy, and is no longer part of it when all
 * copies were waited for.
 *
 * Rows are written back to the memory of the host by a kernel, because only the device knows which
 * rows these are. */
#include <assert.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/runtime.h"
#include "lib/base/mem.h"

struct store {
    void **block; /* [blocks] of `bytes` each; allocated one by one, because the system pins small
                   * pieces more easily */
    size_t blocks, bytes;
    cudaStream_t stream;
    cudaEvent_t asked[STORE_DEPTH], there[STORE_DEPTH];
    size_t staged, arrived; /* numbers of copies so far that were begun, and waited for */
};

/* Pins the memory of all blocks. Returns 0 if the system pins no more. */
static int get_blocks(struct store *store, size_t blocks)
{
    store->block = (void **)mem_zero(blocks, sizeof *store->block);
    for (; store->blocks < blocks; store->blocks++)
        if (!CHECK_MEMORY(cudaMallocHost(&store->block[store->blocks], store->bytes)))
            return 0;
    return 1;
}

struct store *cuda_store_open(struct backend *backend, const char *folder, size_t blocks,
                              size_t bytes, struct err *e)
{
    (void)folder;
    struct store *store = (struct store *)mem_zero(1, sizeof *store);
    store->bytes = bytes;
    CHECK(cudaStreamCreateWithFlags(&store->stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < STORE_DEPTH; i++) {
        CHECK(cudaEventCreateWithFlags(&store->asked[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&store->there[i], cudaEventDisableTiming));
    }
    if (get_blocks(store, blocks))
        return store;
    err_set(e, EXIT_FAILED_RECORDS, "cannot pin %zu bytes of host memory for layers: only %zu "
            "could be pinned (see ulimit -l)", blocks * bytes, store->blocks * bytes);
    cuda_store_close(backend, store);
    return NULL;
}

void cuda_store_close(struct backend *backend, struct store *store)
{
    if (!store)
        return;
    runtime_wait(backend, "stage"); /* waits until the staged blocks have arrived */
    graph_drop(backend);
    for (size_t i = 0; i < store->blocks; i++)
        CHECK(cudaFreeHost(store->block[i]));
    for (size_t i = 0; i < STORE_DEPTH; i++) {
        CHECK(cudaEventDestroy(store->asked[i]));
        CHECK(cudaEventDestroy(store->there[i]));
    }
    CHECK(cudaStreamDestroy(store->stream));
    free(store->block);
    free(store);
}

int cuda_store_put(struct backend *backend, struct store *store, size_t block, size_t at,
                   const void *from, size_t bytes, struct err *e)
{
    (void)e;
    assert(at % STORE_GRAIN == 0 && bytes <= store->bytes && at <= store->bytes - bytes);
    cuda_read(backend, (unsigned char *)store->block[block] + at, from, bytes);
    return 0;
}

void cuda_stage(struct backend *backend, struct store *store, size_t block, void *to)
{
    struct device *device = device_of(backend);
    waiting here(device, "stage");
    assert(store->staged - store->arrived < STORE_DEPTH);
    size_t i = store->staged++ % STORE_DEPTH;
    CHECK(cudaEventRecord(store->asked[i], device_stream(backend)));
    CHECK(cudaStreamWaitEvent(store->stream, store->asked[i], 0));
    CHECK(cudaMemcpyAsync(to, store->block[block], store->bytes, cudaMemcpyHostToDevice,
                          store->stream));
    CHECK(cudaEventRecord(store->there[i], store->stream));
}

/* in_turn: the copied data are weights, and a kernel may read weights before it waits for the
 * kernel ahead. */
void cuda_arrive(struct backend *backend, struct store *store)
{
    struct device *device = device_of(backend);
    assert(store->arrived < store->staged);
    CHECK(cudaStreamWaitEvent(device_stream(backend), store->there[store->arrived++ % STORE_DEPTH],
                              0));
    device->in_turn = 1;
}

enum { ROW_THREADS = 128 };

/* Block (t, i) copies row t of array i: `words` words of type W. */
template <class W>
static __global__ void __launch_bounds__(ROW_THREADS)
write_rows(unsigned char *to, const unsigned char *from, struct store_rows rows, size_t words)
{
    let_next_start();
    wait_for_inputs();
    size_t row = rows.slot ? (size_t)rows.slot[blockIdx.x] : blockIdx.x;
    size_t at = row * rows.bytes + (blockIdx.y ? rows.second : 0);
    for (size_t i = threadIdx.x; i < words; i += ROW_THREADS)
        ((W *)(to + at))[i] = ((const W *)(from + at))[i];
}

void cuda_store_rows(struct backend *backend, struct store *store, size_t block, const void *from,
                     const struct store_rows *rows)
{
    struct range here("store_rows");
    unsigned char *to = (unsigned char *)store->block[block];
    dim3 grid((unsigned)rows->T, 2);
    if (!(rows->bytes % sizeof(uint4)))
        launch(backend, write_rows<uint4>, grid, dim3(ROW_THREADS), 0, to,
               (const unsigned char *)from, *rows, rows->bytes / sizeof(uint4));
    else
        launch(backend, write_rows<uint16_t>, grid, dim3(ROW_THREADS), 0, to,
               (const unsigned char *)from, *rows, rows->bytes / sizeof(uint16_t));
}
