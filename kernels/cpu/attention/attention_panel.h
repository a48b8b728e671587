/* attention_panel.h - a panel of attention.c: the results of some queries for a chunk of keys. */
#pragma once

#include <math.h>

#include "kernels/cpu/attention/fetch.h"
#include "kernels/cpu/vectors/transpose.h"
#include DENSE /* tiled_product, if the level has tiles */

/* A product's tile is ROWS x 2 registers, or for few queries FEW x WIDE, unless the level has its
 * own (DENSE). QUERIES is a multiple of LANES. A row of scores is one line longer than a chunk,
 * because rows would otherwise compete for the same cache sets. */
enum {
    CHUNK = 256,
    QUERIES = 32,
    ROWS = LANES == 16 ? 8 : 4,
    FEW = 4,
    WIDE = KEYS / LANES,
    TALL = TILED ? 16 : ROWS, /* rows of a tile; products are padded to whole tiles */
    STRIDE = CHUNK + LINE
};

/* The result of one panel over some keys: max[QUERIES], sum[QUERIES], y[QUERIES, E']. */
struct attn_part {
    float *max, *y;
    double *sum;
};

struct panel {
    size_t count, heads; /* count: queries; heads: their key heads, each with the same number of
                          * queries, in turn */
    size_t at[QUERIES];  /* the start of each query in q and y */
    int32_t *last;       /* [QUERIES] the last position that each query may see */
    int32_t least, most; /* of last[] */
    uint32_t *q;         /* [QUERIES, words of E], scaled */
    struct attn_part all;
};

/* out[rows, regs * LANES] = a[rows, K] m[K, regs * LANES]; rows are lda, ldm, ldo words apart. */
INLINE void tile(const int rows, const int regs, const int pairs, float *out, size_t ldo,
                 const uint32_t *a, size_t lda, const uint32_t *m, size_t ldm, size_t K)
{
    vec sum[ROWS * WIDE];
    for (int i = 0; i < rows * regs; i++)
        sum[i] = (vec){0};
    for (size_t k = 0; k < K; k++) {
        for (int r = 0; r < rows; r++) {
            uint32_t word;
            memcpy(&word, a + (size_t)r * lda + k, sizeof word);
            vecu x = splat_bits(word);
            for (int g = 0; g < regs; g++) {
                vecu y = load_bits(m + g * LANES);
                vec *s = &sum[r * regs + g];
                *s = pairs ? dot_bf16(*s, x, y) : *s + (vec)x * (vec)y;
            }
        }
        m += ldm;
    }
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < regs; g++)
            put(out + (size_t)r * ldo + g * LANES, sum[r * regs + g]);
}

/* out[rows, cols] = a[rows, K] m[K, cols] in whole tiles, so both have idle rows or columns. Few
 * rows use wide tiles where the columns allow it. */
INLINE void product(const int pairs, size_t rows, size_t cols, size_t K, float *out, size_t ldo,
                    const uint32_t *a, size_t lda, const uint32_t *m, size_t ldm)
{
    if (TILED && pairs) {
        tiled_product(rows, cols, K, out, ldo, a, lda, m, ldm);
        return;
    }
    if (rows <= FEW && cols % KEYS == 0) {
        for (size_t c = 0; c < cols; c += KEYS)
            tile(FEW, WIDE, pairs, out + c, ldo, a, lda, m + c, ldm, K);
        return;
    }
    for (size_t c = 0; c < cols; c += 2 * LANES)
        for (size_t r = 0; r < rows; r += ROWS)
            tile(ROWS, 2, pairs, out + r * ldo + c, ldo, a + r * lda, lda, m + c, ldm, K);
}

/* The largest score (or the sum) of each of LANES rows, from vectors of their lanes. */
INLINE vec row_largest(vecu v[LANES])
{
    transpose(v);
    vec most = (vec)v[0];
    for (int i = 1; i < LANES; i++)
        most = vmax((vec)v[i], most);
    return most;
}

INLINE void row_sums(vecu v[LANES], double *out)
{
    transpose(v);
    vecd sum = {0};
    for (int i = 0; i < LANES; i++)
        sum += __builtin_convertvector((vec)v[i], vecd);
    memcpy(out, &sum, sizeof sum);
}

/* The first position that a query may see, from the last one. */
static int32_t first_seen(const struct attn *a, int32_t last)
{
    return a->window ? last - (int32_t)a->window + 1 : INT32_MIN;
}

/* Sets the scores of keys that the query may not see to -inf. */
static void hide(float *scores, const int32_t *slot_pos, size_t n, int32_t first, int32_t last)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        veci at = (veci)load_bits(slot_pos + j), seen = (at >= first) & (at <= last);
        put(scores + j, pick(seen, load(scores + j), splat(-INFINITY)));
    }
    for (; j < n; j++)
        scores[j] = slot_pos[j] >= first && slot_pos[j] <= last ? scores[j] : -INFINITY;
}

/* Turns LANES rows of scores[n] (n a multiple of LANES) into probabilities e^(s - max), in place,
 * as words. Only the first `rows` count. A lane is summed in float, the lanes in double. */
