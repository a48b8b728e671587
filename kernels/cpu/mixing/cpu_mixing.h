/* cpu_mixing.h - loads and stores of parts of rows, and sums over a head, shared by cpu_mixing.c
 * and cpu_mixing-back.c. */
#pragma once

#include <math.h>

#include "kernels/cpu/level.h"
#include "kernels/mixing.h"
#include "lib/base/order.h"

enum { MIXING_COLUMNS = 64 }; /* least columns of one thread */

INLINE size_t mixing_blocks(size_t D) { return (D + MIXING_COLUMNS - 1) / MIXING_COLUMNS; }

/* The number of columns of block c. */
INLINE size_t mixing_columns(size_t D, size_t c)
{
    return order_min(MIXING_COLUMNS, D - c * MIXING_COLUMNS);
}

/* some_in() loads k <= LANES values with zeros behind them; some_out() stores k values. */
INLINE vec some_in(const float *p, size_t k)
{
    vec v = {0};
    if (k == LANES)
        return load(p);
    memcpy(&v, p, k * sizeof *p);
    return v;
}

INLINE void some_out(float *p, size_t k, vec v)
{
    if (k == LANES)
        put(p, v);
    else
        memcpy(p, &v, k * sizeof *p);
}

INLINE vec logistic(vec x) { return 1.0f / (1.0f + vexp(-x)); }

/* Sums over a head are fp32 in each lane; the lanes are added in double. */
INLINE double lanes_sum(vec v)
{
    double s = 0;
    for (int i = 0; i < LANES; i++)
        s += v[i];
    return s;
}

struct head_norm {
    float mean, scale;
};

INLINE struct head_norm mixing_norm(const float *out, size_t E)
{
    const size_t whole = E / LANES * LANES;
    vec all = {0}, far = {0};
    for (size_t e = 0; e < whole; e += LANES)
        all += load(out + e);
    double sum = lanes_sum(all);
    for (size_t e = whole; e < E; e++)
        sum += out[e];
    const double mean = sum / (double)E;
    for (size_t e = 0; e < whole; e += LANES) {
        const vec x = load(out + e) - (float)mean;
        far += x * x;
    }
    double squares = lanes_sum(far);
    for (size_t e = whole; e < E; e++)
        squares += (out[e] - mean) * (out[e] - mean);
    return (struct head_norm){(float)mean, (float)(1 / sqrt(squares / (double)E + HEADS_EPS))};
}

/* sum_e x y z. */
INLINE double mixing_sum(const float *x, const float *y, const float *z, size_t E)
{
    const size_t whole = E / LANES * LANES;
    vec all = {0};
    for (size_t e = 0; e < whole; e += LANES)
        all += load(x + e) * load(y + e) * load(z + e);
    double sum = lanes_sum(all);
    for (size_t e = whole; e < E; e++)
        sum += (double)(x[e] * y[e]) * z[e];
    return sum;
}

/* sum_e r k weight; 0 if there is no bonus. */
INLINE float mixing_bonus(const struct heads_out *heads, size_t at, size_t column)
{
    return heads->weight ? (float)mixing_sum(heads->r + at, heads->k + at, heads->weight + column,
                                             heads->head_dim)
                         : 0;
}

/* 1 / |k * scale| of a head. */
INLINE float mixing_inverse(const float *k, const float *scale, size_t E)
{
    const size_t whole = E / LANES * LANES;
    vec all = {0};
    for (size_t e = 0; e < whole; e += LANES) {
        const vec u = load(k + e) * load(scale + e);
        all += u * u;
    }
    double squares = lanes_sum(all);
    for (size_t e = whole; e < E; e++)
        squares += (double)(k[e] * scale[e]) * (k[e] * scale[e]);
    return (float)(1 / fmax(sqrt(squares), (double)REMOVAL_LEAST));
}
