/* cpu_wkv.h - a chunk of tokens of one head, shared by cpu_wkv.c, cpu_wkv-chunk.c and
 * cpu_wkv-back.c. kernels/wkv.h has the formulas and defines D(q, t], A and the other letters. Rows
 * have `width` values: E rounded up to whole panels; the padding is zeros. */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/wkv.h"

enum { TOKENS = WKV_CHUNK, PAIR_ROW = 2 * TOKENS };

struct wkv_chunk {
    size_t E, width;
    int removes;   /* 1: RWKV 7 */
    size_t tokens; /* tokens that exist; wkv_chunk_scores() fills up to TOKENS with zeros that do
                    * not decay */
    size_t pairs;  /* rows of keys and values: TOKENS; RWKV 7: 2 TOKENS, with b and x */
    float *r, *a;  /* [TOKENS, width] */
    float *keys;   /* [2 TOKENS, width]: k, then b */
    float *values; /* [2 TOKENS, width]: v, then x */
    float *decay;  /* [TOKENS, width]: e^w */
    float *bonus;  /* [width]: u */
    float *left;   /* [2 TOKENS, width]: r D(0, t] (RWKV 6: r D(0, t-1]), then a D(0, t-1] */
    float *moved;  /* [2 TOKENS, width]: keys D(q, C] */
    float *whole;  /* [width]: D(0, C] */
    float *near, *step, *borders; /* values of sub-chunks, see cpu_wkv-chunk.c */
    float *read;   /* [TOKENS, PAIR_ROW]: A^rk, A^rb */
    float *solve;  /* [TOKENS, PAIR_ROW]: A^ak, A^ab */
    int cleared;   /* 1: entries of read and solve whose token is before the key are already zero */
    int last;      /* 1: no chunk follows, so nothing is prefetched */
    const float *next[7]; /* arrays of the next chunk: r, k, v, w, a, b, y */
    size_t stride, sources;
    size_t source, fetched; /* prefetched so far: `fetched` rows of all `sources` arrays, and the
                             * next row of the first `source` arrays */
};

/* wkv_chunk_floats() returns the floats that the arrays of a chunk take; wkv_chunk_cut() places the
 * arrays at `at`, which is 64-byte aligned. */
size_t CPU(wkv_chunk_floats)(size_t E);
struct wkv_chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, float *at);
/* Loads tokens row .. row + n - 1 of a head. */
void CPU(wkv_chunk_load)(struct wkv_chunk *chunk, const struct wkv_rows *in, size_t row, size_t n,
                         size_t head);
/* Prefetches rows of the next chunk into the L2 cache, because rows of a head lie too far apart for
 * the processor to prefetch. It is called for a few rows at a time while this chunk is computed,
 * because a processor waits when too many reads are in flight. */
void CPU(wkv_chunk_fetch)(struct wkv_chunk *chunk, size_t rows);
/* Pads the chunk to TOKENS; then computes left, moved, whole, read and solve. */
void CPU(wkv_chunk_scores)(struct wkv_chunk *chunk);
/* Computes x of all tokens; state[width, width] is the state before the chunk. */
void CPU(wkv_chunk_solve)(struct wkv_chunk *chunk, const float *state);
/* Writes y of the tokens; rows of y hold all heads. Overwrites the part of `left` that belongs to
 * a. */
void CPU(wkv_chunk_read)(struct wkv_chunk *chunk, const float *state, float *y);
/* Replaces the state before the chunk by the state behind it. */
void CPU(wkv_chunk_carry)(struct wkv_chunk *chunk, float *state);

INLINE size_t wkv_width(size_t E) { return (E + PANEL - 1) / PANEL * PANEL; }

/* A product of decays. A product too small for any fp32 sum becomes zero, because arithmetic on
 * subnormal numbers is slow; the product of two remaining values is not subnormal. */
INLINE vec wkv_both(vec x, vec y)
{
    const vec z = x * y;
    return pick(z < 1e-18f, splat(0), z);
}

/* to[rows, wide] = from[rows, n], whose rows are `stride` apart, padded with zeros; n <= wide. */
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
