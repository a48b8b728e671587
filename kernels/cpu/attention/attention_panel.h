/* attention_panel.h - computes the results of one panel (up to QUERIES queries) of attention.c for
 * a chunk of keys. */
#pragma once

#include <math.h>

#include "kernels/cpu/attention/fetch.h"
#include "kernels/cpu/vectors/transpose.h"
#include DENSE /* tiled_product, if the level has tiles */

/* A tile of a product is ROWS x 2 registers, or FEW x WIDE for few queries; a level with tile
 * instructions has its own product (DENSE). QUERIES is a multiple of LANES. A row of scores is one
 * cache line longer than a chunk, so that rows do not compete for the same cache sets. */
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
    size_t count, heads; /* count: number of queries; heads: number of key heads. Each key head has
                          * count / heads queries, one head after the other */
    size_t at[QUERIES];  /* index of each query in q and y */
    int32_t *last;       /* [QUERIES] the last position that each query may see */
    int32_t least, most; /* smallest and largest of last[] */
    uint32_t *q;         /* [QUERIES, words of E], scaled */
    struct attn_part all;
};

/* out[rows, regs * LANES] = a[rows, K] m[K, regs * LANES]; rows are lda, ldm, ldo words apart. */
INLINE void tile(const int rows, const int regs, const int pairs, float *out, size_t ldo,
                 const uint32_t *left, size_t lda, const uint32_t *right, size_t ldm, size_t K)
{
    vec sum[ROWS * WIDE];
    for (int i = 0; i < rows * regs; i++)
        sum[i] = (vec){0};
    for (size_t k = 0; k < K; k++) {
        for (int row = 0; row < rows; row++) {
            uint32_t word;
            memcpy(&word, left + (size_t)row * lda + k, sizeof word);
            vecu x = splat_bits(word);
            for (int lane = 0; lane < regs; lane++) {
                vecu y = load_bits(right + lane * LANES);
                vec *sums = &sum[row * regs + lane];
                *sums = pairs ? dot_bf16(*sums, x, y) : *sums + (vec)x * (vec)y;
            }
        }
        right += ldm;
    }
    for (int row = 0; row < rows; row++)
        for (int lane = 0; lane < regs; lane++)
            put(out + (size_t)row * ldo + lane * LANES, sum[row * regs + lane]);
}

/* out[rows, cols] = a[rows, K] m[K, cols], computed in whole tiles, so buffers must have room for
 * whole tiles. Few rows use wide tiles if cols is a multiple of KEYS. */
INLINE void product(const int pairs, size_t rows, size_t cols, size_t K, float *out, size_t ldo,
                    const uint32_t *left, size_t lda, const uint32_t *right, size_t ldm)
{
    if (TILED && pairs) {
        tiled_product(rows, cols, K, out, ldo, left, lda, right, ldm);
        return;
    }
    if (rows <= FEW && cols % KEYS == 0) {
        for (size_t column = 0; column < cols; column += KEYS)
            tile(FEW, WIDE, pairs, out + column, ldo, left, lda, right + column, ldm, K);
        return;
    }
    for (size_t column = 0; column < cols; column += 2 * LANES)
        for (size_t row = 0; row < rows; row += ROWS)
            tile(ROWS, 2, pairs, out + row * ldo + column, ldo, left + row * lda, lda,
                 right + column, ldm, K);
}

/* row_largest() and row_sums() return the largest value, or the sum, of each of LANES rows.
 * turned[i] holds the values of row i, one a lane. */
INLINE vec row_largest(vecu turned[LANES])
{
    transpose(turned);
    vec most = (vec)turned[0];
    for (int i = 1; i < LANES; i++)
        most = vmax((vec)turned[i], most);
    return most;
}

INLINE void row_sums(vecu turned[LANES], double *out)
{
    transpose(turned);
    vecd sum = {0};
    for (int i = 0; i < LANES; i++)
        sum += __builtin_convertvector((vec)turned[i], vecd);
    memcpy(out, &sum, sizeof sum);
}

