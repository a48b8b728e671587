/* data.c - drawn values in the memory of a back end. */
#include <stdlib.h>

#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/model/synth.h"
#include "tests/bench/bench.h"

enum { STRETCH = 4 << 20 /* values that are drawn; then they come again */ };
static const double table_std = 0.02; /* of synth_table */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Drawn values with standard deviation 1 in host memory, in their format. */
static void *stretch(const struct bench *b, size_t n, enum dtype dtype)
{
    const struct draw d = {b->normal, (uint64_t)b->common.seed, 0, 0};
    float *x = mem_alloc(n * sizeof *x);
    synth_floats(&d, 0, n, x);
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

void data_fill(struct bench *b, void *to, size_t n, enum dtype dtype)
{
    const struct ops *ops = b->backend->ops;
    size_t value = value_bytes(dtype), done = smaller(n, STRETCH);
    void *drawn = stretch(b, done, dtype);
    ops->write(b->backend, to, drawn, done * value);
    free(drawn);
    for (size_t more; done < n; done += more) {
        more = smaller(done, n - done);
        ops->copy(b->backend, (char *)to + done * value, to, more * value);
    }
}

void *data_random(struct bench *b, size_t n, enum dtype dtype, enum memory_kind kind)
{
    void *p = b->backend->ops->alloc(b->backend, n * value_bytes(dtype), kind);
    if (p)
        data_fill(b, p, n, dtype);
    return p;
}

void *data_sent(struct bench *b, const void *from, size_t bytes)
{
    void *p = b->backend->ops->alloc(b->backend, bytes, MEMORY_ACTIVATIONS);
    if (p)
        b->backend->ops->write(b->backend, p, from, bytes);
    return p;
}

static void draw_floats(const struct mat_source *s, size_t first, size_t count, float *out)
{
    synth_floats(s->draw, first * s->cols, count * s->cols, out);
}

int data_mat(struct bench *b, struct mat *m, size_t rows, size_t cols, enum dtype dtype,
             size_t number)
{
    const struct draw d = {b->normal, (uint64_t)b->common.seed, 1, (uint32_t)number};
    const struct mat_source s = {.rows = rows, .cols = cols, .floats = draw_floats, .draw = &d};
    return b->backend->ops->mat_make(b->backend, m, &s, dtype);
}
