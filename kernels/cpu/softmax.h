/* softmax.h - maximum and softmax of one row, for the head, dense attention and training. */
#pragma once

#include <math.h>

#include "kernels/cpu/level.h"

INLINE float max_of(const float *x, size_t n)
{
    float best = -INFINITY;
    size_t i = 0;
    if (n >= LANES) {
        vec m = load(x);
        for (i = LANES; i + LANES <= n; i += LANES)
            m = vmax(load(x + i), m);
        for (int j = 0; j < LANES; j++)
            best = m[j] > best ? m[j] : best;
    }
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

/* x[n] = softmax(scale * x), summed in double; all zeros if every score is -inf. x must be readable
 * and writable up to the next multiple of LANES. */
INLINE void softmax_row(float *x, size_t n, float scale)
{
    float max = max_of(x, n);
    size_t whole = (n + LANES - 1) / LANES * LANES;
    for (size_t i = n; i < whole; i++)
        x[i] = -INFINITY;
    if (max == -INFINITY) {
        memset(x, 0, whole * sizeof *x);
        return;
    }
    vecd sum = {0};
    for (size_t i = 0; i < whole; i += LANES) {
        vec e = vexp((load(x + i) - max) * scale);
        put(x + i, e);
        sum += __builtin_convertvector(e, vecd);
    }
    float inverse = (float)(1 / sum_lanes(sum));
    for (size_t i = 0; i < whole; i += LANES)
        put(x + i, load(x + i) * inverse);
}
