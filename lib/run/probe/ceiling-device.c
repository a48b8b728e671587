/* ceiling-device.c - the largest rates of a device: the fastest of several large copies, and of
 * several large products for each unit.
 *
 * Sizes grow until one call takes long enough, or memory ends, so small devices are measured too.
 * All values are random. Calls are timed by events of the device; several are enqueued before the
 * first result is read, so that the speed of enqueuing is not measured. */
#include <math.h>
#include <stdlib.h>

#include "lib/run/probe/ceiling.h"
#include "lib/run/probe/random_values.h"
#include "lib/network/network.h"
#include "lib/checkpoint/synth.h"

enum { COPY_LEAST = 1 << 20, SIDE_LEAST = 256, SIDE_MOST = 8192, CALLS = 32, CALLS_LEAST = 3 };
static const size_t copy_most = (size_t)2 << 30;
static const double moment_s = 0.005, most_s = 0.3;

/* Seconds of the fastest of n calls in sequence. */
static double time_quickest(struct backend *b, void (*call)(const void *ctx), const void *ctx,
                            size_t n)
{
    int64_t mark[CALLS + 1];
    for (size_t i = 0; i < n; i++) {
        mark[i] = b->ops->event_record(b);
        call(ctx);
    }
    mark[n] = b->ops->event_record(b);
    int64_t before = b->ops->event_wait(b, mark[0]), best = INT64_MAX;
    for (size_t i = 1; i <= n; i++) {
        int64_t now = b->ops->event_wait(b, mark[i]);
        best = now - before < best ? now - before : best;
        before = now;
    }
    return (double)best / 1e9;
}

/* Seconds of one call, after a first call that is not counted; of the fastest of many calls if one
 * takes long enough, or at the `last` size. */
static double time_call(struct backend *b, void (*call)(const void *ctx), const void *ctx, int last)
{
    time_quickest(b, call, ctx, 1);
    double took = time_quickest(b, call, ctx, 1);
    if (took < moment_s && !last)
        return took;
    double fit = fmin(fmax(most_s / fmax(took, 1e-9), CALLS_LEAST), CALLS);
    return fmin(took, time_quickest(b, call, ctx, (size_t)fit));
}

struct copying {
    struct backend *backend;
    void *to, *from;
    size_t bytes;
};

static void call_copy(const void *ctx)
{
    const struct copying *c = ctx;
    c->backend->ops->copy(c->backend, c->to, c->from, c->bytes);
}

/* 0: no memory. */
static double time_copy(const struct random_values *d, size_t bytes)
{
    struct backend *b = d->backend;
    const struct copying c = {b, b->ops->alloc(b, bytes, MEMORY_ACTIVATIONS),
                              random_values_make(d, bytes / 2, DTYPE_BF16,
                                                 MEMORY_ACTIVATIONS), bytes};
    double took = c.to && c.from ? time_call(b, call_copy, &c, bytes == copy_most) : 0;
    b->ops->free(b, c.from);
    b->ops->free(b, c.to);
    return took;
}

static void measure_copy(struct ceilings *c, const struct random_values *d)
{
    double took = 0;
    for (size_t bytes = COPY_LEAST; bytes <= copy_most && took < moment_s; bytes *= 2) {
        took = time_copy(d, bytes);
        if (!(took > 0))
            return;
        c->bytes_per_s = 2 * (double)bytes / took;
    }
}

struct multiplying {
    struct backend *backend;
    struct mat w;
    act *x, *y;
    void *work;
    size_t side;
};

static void call_product(const void *ctx)
{
    const struct multiplying *m = ctx;
    const struct product p = {&m->w, m->y, 0};
    m->backend->ops->matmul(m->backend, &p, 1, (struct input){.x = m->x}, m->side, m->work);
}

/* -1: no memory. */
static int prepare(struct multiplying *m, const struct random_values *d, enum dtype dtype,
                   size_t side)
{
    struct backend *b = d->backend;
    const struct ops *ops = b->ops;
    *m = (struct multiplying){.backend = b, .side = side};
    b->act = ops->act_dtype(dtype);
    m->x = random_values_make(d, side * side, b->act, MEMORY_ACTIVATIONS);
    m->y = ops->alloc(b, side * side * dtype_value_bytes(b->act), MEMORY_ACTIVATIONS);
    m->work = ops->alloc(b, ops->matmul_work(b, side, side, side), MEMORY_ACTIVATIONS);
    return !m->x || !m->y || !m->work || random_values_mat(d, &m->w, side, side, dtype, 0) ? -1 : 0;
}

static void give(struct multiplying *m)
{
    const struct ops *ops = m->backend->ops;
    ops->free(m->backend, m->x);
    ops->free(m->backend, m->y);
    ops->free(m->backend, m->work);
    if (m->w.data)
        ops->mat_free(m->backend, &m->w);
}

static void measure_products(struct ceilings *c, const struct random_values *d, enum unit u,
                             enum dtype dtype)
{
    double took = 0;
    for (size_t side = SIDE_LEAST; side <= SIDE_MOST && took < moment_s; side *= 2) {
        struct multiplying m;
        int bad = prepare(&m, d, dtype, side);
        took = bad ? 0 : time_call(d->backend, call_product, &m, side == SIDE_MOST);
        give(&m);
        if (!(took > 0))
            return;
        c->side[u] = side;
        c->operations_per_s[u] = 2 * (double)side * (double)side * (double)side / took;
    }
}

int ceiling_device(struct ceilings *c, struct backend *b, struct err *e)
{
    static const enum dtype dtypes[UNITS] = {DTYPE_F32, DTYPE_BF16, DTYPE_INT8};
    float *normal = synth_table();
    const struct random_values d = {.backend = b, .normal = normal};
    *c = (struct ceilings){.threads = pool_threads(b->pool)};
    measure_copy(c, &d);
    for (int u = 0; u < UNITS; u++)
        if (!b->ops->refuses(b, dtypes[u], SIDE_LEAST))
            measure_products(c, &d, (enum unit)u, dtypes[u]);
    free(normal);
    if (!(c->bytes_per_s > 0) || !(c->operations_per_s[UNIT_F32] > 0))
        return err_set(e, EXIT_NO_DEVICE, "%s: not enough free memory to measure its ceilings",
                       b->name);
    return 0;
}
