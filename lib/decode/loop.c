/* loop.c - see loop.h. Passes in flight form a ring; `first` is the oldest of `n`. Each slot of the
 * ring owns host memory for a copy of the states after its pass. A copy is therefore read while
 * later passes run, and is not overwritten before it was read. */
#include "lib/decode/loop.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct in_flight {
    void *copy;   /* copy of the states on the host */
    int64_t event; /* signalled when the copy is complete */
};
struct ring {
    struct in_flight *pass;
    size_t depth, first, n;
};

static void ring_free(const struct loop *l, struct ring *r)
{
    for (size_t i = 0; i < r->depth; i++)
        l->backend->ops->mirror_free(l->backend, r->pass[i].copy);
    free(r->pass);
}

/* -1: no memory. */
static int ring_make(const struct loop *l, struct ring *r)
{
    int closely = l->observer && l->observer->closely;
    *r = (struct ring){.depth = closely ? 1 : (size_t)l->backend->ops->depth};
    r->pass = mem_zero(r->depth, sizeof *r->pass);
    int bad = 0;
    for (size_t i = 0; i < r->depth; i++) {
        r->pass[i].copy = l->backend->ops->mirror(l->backend, l->bytes);
        bad |= !r->pass[i].copy;
    }
    if (bad)
        ring_free(l, r);
    return bad ? -1 : 0;
}

static void submit(const struct loop *l, struct ring *r)
{
    const struct ops *ops = l->backend->ops;
    struct in_flight *f = &r->pass[(r->first + r->n++) % r->depth];
    l->enqueue(l->ctx);
    ops->fetch(l->backend, f->copy, l->state, l->bytes);
    f->event = ops->event_record(l->backend);
}

/* Waits for the oldest pass. Returns the time of its end. */
static int64_t retire(const struct loop *l, struct ring *r, const void **copy)
{
    const struct in_flight *f = &r->pass[r->first];
    r->first = (r->first + 1) % r->depth;
    r->n--;
    *copy = f->copy;
    return l->backend->ops->event_wait(l->backend, f->event);
}

/* Runs up to `most` passes from one description. */
static void passes(const struct loop *l, struct ring *r, size_t most, struct batch_trace *trace)
{
    int stale = 0;
    do {
        for (; !stale && most && r->n < r->depth; most--)
            submit(l, r);
        const void *copy;
        int64_t now = retire(l, r, &copy) - trace->start_ns;
        stale |= l->settle(l->ctx, copy, now);
        if (l->observer)
            l->observer->passed(l->observer->ctx);
        trace->interrupted = l->stop && *l->stop;
    } while (!trace->interrupted && (r->n || (most && !stale)));
}

int loop_run(const struct loop *l, struct batch_trace *trace)
{
    struct ring r;
    if (ring_make(l, &r))
        return -1;
    const struct ops *ops = l->backend->ops;
    size_t most = l->describe(l->ctx);
    if (most && l->prepare && ops->prepare)
        l->prepare(l->ctx);
    trace->start_cpu_ns = clock_cpu_ns();
    trace->start_ns = ops->event_wait(l->backend, ops->event_record(l->backend));
    while (most && !trace->interrupted) {
        passes(l, &r, most, trace);
        most = trace->interrupted ? 0 : l->describe(l->ctx);
    }
    const void *copy;
    while (r.n)
        retire(l, &r, &copy); /* after an interrupt: no copy may still be written */
    ring_free(l, &r);
    return 0;
}
