/* device.c - what a device can do at most: the quickest of some large copies, and of some large
 * products for each unit. Products are the back end's own, which leaves large ones to the vendor's
 * library; the int8 one is LLM.int8(), with all that belongs to it.
 *
 * Both grow until one takes a moment, or memory ends: so a small device is measured too. All values
 * are drawn.
 */
#include <math.h>

#include "tests/bench/bench.h"

enum { COPY_LEAST = 1 << 20, SIDE_LEAST = 256, SIDE_MOST = 8192 };
static const size_t copy_most = (size_t)2 << 30;
static const double moment_s = 0.005;

struct copying {
    struct backend *backend;
    void *to, *from;
    size_t bytes;
};

static void call_copy(void *ctx, size_t i)
{
    (void)i;
    const struct copying *c = ctx;
    c->backend->ops->copy(c->backend, c->to, c->from, c->bytes);
}

/* Seconds of one copy of c->bytes; of the quickest of many when that takes a moment, or when more
 * are not asked for. 0: no memory. */
static double time_copy(struct bench *b, struct copying *c)
{
    const struct ops *ops = b->backend->ops;
    double took = 0;
    c->from = data_random(b, c->bytes / 2, DTYPE_BF16, MEMORY_ACTIVATIONS);
    c->to = ops->alloc(b->backend, c->bytes, MEMORY_ACTIVATIONS);
    if (c->from && c->to) {
        took = walk_once_s(b, call_copy, c);
        if (took >= moment_s || c->bytes == copy_most)
            took = fmin(took, walk_s(b, call_copy, c, 1, QUICKEST));
    }
    ops->free(b->backend, c->from);
    ops->free(b->backend, c->to);
    return took;
}

static void measure_copy(struct bench *b)
{
    struct copying c = {.backend = b->backend, .bytes = COPY_LEAST};
    double took = time_copy(b, &c);
    for (; took > 0; took = time_copy(b, &c)) {
        b->roof.bytes_per_s = 2 * (double)c.bytes / took;
        if (took >= moment_s || c.bytes == copy_most)
            return;
        c.bytes *= 2;
    }
}

struct multiplying {
    struct backend *backend;
    struct mat w;
    act *x, *y;
    void *work;
    size_t side;
};

static void call_product(void *ctx, size_t i)
{
    (void)i;
    const struct multiplying *m = ctx;
    const struct product p = {&m->w, m->y, 0};
    m->backend->ops->matmul(m->backend, &p, 1, (struct input){.x = m->x}, m->side, m->work);
}

/* -1: no memory. */
static int prepare(struct bench *b, struct multiplying *m, enum dtype dtype, size_t side)
{
    const struct ops *ops = b->backend->ops;
    *m = (struct multiplying){.backend = b->backend, .side = side};
    b->backend->act = ops->act_dtype(dtype);
    size_t bytes = side * side * value_bytes(b->backend->act);
    m->x = data_random(b, side * side, b->backend->act, MEMORY_ACTIVATIONS);
    m->y = ops->alloc(b->backend, bytes, MEMORY_ACTIVATIONS);
    m->work = ops->alloc(b->backend, ops->matmul_work(b->backend, side, side, side),
                         MEMORY_ACTIVATIONS);
    return !m->x || !m->y || !m->work || data_mat(b, &m->w, side, side, dtype, 0) ? -1 : 0;
}

static void give(struct bench *b, struct multiplying *m)
{
    const struct ops *ops = b->backend->ops;
    ops->free(b->backend, m->x);
    ops->free(b->backend, m->y);
    ops->free(b->backend, m->work);
    if (m->w.data)
        ops->mat_free(b->backend, &m->w);
}

/* As time_copy. */
static double time_product(struct bench *b, enum dtype dtype, size_t side)
{
    struct multiplying m;
    double took = 0;
    if (!prepare(b, &m, dtype, side)) {
        took = walk_once_s(b, call_product, &m);
        if (took >= moment_s || side == SIDE_MOST)
            took = fmin(took, walk_s(b, call_product, &m, 1, QUICKEST));
    }
    give(b, &m);
    return took;
}

static void measure_products(struct bench *b, enum unit u, enum dtype dtype)
{
    double took = 0;
    for (size_t side = SIDE_LEAST; side <= SIDE_MOST && took < moment_s; side *= 2) {
        took = time_product(b, dtype, side);
        if (!(took > 0))
            return;
        b->roof.side[u] = side;
        b->roof.operations_per_s[u] =
            2 * (double)side * (double)side * (double)side / took;
    }
}

int device_measure(struct bench *b, struct err *e)
{
    static const enum dtype dtypes[UNITS] = {DTYPE_F32, DTYPE_BF16, DTYPE_INT8};
    b->roof = (struct ceilings){.threads = pool_threads(b->backend->pool)};
    measure_copy(b);
    for (int u = 0; u < UNITS; u++)
        if (!b->backend->ops->refuses(b->backend, dtypes[u], SIDE_LEAST))
            measure_products(b, (enum unit)u, dtypes[u]);
    if (!(b->roof.bytes_per_s > 0) || !(b->roof.operations_per_s[UNIT_F32] > 0))
        return err_set(e, EXIT_NO_DEVICE, "%s: not enough free memory for its ceilings",
                       b->backend->name);
    return 0;
}
