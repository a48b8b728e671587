/* random_values.c - see random_values.h. A few million values are drawn once on the host and
 * repeated over the array: measurements depend on their spread, not on their number. */
#include "lib/run/probe/random_values.h"

#include <stdlib.h>

#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/network/network.h"
#include "lib/checkpoint/synth.h"

enum { STRETCH = 4 << 20 /* values drawn before they repeat */ };
static const double table_std = 0.02; /* of synth_table */

/* Returns n values in host memory in the format `dtype`; the caller's. */
static void *stretch(const struct random_values *values, size_t n, enum dtype dtype)
{
    const struct draw draw = {values->normal, values->seed, 0, 0};
    float *x = mem_alloc(n * sizeof *x);
    synth_floats(&draw, 0, n, x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(x[i] / table_std);
    if (dtype == DTYPE_F32)
        return x;
    uint16_t *half = mem_alloc(n * sizeof *half);
    for (size_t i = 0; i < n; i++)
        half[i] = bf16_of(x[i]);
    free(x);
    return half;
}

void random_values_fill(const struct random_values *values, void *to, size_t n, enum dtype dtype)
{
    const struct ops *ops = values->backend->ops;
    size_t value = dtype_value_bytes(dtype), done = order_min(n, STRETCH);
    void *first = stretch(values, done, dtype);
    ops->write(values->backend, to, first, done * value);
    free(first);
    for (size_t more; done < n; done += more) {
        more = order_min(done, n - done);
        ops->copy(values->backend, (char *)to + done * value, to, more * value);
    }
}

void *random_values_make(const struct random_values *values, size_t n, enum dtype dtype,
                         enum memory_kind kind)
{
    void *p = values->backend->ops->alloc(values->backend, n * dtype_value_bytes(dtype), kind);
    if (p)
        random_values_fill(values, p, n, dtype);
    return p;
}

static void draw_floats(const struct mat_source *source, size_t first, size_t count, float *out)
{
    synth_floats(source->draw, first * source->cols, count * source->cols, out);
}

int random_values_mat(const struct random_values *values, struct mat *weight, size_t rows,
                      size_t cols, enum dtype dtype, size_t number)
{
    const struct draw draw = {values->normal, values->seed, 1, (uint32_t)number};
    const struct mat_source source = {
        .rows = rows, .cols = cols, .floats = draw_floats, .draw = &draw};
    return values->backend->ops->mat_make(values->backend, weight, &source, dtype);
}