INLINE void probabilities(const int pairs, float *scores, size_t rows, size_t n, float *max,
                          double *sum)
{
    vecu v[LANES];
    for (size_t r = 0; r < LANES; r++) {
        vec most = splat(-INFINITY);
        for (size_t j = 0; r < rows && j < n; j += LANES)
            most = vmax(load(scores + r * STRIDE + j), most);
        v[r] = (vecu)most;
    }
    put(max, row_largest(v));
    for (size_t r = 0; r < LANES; r++) {
        float *s = scores + r * STRIDE, base = max[r] == -INFINITY ? 0 : max[r];
        vec total = {0};
        for (size_t j = 0; r < rows && j < n; j += LANES) {
            vec p = vexp(load(s + j) - base);
            vech half = bf16_narrow(p);
            total += p;
            if (pairs)
                memcpy(s + j / 2, &half, sizeof half);
            else
                put(s + j, p);
        }
        v[r] = (vecu)total;
    }
    row_sums(v, sum);
}

/* Keys and values of a chunk: `n` entries of the list from `first` on. */
struct key_chunk {
    const struct side *d;
    size_t first, n;
    int shared;           /* 1: fetched once for several panels; else each panel fetches its own */
    struct words values;
    uint32_t *room_k, *room_v; /* of a worker: keys, and values that must be copied */
};

/* Prefetches the data of `heads` key heads in slots first .. first + n - 1, in a row. */
static void read_ahead(const struct side *d, const void *cache, size_t heads, size_t first,
                       size_t n)
{
    const size_t size = dtype_value_bytes(d->a->kv.dtype), row = d->a->head_dim * size;
    for (size_t j = first; heads > 1 && j < first + n; j++) {
        size_t at = ((size_t)d->slots[j] * d->a->kv_heads + d->kh) * row;
        for (size_t end = at + heads * row; at < end; at += LINE * sizeof(uint32_t))
            (void)*(const volatile char *)((const char *)cache + at);
    }
}

INLINE void scores_of(const int pairs, const struct key_chunk *c, const struct panel *p,
                      float *scores)
{
    struct side d = *c->d;
    const size_t words = words_of(d.a->head_dim, pairs), kh = d.kh, each = p->count / p->heads;
    for (size_t j = 0; j < c->n; j += KEYS) {
        const uint32_t *keys = c->room_k + (c->shared ? j * words : 0);
        const size_t n = c->n - j < KEYS ? c->n - j : KEYS;
        if (!c->shared)
            read_ahead(c->d, d.a->kv.k, p->heads, c->first + j, n);
        for (size_t h = 0; h < p->heads; h++) {
            d.kh = kh + h;
            if (!c->shared)
                CPU(fetch_keys)(&d, c->first + j, n, c->room_k);
            product(pairs, each, KEYS, words, scores + h * each * STRIDE + j, STRIDE,
                    p->q + h * each * words, words, keys, KEYS);
        }
    }
}

/* y[count, E'] = the values weighted by the probabilities in `scores`. */
INLINE void read_values(const int pairs, const struct key_chunk *c, const struct panel *p,
                        const float *scores, float *y)
{
    struct side d = *c->d;
    const size_t E = wide(d.a->head_dim), kh = d.kh, each = p->count / p->heads;
    struct words values = c->values;
    if (!c->shared)
        read_ahead(c->d, d.a->kv.v, p->heads, c->first, c->n);
    for (size_t h = 0; h < p->heads; h++) {
        d.kh = kh + h;
        if (!c->shared)
            values = CPU(fetch_values)(&d, c->first, c->n, c->room_v);
        product(pairs, each, E, pairs ? (c->n + 1) / 2 : c->n, y + h * each * E, E,
                (const uint32_t *)(const void *)(scores + h * each * STRIDE), STRIDE, values.at,
                values.row);
    }
}

/* Computes the part of panel p for a chunk. */
INLINE void panel_part(const int pairs, const struct key_chunk *c, const struct panel *p,
                       int hidden, float *scores, const struct attn_part *part)
{
    const struct side *d = c->d;
    const size_t n = c->n, whole = up(n, LANES);
    scores_of(pairs, c, p, scores);
    for (size_t i = 0; i < p->count; i++) {
        if (hidden)
            hide(scores + i * STRIDE, d->slot_pos + c->first, n, first_seen(d->a, p->last[i]),
                 p->last[i]);
        for (size_t j = n; j < whole; j++)
            scores[i * STRIDE + j] = -INFINITY;
    }
    for (size_t i = 0; i < p->count; i += LANES)
        probabilities(pairs, scores + i * STRIDE, p->count - i, whole, part->max + i,
                      part->sum + i);
    read_values(pairs, c, p, scores, part->y);
}

static void run_part(const struct key_chunk *c, const struct panel *p, int hidden, float *scores,
                     const struct attn_part *part)
{
    if (BF16_DOT && c->d->pairs)
        panel_part(1, c, p, hidden, scores, part);
    else
        panel_part(0, c, p, hidden, scores, part);
}
