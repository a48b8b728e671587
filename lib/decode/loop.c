/* loop.c - see loop.h. Passes in flight form a ring; `first` is the oldest of `n`. Each slot of the
 * ring owns host memory for a copy of the states after its pass. The host can therefore read a
 * copy while later passes run. No pass overwrites a copy before the host has read it. */
#include "lib/decode/loop.h"

#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum {
    SLICE_NS = 50 * 1000 * 1000, /* loop_sleep() reads *stop after at most this time */
    AWAKE_NS = 100 * 1000        /* loop_sleep() polls for this last time: sleeps end ~70 us late */
};

struct in_flight {
    void *copy;   /* copy of the states on the host */
    int64_t event; /* signalled when the copy is complete */
};
struct ring {
    struct in_flight *pass;
    size_t depth, first, n;
};

static void ring_free(const struct loop *loop, struct ring *ring)
{
    for (size_t i = 0; i < ring->depth; i++)
        loop->backend->ops->mirror_free(loop->backend, ring->pass[i].copy);
    free(ring->pass);
}

/* Returns -1 if there is no memory. */
static int ring_make(const struct loop *loop, struct ring *ring)
{
    int closely = loop->observer && loop->observer->closely;
    *ring = (struct ring){.depth = closely ? 1 : (size_t)loop->backend->ops->depth};
    ring->pass = mem_zero(ring->depth, sizeof *ring->pass);
    int bad = 0;
    for (size_t i = 0; i < ring->depth; i++) {
        ring->pass[i].copy = loop->backend->ops->mirror(loop->backend, loop->bytes);
        bad |= !ring->pass[i].copy;
    }
    if (bad)
        ring_free(loop, ring);
    return bad ? -1 : 0;
}

static void submit(const struct loop *loop, struct ring *ring)
{
    const struct ops *ops = loop->backend->ops;
    struct in_flight *flight = &ring->pass[(ring->first + ring->n++) % ring->depth];
    loop->enqueue(loop->ctx);
    ops->fetch(loop->backend, flight->copy, loop->state, loop->bytes);
    flight->event = ops->event_record(loop->backend);
}

/* Waits for the oldest pass. Returns the time of its end. */
static int64_t retire(const struct loop *loop, struct ring *ring, const void **copy)
{
    const struct in_flight *flight = &ring->pass[ring->first];
    ring->first = (ring->first + 1) % ring->depth;
    ring->n--;
    *copy = flight->copy;
    return loop->backend->ops->event_wait(loop->backend, flight->event);
}

/* Runs up to `most` passes after one call of describe(). */
static void passes(const struct loop *loop, struct ring *ring, size_t most,
                   struct batch_trace *trace)
{
    int stale = 0;
    do {
        for (; !stale && most && ring->n < ring->depth; most--)
            submit(loop, ring);
        const void *copy;
        int64_t now = retire(loop, ring, &copy) - trace->start_ns;
        stale |= loop->settle(loop->ctx, copy, now);
        if (loop->observer)
            loop->observer->passed(loop->observer->ctx);
        trace->interrupted = loop->stop && *loop->stop;
    } while (!trace->interrupted && (ring->n || (most && !stale)));
}

int loop_run(const struct loop *loop, struct batch_trace *trace)
{
    struct ring ring;
    if (ring_make(loop, &ring))
        return -1;
    const struct ops *ops = loop->backend->ops;
    size_t most = loop->describe(loop->ctx);
    if (most && loop->prepare && ops->prepare) {
        loop->prepare(loop->ctx);
        loop->backend->only_prepared = loop->changing;
    }
    if (most && loop->open)
        most = loop->open(loop->ctx);
    trace->start_cpu_ns = clock_cpu_ns();
    trace->start_ns = ops->event_wait(loop->backend, ops->event_record(loop->backend));
    while (most && !trace->interrupted) {
        passes(loop, &ring, most, trace);
        most = trace->interrupted ? 0 : loop->describe(loop->ctx);
    }
    const void *copy;
    while (ring.n)
        retire(loop, &ring, &copy); /* after an interrupt: waits until no copy is being written */
    loop->backend->only_prepared = 0;
    ring_free(loop, &ring);
    return 0;
}

int loop_sleep(int64_t due_ns, const volatile sig_atomic_t *stop, struct batch_trace *trace)
{
    int64_t left;
    while ((left = trace->start_ns + due_ns - clock_ns()) > 0) {
        if (stop && *stop) {
            trace->interrupted = 1;
            return -1;
        }
        left = left - AWAKE_NS < SLICE_NS ? left - AWAKE_NS : SLICE_NS;
        if (left > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)left}, NULL);
    }
    return 0;
}
