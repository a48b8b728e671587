/* outputs.h - stores the sums of a product. */
#pragma once

#include "kernels/cpu/level.h"

INLINE vec silu(vec x) { return x / (1.0f + vexp(-x)); }

/* y[n] = sums[n], or y[n] += sums[n] if `add`. */
INLINE void store_row(float *y, const float *sums, size_t n, int add)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        put(y + j, add ? load(y + j) + load(sums + j) : load(sums + j));
    for (; j < n; j++)
        y[j] = add ? y[j] + sums[j] : sums[j];
}
