/* data.c - random values in the memory of the measured back end. */
#include "lib/run/probe/random_values.h"
#include "tests/bench/bench.h"

static struct random_values drawn(const struct bench *b)
{
    return (struct random_values){b->backend, b->normal, (uint64_t)b->common.seed};
}

void data_fill(struct bench *b, void *to, size_t n, enum dtype dtype)
{
    const struct random_values d = drawn(b);
    random_values_fill(&d, to, n, dtype);
}

void *data_random(struct bench *b, size_t n, enum dtype dtype, enum memory_kind kind)
{
    const struct random_values d = drawn(b);
    return random_values_make(&d, n, dtype, kind);
}

void *data_sent(struct bench *b, const void *from, size_t bytes)
{
    void *p = b->backend->ops->alloc(b->backend, bytes, MEMORY_ACTIVATIONS);
    if (p)
        b->backend->ops->write(b->backend, p, from, bytes);
    return p;
}

int data_mat(struct bench *b, struct mat *m, size_t rows, size_t cols, enum dtype dtype,
             size_t number)
{
    const struct random_values d = drawn(b);
    return random_values_mat(&d, m, rows, cols, dtype, number);
}
