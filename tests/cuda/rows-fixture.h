/* rows-fixture.h - opens a device and the reference side by side, and moves data between them. */
#pragma once

#include "kernels/cuda/cuda.h"
#include "kernels/host.h"
#include "kernels/quant.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

struct fixture {
    struct backend *cuda, *ref;
    struct rng rng;
};

static struct backend *fixture_backend(void)
{
    struct backend *b = (struct backend *)mem_zero(1, sizeof *b);
    b->pool = pool_new(2);
    return b;
}

/* Ends the test when there is no device. */
static struct fixture fixture_open(void)
{
    struct fixture f = {fixture_backend(), fixture_backend(), {7, 0, 0}};
    struct err e = {};
    f.ref->ops = &ops_ref;
    f.ref->act = DTYPE_F32;
    if (crossover_cuda_open(f.cuda, 0, &e)) {
        ok(0, "%s", e.text);
        exit(tap_done());
    }
    return f;
}

static void fixture_close(struct fixture *f)
{
    f->cuda->ops->close(f->cuda); /* also frees the buffers that products keep */
    ok(f->cuda->memory.allocated == 0, "all memory of the device is given back");
    pool_free(f->cuda->pool);
    pool_free(f->ref->pool);
    free(f->cuda);
    free(f->ref);
}

[[maybe_unused]] static float *floats(size_t n)
{
    return (float *)mem_zero(n + 1, sizeof(float));
}

[[maybe_unused]] static float *drawn(struct fixture *f, size_t n)
{
    float *x = floats(n);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&f->rng);
    return x;
}

/* Returns x as activations of this format store it. */
[[maybe_unused]] static float kept(enum dtype act, float x)
{
    return act == DTYPE_BF16 ? bf16_float(bf16_of(x)) : x;
}

[[maybe_unused]] static void keep_all(enum dtype act, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = kept(act, x[i]);
}

/* A copy on the device; the caller frees it. */
[[maybe_unused]] static void *sent(struct fixture *f, const void *p, size_t bytes)
{
    void *to = cuda_alloc(f->cuda, bytes, MEMORY_ACTIVATIONS);
    cuda_write(f->cuda, to, p, bytes);
    return to;
}

/* Sends n floats as values of `dtype` (F32 or BF16) into a new block of the device, *block,
 * `before` bytes from its start. */
[[maybe_unused]] static void *sent_as(struct fixture *f, enum dtype dtype, const float *x, size_t n,
                                      size_t before, void **block)
{
    size_t value = dtype == DTYPE_BF16 ? sizeof(uint16_t) : sizeof(float);
    uint16_t *half = (uint16_t *)mem_zero(n + 1, sizeof *half);
    for (size_t i = 0; i < n; i++)
        half[i] = bf16_of(x[i]);
    *block = cuda_alloc(f->cuda, before + n * value, MEMORY_ACTIVATIONS);
    void *to = (char *)*block + before;
    cuda_write(f->cuda, to, dtype == DTYPE_BF16 ? (const void *)half : x, n * value);
    free(half);
    return to;
}

/* Reads n values of `dtype` from the device, as floats; the caller frees them. */
[[maybe_unused]] static float *got_as(struct fixture *f, enum dtype dtype, const void *from,
                                      size_t n)
{
    float *x = floats(n);
    uint16_t *half = (uint16_t *)mem_zero(n + 1, sizeof *half);
    if (dtype == DTYPE_F32)
        cuda_read(f->cuda, x, from, n * sizeof *x);
    else
        cuda_read(f->cuda, half, from, n * sizeof *half);
    for (size_t i = 0; dtype == DTYPE_BF16 && i < n; i++)
        x[i] = bf16_float(half[i]);
    free(half);
    return x;
}

/* The largest |x - y| / (|y| + least); infinite if only one of both is NaN. */
[[maybe_unused]] static double farthest(const float *x, const float *y, size_t n, double least)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double far = fabs((double)x[i] - y[i]) / (fabs((double)y[i]) + least);
        if (isnan(x[i]) != isnan(y[i]))
            far = INFINITY;
        worst = far > worst ? far : worst;
    }
    return worst;
}
