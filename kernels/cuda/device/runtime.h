/* runtime.h - the device of a back end: its stream, checks of calls, waits, launches. Other parts
 * of the device (alloc, transfer, graph, event, gemm) have their own headers.
 *
 * Every device error except lack of memory ends the process with exit code 70, because no result of
 * the device can be trusted afterwards. CHECK prints file and line. Source: CUDA Runtime API, error
 * types: after a sticky error every call fails until the process ends. */
#pragma once

#include PLATFORM

#include "kernels/cuda/device/watchdog.h"
#include "kernels/ops.h"

/* A delayed sum y[n] += product[n] of bf16 values. If the next operation is the norm of y, the
 * kernel of the norm computes the sum too (layer/rows.cu), which saves a kernel. All other work
 * comes behind the sum, because device_stream() first puts the sum into the stream. */
struct later {
    void (*add)(const struct backend *backend, void *y, const void *product,
                size_t n); /* NULL: none */
    void *y;
    const void *product;
    size_t n;
};

struct segments; /* kernels/cuda/device/segments.h */
struct device {
    int major, minor;               /* compute capability */
    int sms;                        /* multiprocessors */
    size_t shared_max;              /* bytes: largest dynamic shared memory that a block can opt
                                     * into */
    size_t cache;                   /* bytes of the L2 cache */
    cudaStream_t stream;            /* everything runs on this stream, in order; use
                                     * device_stream() */
    struct later later;
    int overlap;                    /* 1: a kernel may start before the kernel ahead has ended */
    int in_turn;                    /* 1: the next kernel may not start early, because earlier work
                                     * has written weights, which a kernel reads before it waits */
    struct watchdog *watch;         /* NULL: no watchdog */
    struct segments *segments;
    struct graphs *graphs;          /* graph.cu */
    struct events *events;          /* event.cu */
    struct staging *staging;        /* transfer.cu */
    struct products *gemm;          /* gemm.cu */
    unsigned *arrived;              /* counters in device memory, at least one for each
                                     * multiprocessor: attention.cu, few.cu; NULL: none */
    unsigned wide;                  /* blocks of a cluster of wide.cu; 0: wide.cu does not run on
                                     * this device */
};

static inline struct device *device_of(const struct backend *backend)
{
    return (struct device *)backend->device;
}

/* Puts the delayed sum (struct later) into the stream, if there is one. */
static inline void device_settle(const struct backend *backend)
{
    const struct later later = device_of(backend)->later;
    device_of(backend)->later.add = nullptr;
    if (later.add)
        later.add(backend, later.y, later.product, later.n);
}

/* The stream, for work that may read or write any memory. */
static inline cudaStream_t device_stream(const struct backend *backend)
{
    device_settle(backend);
    return device_of(backend)->stream;
}

/* Ends the process if a call failed: exit 70, with file, line, call and the driver's message. */
void runtime_check(cudaError_t status, const char *call, const char *file, int line);
#define CHECK(call) runtime_check(call, #call, __FILE__, __LINE__)
/* runtime_check(), except that lack of memory does not end the process. Returns 1: done; 0: not
 * enough memory. */
int runtime_check_memory(cudaError_t status, const char *call, const char *file, int line);
#define CHECK_MEMORY(call) runtime_check_memory(call, #call, __FILE__, __LINE__)

/* While this object lives, the host waits for the device and the watchdog counts seconds
 * (watchdog.h). */
struct waiting {
    struct watchdog *watch;
    const char *before;

    waiting(const struct device *device, const char *what)
        : watch(device->watch), before(watchdog_wait(watch, what))
    {
    }
    ~waiting()
    {
        watchdog_wait(watch, before);
    }
    waiting(const waiting &) = delete;
    waiting &operator=(const waiting &) = delete;
};

/* runtime_wait() waits until all work of the device is done, runtime_wait_event() until all work
 * before the event is done. what: name of the wait, for the watchdog. */
void runtime_wait(const struct backend *backend, const char *what);
void runtime_wait_event(const struct backend *backend, cudaEvent_t event, const char *what);

/* The number of blocks for n items if a block has `each` items. */
static inline unsigned blocks_of(size_t n, size_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* kernel<<<grid, block, shared>>>(args...) on the device's stream, in clusters of `cluster` blocks.
 * Opts into more than 48 KB of shared memory. part: SHARED_PART, or SHARED_ALL for kernels that
 * need several blocks with much shared memory on an SM. Waits if the device's queue is full. */
template <class... P, class... A>
void launch_clusters(const struct backend *backend, int part, unsigned cluster,
                     void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... args)
{
    struct device *device = device_of(backend);
    cudaStream_t stream = device_stream(backend);
    waiting here(device, "launch");
    bool overlap = device->overlap && !device->in_turn;
    CHECK(start_kernel(kernel, grid, block, shared, stream, overlap, part, cluster, args...));
    device->in_turn = 0;
}

template <class... P, class... A>
void launch_in(const struct backend *backend, int part, void (*kernel)(P...), dim3 grid, dim3 block,
               size_t shared, A... args)
{
    launch_clusters(backend, part, 1, kernel, grid, block, shared, args...);
}

template <class... P, class... A>
void launch(const struct backend *backend, void (*kernel)(P...), dim3 grid, dim3 block,
            size_t shared, A... args)
{
    launch_in(backend, SHARED_PART, kernel, grid, block, shared, args...);
}
