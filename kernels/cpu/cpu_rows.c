/* cpu_rows.c - operations on activations row by row: norms, rotations, gates, copies into a
 * cache. A row belongs to one thread, and the order of a sum over a row depends only on its
 * width. So results do not depend on the number of threads. */
#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/host.h"

/* A loop over rows, divided among threads. */
struct row_loop {
    float *y;
    const float *x, *g;
    const int32_t *row;
    size_t n, E;
    double eps;
    int sign;
};

static void rmsnorm_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct row_loop *a = ctx;
    for (size_t t = begin; t < end; t++) {
        const float *x = a->x + (a->row ? (size_t)a->row[t] : t) * a->n;
        float *y = a->y + t * a->n;
        if (!a->g) {
            memmove(y, x, a->n * sizeof *y);
            continue;
        }
        float scale = (float)(1 / sqrt(sum_squares(x, a->n) / (double)a->n + a->eps));
        size_t d = 0;
        for (; d + LANES <= a->n; d += LANES)
            put(y + d, load(x + d) * scale * load(a->g + d));
        for (; d < a->n; d++)
            y[d] = x[d] * scale * a->g[d];
    }
}

void CPU(rmsnorm)(struct backend *b, act *y, const act *x, const int32_t *row, const float *gain,
                  size_t T, size_t D, double eps)
{
    struct row_loop a = {.y = y, .x = x, .g = gain, .row = row, .n = D, .eps = eps};
    pool_run(b->pool, T, grain(4 * D), rmsnorm_rows, &a);
}

struct angles {
    float *table;
    const int32_t *pos;
    const float *inv_freq;
    float scale;
    size_t E;
};

static void angle_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct angles *a = ctx;
    size_t half = a->E / 2;
    for (size_t t = begin; t < end; t++)
        for (size_t j = 0; j < half; j++) {
            float angle = (float)a->pos[t] * a->inv_freq[j];
            a->table[t * a->E + j] = cosf(angle) * a->scale;
            a->table[t * a->E + half + j] = sinf(angle) * a->scale;
        }
}

void CPU(rope_table)(struct backend *b, float *table, const int32_t *pos, const float *inv_freq,
                     float scale, size_t T, size_t E)
{
    struct angles a = {table, pos, inv_freq, scale, E};
    pool_run(b->pool, T, grain(64 * E), angle_rows, &a); /* libm takes about 64 operations a
                                                          * value */
}

/* Rotates the pairs (p[j], p[j + half]) of one head. */
static void rope_head(float *p, const float *c, size_t half, float sign)
{
    float *q = p + half;
    const float *s = c + half;
    size_t j = 0;
    for (; j + LANES <= half; j += LANES) {
        vec u = load(p + j), v = load(q + j), cosine = load(c + j), sine = sign * load(s + j);
        put(p + j, u * cosine - v * sine);
        put(q + j, v * cosine + u * sine);
    }
    for (; j < half; j++) {
        float u = p[j], v = q[j], sine = sign * s[j];
        p[j] = u * c[j] - v * sine;
        q[j] = v * c[j] + u * sine;
    }
}

static void rope_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct row_loop *a = ctx;
    for (size_t t = begin; t < end; t++)
        for (size_t h = 0; h < a->n; h++)
            rope_head(a->y + (t * a->n + h) * a->E, a->x + t * a->E, a->E / 2, (float)a->sign);
}

void CPU(rope)(struct backend *b, float *x, const float *table, size_t T, size_t heads, size_t E,
               int sign)
{
    struct row_loop a = {.y = x, .x = table, .n = heads, .E = E, .sign = sign};
    pool_run(b->pool, T, grain(4 * heads * E), rope_rows, &a);
}

struct store {
    char *cache;
    enum dtype dtype;
    const float *x;
    const int32_t *slot;
    size_t n;
};

static void round_row(uint16_t *out, const float *x, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vech half = __builtin_convertvector(bf16_round(load(x + i)) >> 16, vech);
        memcpy(out + i, &half, sizeof half);
    }
    for (; i < n; i++)
        out[i] = bf16_of(x[i]);
}

static void store_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct store *s = ctx;
    for (size_t t = begin; t < end; t++) {
        size_t at = (s->slot ? (size_t)s->slot[t] : t) * s->n;
        if (s->dtype == DTYPE_F32)
            memcpy(s->cache + at * sizeof *s->x, s->x + t * s->n, s->n * sizeof *s->x);
        else
            round_row((uint16_t *)(void *)s->cache + at, s->x + t * s->n, s->n);
    }
}

static void store(struct backend *b, void *cache, enum dtype dtype, const float *x,
                  const int32_t *slot, size_t T, size_t n)
{
    struct store s = {cache, dtype, x, slot, n};
    pool_run(b->pool, T, grain(n), store_rows, &s);
}

void CPU(qkv)(struct backend *b, const struct qkv *a, size_t T, void *work)
{
    host_qkv(b, a, T, work, store);
}

static void swiglu_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct row_loop *a = ctx;
    size_t i = span_begin(begin, a->n), last = span_begin(end, a->n);
    for (; i + LANES <= last; i += LANES) {
        vec g = load(a->x + i);
        put(a->y + i, g / (1.0f + vexp(-g)) * load(a->g + i));
    }
    for (; i < last; i++)
        a->y[i] = a->x[i] / (1.0f + expf(-a->x[i])) * a->g[i];
}

void CPU(swiglu)(struct backend *b, act *y, const act *gate, const act *up, size_t n)
{
    struct row_loop a = {.y = y, .x = gate, .g = up, .n = n};
    pool_run(b->pool, spans(n), 4096 / SPAN, swiglu_part, &a);
}
