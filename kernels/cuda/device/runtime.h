/* runtime.h - the device behind a back end: one stream, calls that fail, waits, launches. The parts
 * that work on it (alloc, transfer, graph, event, gemm) have headers of their own.
 *
 * Whatever goes wrong on the device but a want of memory ends the process with exit code 70 (after
 * such an error nothing on the device can be trusted); CHECK says where. Source: CUDA Runtime API,
 * error types: after a sticky error every call fails until the process ends.
 */
#ifndef KERNELS_CUDA_DEVICE_RUNTIME_H
#define KERNELS_CUDA_DEVICE_RUNTIME_H

#include PLATFORM

#include "kernels/cuda/device/watchdog.h"
#include "kernels/ops.h"

struct segments; /* kernels/cuda/device/segments.h */
struct device {
    int major, minor;               /* compute capability */
    int sms;                        /* multiprocessors */
    size_t shared_max;              /* dynamic shared memory of a block at most, by opting in */
    cudaStream_t stream;            /* everything runs here, in order */
    int overlap;                    /* 1: kernels may be brought up before the one ahead is done */
    int in_turn;                    /* 1: the next one may not: kernels have written weights, which
                                     * those to come read before they wait */
    struct watchdog *watch;            /* NULL: nobody watches */
    struct segments *segments;
    struct graphs *graphs;          /* graph.cu */
    struct events *events;          /* event.cu */
    struct staging *staging;        /* transfer.cu */
    struct products *gemm;          /* gemm.cu */
};

static inline struct device *device_of(const struct backend *b)
{
    return (struct device *)b->device;
}

/* Ends the process when a call fails: exit 70, with file, line, call and the driver's words. */
void runtime_check(cudaError_t status, const char *call, const char *file, int line);
#define CHECK(call) runtime_check(call, #call, __FILE__, __LINE__)
/* The same but for a want of memory, which is an answer: 1 done, 0 there is not enough. */
int runtime_check_memory(cudaError_t status, const char *call, const char *file, int line);
#define CHECK_MEMORY(call) runtime_check_memory(call, #call, __FILE__, __LINE__)

/* While one of these lives the host waits for the device, and that is watched (watchdog.h). */
struct waiting {
    struct watchdog *watch;
    const char *before;

    waiting(const struct device *d, const char *what)
        : watch(d->watch), before(watchdog_wait(watch, what))
    {
    }
    ~waiting()
    {
        watchdog_wait(watch, before);
    }
    waiting(const waiting &) = delete;
    waiting &operator=(const waiting &) = delete;
};

/* Wait until all that was given to the device, or all before the event, is done. */
void runtime_wait(const struct backend *b, const char *what);
void runtime_wait_event(const struct backend *b, cudaEvent_t event, const char *what);

/* Blocks that n things take when a block takes `each` of them. */
static inline unsigned blocks_of(size_t n, size_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* kernel<<<grid, block, shared>>>(args...) on the device's stream. More than 48 KB of shared memory
 * is opted into here; part: SHARED_ALL for kernels whose blocks find no room beside each other
 * otherwise. When the device has been given all that it can remember, this waits. */
template <class... P, class... A>
void launch_in(const struct backend *b, int part, void (*kernel)(P...), dim3 grid, dim3 block,
               size_t shared, A... args)
{
    struct device *d = device_of(b);
    waiting here(d, "launch");
    bool overlap = d->overlap && !d->in_turn;
    CHECK(start_kernel(kernel, grid, block, shared, d->stream, overlap, part, args...));
    d->in_turn = 0;
}

template <class... P, class... A>
void launch(const struct backend *b, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
            A... args)
{
    launch_in(b, SHARED_PART, kernel, grid, block, shared, args...);
}

#endif
