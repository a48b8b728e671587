/* pick.cu - times ways of doing one work (pick.h). The first run of each way is not timed, because
 * the driver loads a kernel when it first runs. One timed run of each way is enough to leave out
 * most ways. The others run in turn, and the shortest time of each way counts, because other work
 * on the machine only makes times longer. */
#include "kernels/cuda/product/pick.h"

#include <math.h>

#include "kernels/cuda/device.cuh"
#include "lib/base/mem.h"

enum { THREADS = 256, BLOCKS_PER_SM = 8, CACHES = 2 };

/* A way and the time of its first timed run. */
struct entry {
    size_t way;
    float ms;
};

/* Reads n words, so that nothing else stays in the L2 cache. To write them instead would leave
 * changed lines, which would be written back during the timed kernel. The words are zeros, so
 * *never is not written; it only keeps the compiler from removing the reads. */
static __global__ void __launch_bounds__(THREADS)
read_all(const uint4 *from, size_t n, uint32_t *never)
{
    let_next_start();
    wait_for_inputs();
    uint32_t any = 0;
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n;
         i += (size_t)gridDim.x * THREADS)
        any |= from[i].x | from[i].y | from[i].z | from[i].w;
    if (any)
        *never = any;
}

size_t pick_bytes(const struct backend *backend)
{
    return CACHES * device_of(backend)->cache;
}

/* The milliseconds of one run of a way; infinity: the way cannot run. */
static float time_once(const struct backend *backend, const struct pick *pick, size_t way,
                       const void *zeros, cudaEvent_t event[2])
{
    const struct device *device = device_of(backend);
    float ms = 0;
    if (zeros)
        launch(backend, read_all, dim3((unsigned)(device->sms * BLOCKS_PER_SM)), dim3(THREADS), 0,
               static_cast<const uint4 *>(zeros), pick_bytes(backend) / sizeof(uint4),
               static_cast<uint32_t *>(const_cast<void *>(zeros)));
    CHECK(cudaEventRecord(event[0], device_stream(backend)));
    if (pick->run(pick->ctx, way))
        return INFINITY;
    CHECK(cudaEventRecord(event[1], device_stream(backend)));
    runtime_wait_event(backend, event[1], "choose");
    CHECK(cudaEventElapsedTime(&ms, event[0], event[1]));
    return ms;
}

/* Times every way once and keeps the fastest ways in `best`, in order of time. Returns their
 * number. */
static size_t first_cut(const struct backend *backend, const struct pick *pick, const void *zeros,
                        cudaEvent_t event[2], struct entry best[PICK_FINALISTS + 1])
{
    size_t kept = 0;
    for (size_t way = 0; way < pick->n; way++) {
        float ms = pick->run(pick->ctx, way) ? INFINITY
                                             : time_once(backend, pick, way, zeros, event);
        if (ms == INFINITY)
            continue;
        size_t at = kept;
        for (; at > 0 && ms < best[at - 1].ms; at--)
            best[at] = best[at - 1];
        best[at] = {way, ms};
        kept += kept < PICK_FINALISTS;
    }
    return kept;
}

size_t pick_fastest(const struct backend *backend, const struct pick *pick, const void *zeros)
{
    struct entry best[PICK_FINALISTS + 1];
    float least[PICK_FINALISTS];
    cudaEvent_t event[2];
    CHECK(cudaEventCreate(&event[0]));
    CHECK(cudaEventCreate(&event[1]));
    size_t n = first_cut(backend, pick, zeros, event, best), winner = 0;
    for (size_t i = 0; i < n * PICK_ROUNDS; i++) {
        float ms = time_once(backend, pick, best[i % n].way, zeros, event);
        least[i % n] = i < n || ms < least[i % n] ? ms : least[i % n];
    }
    for (size_t i = 1; i < n; i++)
        winner = least[i] < least[winner] ? i : winner;
    CHECK(cudaEventDestroy(event[1]));
    CHECK(cudaEventDestroy(event[0]));
    return n ? best[winner].way : pick->n;
}
