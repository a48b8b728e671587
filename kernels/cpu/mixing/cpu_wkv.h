/* cpu_wkv.h - a chunk of tokens of one head, shared by cpu_wkv.c, cpu_wkv-chunk.c and
 * cpu_wkv-back.c. The formulas are in kernels/wkv.h. A row has E values, rounded up to whole
 * panels; the padding is zeros. */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/wkv.h"

enum { TOKENS = WKV_CHUNK, PAIR_ROW = 2 * TOKENS };

struct wkv_chunk {
    size_t E, width;
    int removes;   /* RWKV 7 */
    size_t tokens; /* tokens that exist; in the pairs, tokens up to TOKENS are zeros that do not
                    * decay */
    size_t pairs;  /* rows of keys and values: TOKENS, or 2 TOKENS with b and x */
    float *r, *a;  /* [TOKENS, width] */
    float *keys;   /* [2 TOKENS, width]: k, then b */
    float *values; /* [2 TOKENS, width]: v, then x */
    float *decay;  /* [TOKENS, width]: e^w */
    float *bonus;  /* [width]: u */
    float *left;   /* [2 TOKENS, width]: r D(0, t] or, as RWKV 6 reads, r D(0, t-1]; a D(0, t-1] */
    float *moved;  /* [2 TOKENS, width]: keys D(q, C] */
    float *whole;  /* [width]: D(0, C] */
    float *near, *step, *borders; /* of sub-chunks, see cpu_wkv-chunk.c */
    float *read;   /* [TOKENS, PAIR_ROW]: A^rk, A^rb */
    float *solve;  /* [TOKENS, PAIR_ROW]: A^ak, A^ab */
    int cleared;   /* 1: entries with a token before the key are zero already */
    int last;      /* 1: no rows follow */
    const float *next[7]; /* rows of the next chunk, `stride` apart: r, k, v, w, a, b, y */
    size_t stride, sources;
    size_t source, fetched; /* rows of all arrays that were prefetched, and the next */
};

/* Floats of a chunk's arrays; and sets their places in `at`, 64-byte aligned. */
size_t CPU(wkv_chunk_floats)(size_t E);
struct wkv_chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, float *at);
/* Loads tokens row .. row + n - 1 of head h. */
void CPU(wkv_chunk_load)(struct wkv_chunk *chunk, const struct wkv_rows *in, size_t row, size_t n,
                         size_t head);
/* Prefetches rows of the next chunk into the L2 cache, because rows of a head lie too far apart
 * for the processor to prefetch. A few at a time while this chunk is computed: a processor allows
 * only so many reads in flight, then it waits. */
void CPU(wkv_chunk_fetch)(struct wkv_chunk *chunk, size_t rows);
/* Pads the chunk to TOKENS; then computes left, moved, whole, read and solve. */
void CPU(wkv_chunk_scores)(struct wkv_chunk *chunk);
/* x of all tokens; S[width, width]: the state before the chunk. */
void CPU(wkv_chunk_solve)(struct wkv_chunk *chunk, const float *state);
/* y of its tokens in rows of all heads. Overwrites a's part of left. */
void CPU(wkv_chunk_read)(struct wkv_chunk *chunk, const float *state, float *y);
/* Replaces S by the state behind the chunk. */
void CPU(wkv_chunk_carry)(struct wkv_chunk *chunk, float *state);

INLINE size_t wkv_width(size_t E) { return (E + PANEL - 1) / PANEL * PANEL; }

/* A product of decays. A product too small for any fp32 sum becomes zero, because arithmetic on
 * subnormal numbers is slow; the product of two remaining values is not subnormal. */
INLINE vec wkv_both(vec x, vec y)
{
    const vec z = x * y;
    return pick(z < 1e-18f, splat(0), z);
}

/* to[rows, wide] = from[rows, n], rows `stride` apart; zeros beyond, n <= wide. */
INLINE void wkv_rows_in(float *to, size_t wide, const float *from, size_t stride, size_t rows,
                        size_t n)
{
    const size_t whole = n / PANEL * PANEL;
    for (size_t token = 0; token < rows; token++, to += wide, from += stride) {
        for (size_t e = 0; e < whole; e += PANEL) {
            vec lo = load(from + e), hi = load(from + e + LANES);
            put(to + e, lo);
            put(to + e + LANES, hi);
        }
        for (size_t e = whole; e < wide; e++)
            to[e] = e < n ? from[e] : 0;
    }
}

/* The inverse copy of wkv_rows_in. */
INLINE void wkv_rows_out(float *to, size_t stride, const float *from, size_t wide, size_t rows,
                         size_t n)
{
    for (size_t token = 0; token < rows; token++)
        memcpy(to + token * stride, from + token * wide, n * sizeof *to);
}
