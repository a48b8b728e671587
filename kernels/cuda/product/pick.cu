/* pick.cu - see pick.h. The first run of each way is not timed, because the driver loads a kernel
 * when it first runs. One timed run of each is enough to leave most ways out. The rest run in turn,
 * and the shortest time of each counts: other work on the machine only makes times longer. */
#include "kernels/cuda/product/pick.h"

#include <math.h>

#include "kernels/cuda/device.cuh"
#include "lib/base/mem.h"

enum { THREADS = 256, BLOCKS_PER_SM = 8, CACHES = 2 };

/* A way's place in the order of the first runs. */
struct entry {
    size_t way;
    float ms;
};

/* Reads n words, so that nothing else stays in the second cache. Clearing them instead would leave
 * lines that the timed kernel must first write back. The words are zeros, so nothing is written. */
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

size_t pick_bytes(const struct backend *b)
{
    return CACHES * device_of(b)->cache;
}

/* Milliseconds of one run; infinity: it cannot run. */
static float time_once(const struct backend *b, const struct pick *p, size_t way, const void *zeros,
                       cudaEvent_t event[2])
{
    const struct device *d = device_of(b);
    float ms = 0;
    if (zeros)
        launch(b, read_all, dim3((unsigned)(d->sms * BLOCKS_PER_SM)), dim3(THREADS), 0,
               static_cast<const uint4 *>(zeros), pick_bytes(b) / sizeof(uint4),
               static_cast<uint32_t *>(const_cast<void *>(zeros)));
    CHECK(cudaEventRecord(event[0], device_stream(b)));
    if (p->run(p->ctx, way))
        return INFINITY;
    CHECK(cudaEventRecord(event[1], device_stream(b)));
    runtime_wait_event(b, event[1], "choose");
    CHECK(cudaEventElapsedTime(&ms, event[0], event[1]));
    return ms;
}

/* Runs every way and keeps the fastest in `best`, in order; returns their number. */
static size_t first_cut(const struct backend *b, const struct pick *p, const void *zeros,
                        cudaEvent_t event[2], struct entry best[PICK_FINALISTS + 1])
{
    size_t kept = 0;
    for (size_t way = 0; way < p->n; way++) {
        float ms = p->run(p->ctx, way) ? INFINITY : time_once(b, p, way, zeros, event);
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

size_t pick_fastest(const struct backend *b, const struct pick *p, const void *zeros)
{
    struct entry best[PICK_FINALISTS + 1];
    float least[PICK_FINALISTS];
    cudaEvent_t event[2];
    CHECK(cudaEventCreate(&event[0]));
    CHECK(cudaEventCreate(&event[1]));
    size_t n = first_cut(b, p, zeros, event, best), winner = 0;
    for (size_t i = 0; i < n * PICK_ROUNDS; i++) {
        float ms = time_once(b, p, best[i % n].way, zeros, event);
        least[i % n] = i < n || ms < least[i % n] ? ms : least[i % n];
    }
    for (size_t i = 1; i < n; i++)
        winner = least[i] < least[winner] ? i : winner;
    CHECK(cudaEventDestroy(event[1]));
    CHECK(cudaEventDestroy(event[0]));
    return n ? best[winner].way : p->n;
}
