/* quantized.h - shared parts of the tests of quantized formats: drawn values, lists of formats. */
#pragma once

#include "kernels/quant.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"

static struct rng rng = {.seed = 11};
static const enum dtype bytes[] = {DTYPE_INT8, DTYPE_INT8_VECTOR};

#define EACH(d, list)                                                                           \
    for (const enum dtype *d = (list); d < (list) + sizeof(list) / sizeof *(list); d++)

/* Draws n values from a normal distribution. The caller frees. */
static float *draw(size_t n)
{
    float *x = mem_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
    return x;
}
