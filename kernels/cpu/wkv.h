/* wkv.h - a chunk of tokens of one head, as wkv.c and wkv-back.c share it; the formulas are those
 * of kernels/wkv.h. Rows are as wide as E rounded up to whole panels; what is beyond E is zeros. */
#ifndef KERNELS_CPU_WKV_H
#define KERNELS_CPU_WKV_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile.h"
#include "kernels/wkv.h"

enum { TOKENS = WKV_CHUNK, PAIR_ROW = 2 * TOKENS };

struct chunk {
    size_t E, width;
    int removes;   /* RWKV 7 */
    size_t tokens; /* those behind them, up to TOKENS, are zeros that do not decay (chunk_pad) */
    size_t pairs;  /* rows of keys and values: TOKENS, or 2 TOKENS with b and x */
    float *r, *a;  /* [TOKENS, width] */
    float *keys;   /* [2 TOKENS, width]: k, then b */
    float *values; /* [2 TOKENS, width]: v, then x */
    float *decay;  /* [TOKENS, width]: e^w */
    float *bonus;  /* [width]: u */
    float *before; /* [TOKENS + 1, width]: D(0, t-1]; the last row is that of the whole chunk */
    float *after;  /* [TOKENS, width]: D(t, C] */
    float *scaled; /* [2 TOKENS, width] */
    float *read;   /* [TOKENS, PAIR_ROW]: A^rk, A^rb */
    float *solve;  /* [TOKENS, PAIR_ROW]: A^ak, A^ab */
    float *partial;
};

/* Floats of a chunk's arrays; and where they begin in `at`, 64-byte aligned. */
size_t CPU(wkv_chunk_floats)(size_t E);
struct chunk CPU(wkv_chunk_cut)(const struct wkv_rows *in, size_t h, float *at);
/* Tokens row .. row + n - 1 of head h. */
void CPU(wkv_chunk_load)(struct chunk *c, const struct wkv_rows *in, size_t row, size_t n,
                         size_t h);
/* Fills the chunk up to TOKENS, and before and after. */
void CPU(wkv_chunk_pad)(struct chunk *c);
/* read and solve. */
void CPU(wkv_chunk_scores)(struct chunk *c);
/* x of all tokens, S[width, width] being the state before the chunk. */
void CPU(wkv_chunk_solve)(struct chunk *c, const float *S);
/* S becomes the state behind the chunk. */
void CPU(wkv_chunk_carry)(struct chunk *c, float *S);
/* scaled = r D(0, t] or, as RWKV 6 reads, r D(0, t-1]; then a D(0, t-1]. scaled = keys D(q, C]. */
void CPU(wkv_chunk_scale_left)(struct chunk *c);
void CPU(wkv_chunk_scale_keys)(struct chunk *c);
/* c[M, N] (+)= a[M, K] m[K, N], the strides and pointers being those of `t`. */
void CPU(wkv_product)(size_t M, size_t N, size_t K, struct tile t);

INLINE size_t wkv_width(size_t E) { return (E + PANEL - 1) / PANEL * PANEL; }

/* to[rows, wide] = from[rows, n], rows `stride` apart; zeros beyond, n <= wide. */
INLINE void wkv_rows_in(float *to, size_t wide, const float *from, size_t stride, size_t rows,
                        size_t n)
{
    for (size_t t = 0; t < rows; t++) {
        memcpy(to + t * wide, from + t * stride, n * sizeof *to);
        if (n < wide)
            memset(to + t * wide + n, 0, (wide - n) * sizeof *to);
    }
}

/* The way back. */
INLINE void wkv_rows_out(float *to, size_t stride, const float *from, size_t wide, size_t rows,
                         size_t n)
{
    for (size_t t = 0; t < rows; t++)
        memcpy(to + t * stride, from + t * wide, n * sizeof *to);
}

#endif
