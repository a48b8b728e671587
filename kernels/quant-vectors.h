/* quant-vectors.h - lets a compiler turn the loops of quant-NAME.c into vectors. The Makefile
 * defines EACH_LEVEL if the compiler can compile a function once for each of several levels of a
 * processor. The program then uses the highest level that its processor has. Results are the same
 * at each level. */
#pragma once

#include <math.h>
#include <stddef.h>

#ifndef EACH_LEVEL
#define EACH_LEVEL
#endif
/* PART marks a function that EACH_LEVEL functions call: it is inlined, so it is compiled for each
 * level too. */
#define PART static inline __attribute__((always_inline))

/* Merges lanes N to 2 N - 1 into lanes 0 to N - 1. */
#define HALVE(top, sum, N)                                      \
    for (size_t j = 0; j < (N); j++) {                          \
        top[j] = top[j + (N)] > top[j] ? top[j + (N)] : top[j]; \
        sum[j] += sum[j + (N)];                                 \
    }

/* The largest |x|; NaN if one of x[n] is not finite. Inlined, because the loops over a block are
 * short, and the compiler then knows their length. */
PART float largest_of(const float *x, size_t n)
{
    /* Lanes let the compiler make vectors. `top` ignores NaN. `sum` is NaN exactly if a value is
     * NaN. */
    enum { LANES = 32 };
    float top[LANES] = {0}, sum[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            const float size = fabsf(x[i + j]);
            top[j] = size > top[j] ? size : top[j];
            sum[j] += size;
        }
    for (size_t j = 0; i + j < n; j++) {
        const float size = fabsf(x[i + j]);
        top[j] = size > top[j] ? size : top[j];
        sum[j] += size;
    }
    HALVE(top, sum, 16)
    HALVE(top, sum, 8)
    HALVE(top, sum, 4)
    HALVE(top, sum, 2)
    HALVE(top, sum, 1)
    return isnan(sum[0]) || isinf(top[0]) ? NAN : top[0];
}

#undef HALVE