/* The first position that a query may see, from the last position that it may see. */
static int32_t first_seen(const struct attn *attention, int32_t last)
{
    return attention->window ? last - (int32_t)attention->window + 1 : INT32_MIN;
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

/* Turns the scores s of up to LANES rows into e^(s - max), in place, as words. n is a multiple of
 * LANES; only the first `rows` rows exist. A lane is summed in float, the lanes are added in
 * double. */
INLINE void probabilities(const int pairs, float *scores, size_t rows, size_t n, float *max,
                          double *sum)
{
    vecu turned[LANES];
    for (size_t row = 0; row < LANES; row++) {
        vec most = splat(-INFINITY);
        for (size_t j = 0; row < rows && j < n; j += LANES)
            most = vmax(load(scores + row * STRIDE + j), most);
        turned[row] = (vecu)most;
    }
    put(max, row_largest(turned));
    for (size_t row = 0; row < LANES; row++) {
        float *score = scores + row * STRIDE, base = max[row] == -INFINITY ? 0 : max[row];
        vec total = {0};
        for (size_t j = 0; row < rows && j < n; j += LANES) {
            vec share = vexp(load(score + j) - base);
            vech half = bf16_narrow(share);
            total += share;
            if (pairs)
                memcpy(score + j / 2, &half, sizeof half);
            else
                put(score + j, share);
        }
        turned[row] = (vecu)total;
    }
    row_sums(turned, sum);
}

/* Keys and values of a chunk: `n` entries of the list from `first` on. */
struct key_chunk {
    const struct side *d;
    size_t first, n;
    int shared;           /* 1: fetched once for several panels; else each panel fetches its own */
    struct words values;
    uint32_t *room_k, *room_v; /* memory of the worker for keys, and for values that must be
                                * copied */
};

/* Reads the data of `heads` neighbouring key heads for entries first .. first + n - 1 of the list,
 * so that they are in the cache when the heads are computed one by one. */
static void read_ahead(const struct side *side, const void *cache, size_t heads, size_t first,
                       size_t n)
{
    const size_t size = dtype_value_bytes(side->a->kv.dtype), row = side->a->head_dim * size;
    for (size_t j = first; heads > 1 && j < first + n; j++) {
        size_t at = ((size_t)side->slots[j] * side->a->kv_heads + side->kh) * row;
        for (size_t end = at + heads * row; at < end; at += LINE * sizeof(uint32_t))
            (void)*(const volatile char *)((const char *)cache + at);
    }
}

INLINE void scores_of(const int pairs, const struct key_chunk *chunk, const struct panel *panel,
                      float *scores)
{
    struct side side = *chunk->d;
    const size_t words = words_of(side.a->head_dim, pairs), kh = side.kh,
                 each = panel->count / panel->heads;
    for (size_t j = 0; j < chunk->n; j += KEYS) {
        const uint32_t *keys = chunk->room_k + (chunk->shared ? j * words : 0);
        const size_t n = chunk->n - j < KEYS ? chunk->n - j : KEYS;
        if (!chunk->shared)
            read_ahead(chunk->d, side.a->kv.k, panel->heads, chunk->first + j, n);
        for (size_t head = 0; head < panel->heads; head++) {
            side.kh = kh + head;
            if (!chunk->shared)
                CPU(fetch_keys)(&side, chunk->first + j, n, chunk->room_k);
            product(pairs, each, KEYS, words, scores + head * each * STRIDE + j, STRIDE,
                    panel->q + head * each * words, words, keys, KEYS);
        }
    }
}

/* y[count, E'] = the sum of the values, weighted by the probabilities in `scores`. */
INLINE void read_values(const int pairs, const struct key_chunk *chunk, const struct panel *panel,
                        const float *scores, float *y)
{
    struct side side = *chunk->d;
    const size_t E = wide(side.a->head_dim), kh = side.kh, each = panel->count / panel->heads;
    struct words values = chunk->values;
    if (!chunk->shared)
        read_ahead(chunk->d, side.a->kv.v, panel->heads, chunk->first, chunk->n);
    for (size_t head = 0; head < panel->heads; head++) {
        side.kh = kh + head;
        if (!chunk->shared)
            values = CPU(fetch_values)(&side, chunk->first, chunk->n, chunk->room_v);
        product(pairs, each, E, pairs ? (chunk->n + 1) / 2 : chunk->n, y + head * each * E, E,
                (const uint32_t *)(const void *)(scores + head * each * STRIDE), STRIDE, values.at,
                values.row);
    }
}

/* Computes *part: the result of a panel for a chunk. hidden 1: some query may not see some key. */
INLINE void panel_part(const int pairs, const struct key_chunk *chunk, const struct panel *panel,
                       int hidden, float *scores, const struct attn_part *part)
{
    const struct side *side = chunk->d;
    const size_t n = chunk->n, whole = up(n, LANES);
    scores_of(pairs, chunk, panel, scores);
    for (size_t i = 0; i < panel->count; i++) {
        if (hidden)
            hide(scores + i * STRIDE, side->slot_pos + chunk->first, n,
                 first_seen(side->a, panel->last[i]), panel->last[i]);
        for (size_t j = n; j < whole; j++)
            scores[i * STRIDE + j] = -INFINITY;
    }
    for (size_t i = 0; i < panel->count; i += LANES)
        probabilities(pairs, scores + i * STRIDE, panel->count - i, whole, part->max + i,
                      part->sum + i);
    read_values(pairs, chunk, panel, scores, part->y);
}

static void run_part(const struct key_chunk *chunk, const struct panel *panel, int hidden,
                     float *scores, const struct attn_part *part)
{
    if (BF16_DOT && chunk->d->pairs)
        panel_part(1, chunk, panel, hidden, scores, part);
    else
        panel_part(0, chunk, panel, hidden, scores, part);
}
