/* cpu_mixing.c - the operations around time mixing (kernels/mixing.h). A thread owns some rows, or
 * some heads of rows. A sum is over one head, so results do not depend on the number of threads.
 * The last values of a row are computed by vectors too, so a result does not depend on its place in
 * the row. */
#include "kernels/mixing.h"

#include <math.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/mixing/cpu_mixing.h"

/* ---- the shift ---- */

/* Shifts one row. old: the row before it; NULL: zeros. */
static void shift_row(const struct shift *shift, size_t row, const float *old)
{
    const size_t at = row * shift->D;
    for (size_t column = 0; column < shift->D; column += LANES) {
        const size_t k = order_min(LANES, shift->D - column);
        const vec now = some_in(shift->x + at + column, k);
        const vec far = (old ? some_in(old + column, k) : (vec){0}) - now;
        for (size_t i = 0; i < shift->n; i++) {
            vec m = some_in(shift->share[i] + column, k);
            if (shift->more[i])
                m += some_in(shift->more[i] + at + column, k);
            some_out(shift->to[i] + at + column, k, now + far * m);
        }
    }
}

static float *last_of(const struct shift *shift, size_t sequence)
{
    return shift->last ? shift->last + (size_t)shift->at[sequence] * shift->D : NULL;
}

static void shift_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct shift *shift = ctx;
    for (size_t sequence = 0; sequence < shift->n_seqs; sequence++) {
        const size_t first = (size_t)shift->seqs[sequence].row_begin,
                     rows = (size_t)shift->seqs[sequence].rows;
        const size_t to = order_min(end, first + rows);
        for (size_t row = begin > first ? begin : first; row < to; row++)
            shift_row(shift, row,
                      row > first ? shift->x + (row - 1) * shift->D : last_of(shift, sequence));
    }
}

void CPU(shift)(struct backend *backend, const struct shift *a)
{
    pool_run(backend->pool, a->T, grain(2 * a->D * a->n), shift_rows, (void *)(uintptr_t)a);
    for (size_t sequence = 0; sequence < a->n_seqs && a->last && a->keep; sequence++) {
        const size_t first = (size_t)a->seqs[sequence].row_begin,
                     rows = (size_t)a->seqs[sequence].rows;
        if (rows)
            memcpy(last_of(a, sequence), a->x + (first + rows - 1) * a->D, a->D * sizeof *a->last);
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

INLINE void bend_rows(const struct squash *squash, size_t begin, size_t end, const int by)
{
    for (size_t row = begin; row < end; row++)
        for (size_t i = 0; i < squash->n; i += LANES) {
            const size_t k = order_min(LANES, squash->n - i);
            vec x = some_in(squash->x + row * squash->n + i, k);
            if (squash->base)
                x += some_in(squash->base + i, k);
            some_out(squash->x + row * squash->n + i, k, bent(x, by));
        }
}

static void squash_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct squash *squash = ctx;
    switch (squash->by) {
    case SQUASH_TANH: bend_rows(squash, begin, end, SQUASH_TANH); break;
    case SQUASH_LOGISTIC: bend_rows(squash, begin, end, SQUASH_LOGISTIC); break;
    case SQUASH_DECAY6: bend_rows(squash, begin, end, SQUASH_DECAY6); break;
    default: bend_rows(squash, begin, end, SQUASH_DECAY7); break;
    }
}

void CPU(squash)(struct backend *backend, const struct squash *a)
{
    pool_run(backend->pool, a->T, grain(8 * a->n), squash_rows, (void *)(uintptr_t)a);
}

/* ---- heads ---- */

static void removal_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct removal *removal = ctx;
    const size_t E = removal->head_dim;
    for (size_t at = begin * E; at < end * E; at += E) {
        const size_t column = at % (removal->heads * E);
        const float *scale = removal->scale + column, *key_rate = removal->key_rate + column;
        const float inverse = mixing_inverse(removal->k + at, scale, E);
        for (size_t e = 0; e < E; e++) {
            const float k = removal->k[at + e], value = removal->v[at + e],
                        rate = removal->rate[at + e];
            const float kappa = k * scale[e] * inverse;
            removal->a[at + e] = -kappa;
            removal->b[at + e] = kappa * rate;
            removal->to_k[at + e] = k * (1 + (rate - 1) * key_rate[e]);
            removal->to_v[at + e] = removal->first ? value + (removal->first[at + e] - value) *
                                                                 removal->share[at + e]
                                                   : value;
        }
    }
}

void CPU(removal)(struct backend *backend, const struct removal *a)
{
    pool_run(backend->pool, a->T * a->heads, grain(8 * a->head_dim), removal_heads,
             (void *)(uintptr_t)a);
}

static void out_heads(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct heads_out *heads = ctx;
    const size_t E = heads->head_dim;
    for (size_t at = begin * E; at < end * E; at += E) {
        const size_t column = at % (heads->heads * E);
        const struct head_norm n = mixing_norm(heads->o + at, E);
        const float bonus = mixing_bonus(heads, at, column);
        for (size_t e = 0; e < E; e += LANES) {
            const size_t k = order_min(LANES, E - e);
            vec gate = some_in(heads->gate + at + e, k), y = some_in(heads->o + at + e, k);
            y = (y - n.mean) * n.scale * some_in(heads->gain + column + e, k);
            y += some_in(heads->bias + column + e, k);
            if (heads->weight)
                y += some_in(heads->v + at + e, k) * bonus;
            some_out(heads->y + at + e, k, y * (heads->weight ? gate : gate * logistic(gate)));
        }
    }
}

void CPU(heads_out)(struct backend *backend, const struct heads_out *heads)
{
    pool_run(backend->pool, heads->T * heads->heads, grain(16 * heads->head_dim), out_heads,
             (void *)(uintptr_t)heads);
}
