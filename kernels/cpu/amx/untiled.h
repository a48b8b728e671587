/* untiled.h - the names of tiled.h for levels without tiles. The functions are never called. */
#pragma once

#include "kernels/cpu/level.h"

enum { TILED = 0, TILED_ROWS = 1, TILED_STEP = 1, TILED_NEAR = 0 };

INLINE void tiled_begin(void) {}
INLINE void tiled_end(void) {}
INLINE void tiled_product(size_t rows, size_t cols, size_t K, float *out, size_t ldo,
                          const uint32_t *a, size_t lda, const uint32_t *m, size_t ldm)
{
    (void)rows, (void)cols, (void)K, (void)out, (void)ldo, (void)a, (void)lda, (void)m, (void)ldm;
}

INLINE void tiled_strips(float *sums, const uint32_t *a, const uint32_t *a_next, const uint32_t *b,
                         size_t words, int more)
{
    (void)sums, (void)a, (void)a_next, (void)b, (void)words, (void)more;
}
