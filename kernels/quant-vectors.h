/* quant-vectors.h - what makes the loops of quant-NAME.c vectors. The Makefile defines EACH_LEVEL
 * where the compiler can make a function for several levels of a processor, of which the program
 * takes the highest that the processor has. Results are the same at each level. */
#pragma once

#include <math.h>
#include <stddef.h>

#ifndef EACH_LEVEL
#define EACH_LEVEL
#endif
/* A part of a function of EACH_LEVEL: only what is inlined is compiled for each level. */
#define PART static inline __attribute__((always_inline))

/* The first N lanes take in the N lanes after them. */
#define HALVE(top, sum, N)                                      \
    for (size_t j = 0; j < (N); j++) {                          \
        top[j] = top[j + (N)] > top[j] ? top[j + (N)] : top[j]; \
        sum[j] += sum[j + (N)];                                 \
    }

/* The largest |x|; NaN if one of x[n] is not finite. Inlined, because the loops over a block are
 * short, and the compiler then knows their length. */
PART float largest_of(const float *x, size_t n)
{
    /* Lanes, so that the compiler makes vectors. Comparisons pass over NaN. The sum of magnitudes
     * does not, and nothing else makes it NaN. */
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
