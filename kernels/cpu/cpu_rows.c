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
    const struct row_loop *loop = ctx;
    for (size_t row = begin; row < end; row++) {
        const float *x = loop->x + (loop->row ? (size_t)loop->row[row] : row) * loop->n;
        float *y = loop->y + row * loop->n;
        if (!loop->g) {
            memmove(y, x, loop->n * sizeof *y);
            continue;
        }
        float scale = (float)(1 / sqrt(sum_squares(x, loop->n) / (double)loop->n + loop->eps));
        size_t column = 0;
        for (; column + LANES <= loop->n; column += LANES)
            put(y + column, load(x + column) * scale * load(loop->g + column));
        for (; column < loop->n; column++)
            y[column] = x[column] * scale * loop->g[column];
    }
}

void CPU(rmsnorm)(struct backend *backend, act *y, const act *x, const int32_t *row,
                  const float *gain, size_t T, size_t D, double eps)
{
    struct row_loop loop = {.y = y, .x = x, .g = gain, .row = row, .n = D, .eps = eps};
    pool_run(backend->pool, T, grain(4 * D), rmsnorm_rows, &loop);
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
    const struct angles *angles = ctx;
    size_t half = angles->E / 2;
    for (size_t row = begin; row < end; row++)
        for (size_t j = 0; j < half; j++) {
            float angle = (float)angles->pos[row] * angles->inv_freq[j];
            angles->table[row * angles->E + j] = cosf(angle) * angles->scale;
            angles->table[row * angles->E + half + j] = sinf(angle) * angles->scale;
        }
}

void CPU(rope_table)(struct backend *backend, float *table, const int32_t *pos,
                     const float *inv_freq, float scale, size_t T, size_t E)
{
    struct angles angles = {table, pos, inv_freq, scale, E};
    pool_run(backend->pool, T, grain(64 * E), angle_rows,
             &angles); /* libm takes about 64 operations a
                                                                     * value */
}

/* Rotates the pairs (first[j], first[j + half]) of one head. */
static void rope_head(float *first, const float *cosines, size_t half, float sign)
{
    float *second = first + half;
    const float *sines = cosines + half;
    size_t j = 0;
    for (; j + LANES <= half; j += LANES) {
        vec left = load(first + j), right = load(second + j), cosine = load(cosines + j),
            sine = sign * load(sines + j);
        put(first + j, left * cosine - right * sine);
        put(second + j, right * cosine + left * sine);
    }
    for (; j < half; j++) {
        float left = first[j], right = second[j], sine = sign * sines[j];
        first[j] = left * cosines[j] - right * sine;
        second[j] = right * cosines[j] + left * sine;
    }
}

static void rope_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct row_loop *loop = ctx;
    for (size_t row = begin; row < end; row++)
        for (size_t head = 0; head < loop->n; head++)
            rope_head(loop->y + (row * loop->n + head) * loop->E, loop->x + row * loop->E,
                      loop->E / 2, (float)loop->sign);
}

void CPU(rope)(struct backend *backend, float *x, const float *table, size_t T, size_t heads,
               size_t E, int sign)
{
    struct row_loop loop = {.y = x, .x = table, .n = heads, .E = E, .sign = sign};
    pool_run(backend->pool, T, grain(4 * heads * E), rope_rows, &loop);
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
    const struct store *store = ctx;
    for (size_t row = begin; row < end; row++) {
        size_t at = (store->slot ? (size_t)store->slot[row] : row) * store->n;
        if (store->dtype == DTYPE_F32)
            memcpy(store->cache + at * sizeof *store->x, store->x + row * store->n,
                   store->n * sizeof *store->x);
        else
            round_row((uint16_t *)(void *)store->cache + at, store->x + row * store->n, store->n);
    }
}

static void store(struct backend *backend, void *cache, enum dtype dtype, const float *x,
                  const int32_t *slot, size_t T, size_t n)
{
    struct store s = {cache, dtype, x, slot, n};
    pool_run(backend->pool, T, grain(n), store_rows, &s);
}

void CPU(qkv)(struct backend *backend, const struct qkv *a, size_t T, void *work)
{
    host_qkv(backend, a, T, work, store);
}

static void swiglu_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct row_loop *loop = ctx;
    size_t i = span_begin(begin, loop->n), last = span_begin(end, loop->n);
    for (; i + LANES <= last; i += LANES) {
        vec g = load(loop->x + i);
        put(loop->y + i, g / (1.0f + vexp(-g)) * load(loop->g + i));
    }
    for (; i < last; i++)
        loop->y[i] = loop->x[i] / (1.0f + expf(-loop->x[i])) * loop->g[i];
}

void CPU(swiglu)(struct backend *backend, act *y, const act *gate, const act *up, size_t n)
{
    struct row_loop loop = {.y = y, .x = gate, .g = up, .n = n};
    pool_run(backend->pool, spans(n), 4096 / SPAN, swiglu_part, &loop);
}
