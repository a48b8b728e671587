/* ceiling-device.c - measures the largest rates of a device: the fastest of several large copies,
 * and of several large products for each unit.
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

/* Returns the seconds of the fastest of n calls in sequence. */
static double time_quickest(struct backend *backend, void (*call)(const void *ctx), const void *ctx,
                            size_t n)
{
    int64_t mark[CALLS + 1];
    for (size_t i = 0; i < n; i++) {
        mark[i] = backend->ops->event_record(backend);
        call(ctx);
    }
    mark[n] = backend->ops->event_record(backend);
    int64_t before = backend->ops->event_wait(backend, mark[0]), best = INT64_MAX;
    for (size_t i = 1; i <= n; i++) {
        int64_t now = backend->ops->event_wait(backend, mark[i]);
        best = now - before < best ? now - before : best;
        before = now;
    }
    return (double)best / 1e9;
}

/* Returns the seconds of one call, after a first call that is not counted. If the call takes long
 * enough, or at the `last` size, returns the seconds of the fastest of many calls. */
static double time_call(struct backend *backend, void (*call)(const void *ctx), const void *ctx,
                        int last)
{
    time_quickest(backend, call, ctx, 1);
    double took = time_quickest(backend, call, ctx, 1);
    if (took < moment_s && !last)
        return took;
    double fit = fmin(fmax(most_s / fmax(took, 1e-9), CALLS_LEAST), CALLS);
    return fmin(took, time_quickest(backend, call, ctx, (size_t)fit));
}

struct copying {
    struct backend *backend;
    void *to, *from;
    size_t bytes;
};

static void call_copy(const void *ctx)
{
    const struct copying *copying = ctx;
    copying->backend->ops->copy(copying->backend, copying->to, copying->from, copying->bytes);
}

/* Returns the seconds of a copy; 0: no memory. */
static double time_copy(const struct random_values *values, size_t bytes)
{
    struct backend *backend = values->backend;
    const struct copying copying = {
        backend, backend->ops->alloc(backend, bytes, MEMORY_ACTIVATIONS),
        random_values_make(values, bytes / 2, DTYPE_BF16, MEMORY_ACTIVATIONS), bytes};
    double took = copying.to && copying.from
                      ? time_call(backend, call_copy, &copying, bytes == copy_most)
                      : 0;
    backend->ops->free(backend, copying.from);
    backend->ops->free(backend, copying.to);
    return took;
}

static void measure_copy(struct ceilings *ceilings, const struct random_values *values)
{
    double took = 0;
    for (size_t bytes = COPY_LEAST; bytes <= copy_most && took < moment_s; bytes *= 2) {
        took = time_copy(values, bytes);
        if (!(took > 0))
            return;
        ceilings->bytes_per_s = 2 * (double)bytes / took;
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
    const struct multiplying *multiplying = ctx;
    const struct product product = {&multiplying->w, multiplying->y, 0};
    multiplying->backend->ops->matmul(multiplying->backend, &product, 1,
                                      (struct input){.x = multiplying->x}, multiplying->side,
                                      multiplying->work);
}

/* Allocates matrix, input and output of a product. Returns -1 if there is no memory. */
static int prepare(struct multiplying *multiplying, const struct random_values *values,
                   enum dtype dtype, size_t side)
{
    struct backend *backend = values->backend;
    const struct ops *ops = backend->ops;
    *multiplying = (struct multiplying){.backend = backend, .side = side};
    backend->act = ops->act_dtype(dtype);
    multiplying->x = random_values_make(values, side * side, backend->act, MEMORY_ACTIVATIONS);
    multiplying->y = ops->alloc(backend, side * side * dtype_value_bytes(backend->act),
                                MEMORY_ACTIVATIONS);
    multiplying->work = ops->alloc(backend, ops->matmul_work(backend, side, side, side),
                                   MEMORY_ACTIVATIONS);
    return !multiplying->x || !multiplying->y || !multiplying->work ||
                   random_values_mat(values, &multiplying->w, side, side, dtype, 0)
               ? -1
               : 0;
}

static void give(struct multiplying *multiplying)
{
    const struct ops *ops = multiplying->backend->ops;
    ops->free(multiplying->backend, multiplying->x);
    ops->free(multiplying->backend, multiplying->y);
    ops->free(multiplying->backend, multiplying->work);
    if (multiplying->w.data)
        ops->mat_free(multiplying->backend, &multiplying->w);
}

static void measure_products(struct ceilings *ceilings, const struct random_values *values,
                             enum unit unit, enum dtype dtype)
{
    double took = 0;
    for (size_t side = SIDE_LEAST; side <= SIDE_MOST && took < moment_s; side *= 2) {
        struct multiplying multiplying;
        int bad = prepare(&multiplying, values, dtype, side);
        took = bad ? 0 : time_call(values->backend, call_product, &multiplying, side == SIDE_MOST);
        give(&multiplying);
        if (!(took > 0))
            return;
        ceilings->side[unit] = side;
        ceilings->operations_per_s[unit] = 2 * (double)side * (double)side * (double)side / took;
    }
}

int ceiling_device(struct ceilings *ceilings, struct backend *backend, struct err *e)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_INT8};
    float *normal = synth_table();
    const struct random_values values = {.backend = backend, .normal = normal};
    *ceilings = (struct ceilings){.threads = pool_threads(backend->pool)};
    measure_copy(ceilings, &values);
    for (int unit = 0; unit <= UNIT_INT8; unit++)
        if (!backend->ops->refuses(backend, dtypes[unit], SIDE_LEAST))
            measure_products(ceilings, &values, (enum unit)unit, dtypes[unit]);
    free(normal);
    if (!(ceilings->bytes_per_s > 0) || !(ceilings->operations_per_s[UNIT_F32] > 0))
        return err_set(e, EXIT_NO_DEVICE, "%s: not enough free memory to measure its ceilings",
                       backend->name);
    return 0;
}
