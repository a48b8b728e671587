/* cpu_mixing.c - the operations around time mixing (kernels/mixing.h). A thread owns some rows,
 * or some heads of rows. No sum crosses two of them, so results do not depend on the number of
 * threads. The end of a row goes through a vector too, so a value does not depend on its place
 * in the row. */
#include "kernels/mixing.h"

#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/mixing/cpu_mixing.h"

/* ---- the shift ---- */

/* Row t. old: the row before it; NULL: zeros. */
static void shift_row(const struct shift *a, size_t t, const float *old)
{
    const size_t at = t * a->D;
    for (size_t d = 0; d < a->D; d += LANES) {
        const size_t k = order_min(LANES, a->D - d);
        const vec now = some_in(a->x + at + d, k);
        const vec far = (old ? some_in(old + d, k) : (vec){0}) - now;
        for (size_t i = 0; i < a->n; i++) {
            vec m = some_in(a->share[i] + d, k);
            if (a->more[i])
                m += some_in(a->more[i] + at + d, k);
            some_out(a->to[i] + at + d, k, now + far * m);
        }
    }
}

static float *last_of(const struct shift *a, size_t s)
{
    return a->last ? a->last + (size_t)a->at[s] * a->D : NULL;
}

static void shift_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct shift *a = ctx;
    for (size_t s = 0; s < a->n_seqs; s++) {
        const size_t first = (size_t)a->seqs[s].row_begin, rows = (size_t)a->seqs[s].rows;
        const size_t to = order_min(end, first + rows);
        for (size_t t = begin > first ? begin : first; t < to; t++)
            shift_row(a, t, t > first ? a->x + (t - 1) * a->D : last_of(a, s));
    }
}

void CPU(shift)(struct backend *b, const struct shift *a)
{
    pool_run(b->pool, a->T, grain(2 * a->D * a->n), shift_rows, (void *)(uintptr_t)a);
    for (size_t s = 0; s < a->n_seqs && a->last && a->keep; s++) {
        const size_t first = (size_t)a->seqs[s].row_begin, rows = (size_t)a->seqs[s].rows;
        if (rows)
            memcpy(last_of(a, s), a->x + (first + rows - 1) * a->D, a->D * sizeof *a->last);
    }
}

/* ---- functions of low-rank parts ---- */

INLINE vec bent(vec x, const int by)
{
    if (by == SQUASH_DECAY6)
        return -vexp(x);
    if (by == SQUASH_TANH)
        return 1.0f - 2.0f / (1.0f + vexp(x + x));
    vec s = logistic(x);
    return by == SQUASH_DECAY7 ? s * -SQUASH_SLOWEST : s;
}

INLINE void bend_rows(const struct squash *a, size_t begin, size_t end, const int by)
{
    for (size_t t = begin; t < end; t++)
        for (size_t i = 0; i < a->n; i += LANES) {
            const size_t k = order_min(LANES, a->n - i);
            vec x = some_in(a->x + t * a->n + i, k);
            if (a->base)
                x += some_in(a->base + i, k);
            some_out(a->x + t * a->n + i, k, bent(x, by));
        }
}

static void squash_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct squash *a = ctx;
    switch (a->by) {
    case SQUASH_TANH: bend_rows(a, begin, end, SQUASH_TANH); break;
    case SQUASH_LOGISTIC: bend_rows(a, begin, end, SQUASH_LOGISTIC); break;
    case SQUASH_DECAY6: bend_rows(a, begin, end, SQUASH_DECAY6); break;
    default: bend_rows(a, begin, end, SQUASH_DECAY7); break;
    }
}

void CPU(squash)(struct backend *b, const struct squash *a)
{
    pool_run(b->pool, a->T, grain(8 * a->n), squash_rows, (void *)(uintptr_t)a);
}

/* ---- heads ---- */

static void removal_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct removal *a = ctx;
    const size_t E = a->head_dim;
    for (size_t at = begin * E; at < end * E; at += E) {
        const size_t column = at % (a->heads * E);
        const float *scale = a->scale + column, *key_rate = a->key_rate + column;
        const float inverse = mixing_inverse(a->k + at, scale, E);
        for (size_t e = 0; e < E; e++) {
            const float k = a->k[at + e], v = a->v[at + e], rate = a->rate[at + e];
            const float kappa = k * scale[e] * inverse;
            a->a[at + e] = -kappa;
            a->b[at + e] = kappa * rate;
            a->to_k[at + e] = k * (1 + (rate - 1) * key_rate[e]);
            a->to_v[at + e] = a->first ? v + (a->first[at + e] - v) * a->share[at + e] : v;
        }
    }
}

void CPU(removal)(struct backend *b, const struct removal *a)
{
    pool_run(b->pool, a->T * a->heads, grain(8 * a->head_dim), removal_heads,
             (void *)(uintptr_t)a);
}

static void out_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct heads_out *a = ctx;
    const size_t E = a->head_dim;
    for (size_t at = begin * E; at < end * E; at += E) {
        const size_t column = at % (a->heads * E);
        const struct head_norm n = mixing_norm(a->o + at, E);
        const float c = mixing_bonus(a, at, column);
        for (size_t e = 0; e < E; e += LANES) {
            const size_t k = order_min(LANES, E - e);
            vec g = some_in(a->gate + at + e, k), y = some_in(a->o + at + e, k);
            y = (y - n.mean) * n.scale * some_in(a->gain + column + e, k);
            y += some_in(a->bias + column + e, k);
            if (a->weight)
                y += some_in(a->v + at + e, k) * c;
            some_out(a->y + at + e, k, y * (a->weight ? g : g * logistic(g)));
        }
    }
}

void CPU(heads_out)(struct backend *b, const struct heads_out *a)
{
    pool_run(b->pool, a->T * a->heads, grain(16 * a->head_dim), out_heads, (void *)(uintptr_t)a);
}
