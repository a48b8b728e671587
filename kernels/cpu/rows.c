/* rows.c - the operations that go over activations row by row: norms, rotations, gates, copies. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/host.h"

/* One loop over rows, split over the pool. */
struct rows {
    float *y;
    const float *x, *g;
    size_t n, E;
    double eps;
    int sign;
};

static double sum_squares(const float *x, size_t n)
{
    vecd sum = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vecd v = __builtin_convertvector(load(x + i), vecd);
        sum += v * v;
    }
    double s = sum_lanes(sum);
    for (; i < n; i++)
        s += (double)x[i] * x[i];
    return s;
}

static void rmsnorm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct rows *a = ctx;
    for (size_t t = begin; t < end; t++) {
        const float *x = a->x + t * a->n;
        float scale = (float)(1 / sqrt(sum_squares(x, a->n) / (double)a->n + a->eps));
        for (size_t d = 0; d < a->n; d++)
            a->y[t * a->n + d] = x[d] * scale * a->g[d];
    }
}

void CPU(rmsnorm)(struct backend *b, float *y, const float *x, const float *g, size_t T, size_t D,
                  double eps)
{
    struct rows a = {.y = y, .x = x, .g = g, .n = D, .eps = eps};
    pool_run(b->pool, T, 8, rmsnorm_rows, &a);
}

void CPU(rope_table)(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                     size_t T, size_t E)
{
    (void)b;
    for (size_t t = 0; t < T; t++)
        for (size_t j = 0; j < E / 2; j++) {
            float angle = (float)pos[t] * inv_freq[j];
            table[t * E + j] = cosf(angle);
            table[t * E + E / 2 + j] = sinf(angle);
        }
}

static void rope_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct rows *a = ctx;
    size_t half = a->E / 2;
    for (size_t t = begin; t < end; t++) {
        const float *c = a->x + t * a->E, *s = c + half;
        for (size_t h = 0; h < a->n; h++) {
            float *p = a->y + (t * a->n + h) * a->E, *q = p + half;
            for (size_t j = 0; j < half; j++) {
                float u = p[j], v = q[j], sine = (float)a->sign * s[j];
                p[j] = u * c[j] - v * sine;
                q[j] = v * c[j] + u * sine;
            }
        }
    }
}

void CPU(rope)(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
               int sign)
{
    struct rows a = {.y = x, .x = table, .n = heads, .E = E, .sign = sign};
    pool_run(b->pool, T, 16, rope_rows, &a);
}

void CPU(store)(struct backend *b, void *cache, enum dtype dtype, const float *x, const int32_t *slot,
                size_t T, size_t n)
{
    (void)b;
    float *floats = cache;
    uint16_t *halves = cache;
    for (size_t t = 0; t < T; t++) {
        size_t to = (size_t)slot[t] * n;
        if (dtype == DTYPE_F32)
            memcpy(floats + to, x + t * n, n * sizeof *x);
        else
            for (size_t i = 0; i < n; i++)
                halves[to + i] = bf16_of(x[t * n + i]);
    }
}

static void swiglu_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct rows *a = ctx;
    size_t i = begin;
    for (; i + LANES <= end; i += LANES) {
        vec g = load(a->x + i);
        put(a->y + i, g / (1.0f + vexp(-g)) * load(a->g + i));
    }
    for (; i < end; i++)
        a->y[i] = a->x[i] / (1.0f + expf(-a->x[i])) * a->g[i];
}

void CPU(swiglu)(struct backend *b, float *y, const float *gate, const float *up, size_t n)
{
    struct rows a = {.y = y, .x = gate, .g = up};
    pool_run(b->pool, n, 4096, swiglu_part, &a); /* 4096 is a multiple of LANES: tails only at n */
}

void CPU(gather)(struct backend *b, float *out, const float *x, const int32_t *row, size_t R,
                 size_t n)
{
    (void)b;
    for (size_t i = 0; i < R; i++)
        memcpy(out + i * n, x + (size_t)row[i] * n, n * sizeof *x);
}
