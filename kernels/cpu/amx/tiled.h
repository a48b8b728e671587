/* tiled.h - products of bf16 pairs on tiles (amx_tiles.h) where neither factor is a weight matrix.
 * In attention both factors already are rows of words that tiles can load, so only the last words
 * of K, fewer than a tile, are packed. gemm.c packs both factors. Sums have the order of
 * amx_bf16.c. A tile is filled up with words of zeros, which change no bit. */
#pragma once

#include "kernels/cpu/amx/amx_tiles.h"

/* Cuts for gemm.c. TILED_ROWS: rows of a strip of a. TILED_STEP: words of K at a time. TILED_NEAR:
 * bytes of strips that stay in the L2 cache. */
enum {
    TILED = 1,
    TILED_ROWS = TMM_ROWS,
    TILED_STEP = TMM_CHUNK * TMM_BYTES / 4,
    TILED_NEAR = TMM_NEAR
};

INLINE void tiled_begin(void) { amx_begin(TMM_ROWS); }
INLINE void tiled_end(void) { tmm_release(); }

/* out[height, width] = from[rows, n], padded with zeros; rows of `from` are ld words apart. */
INLINE void tiled_pad(uint32_t *out, size_t height, size_t width, const uint32_t *from, size_t ld,
                      size_t rows, size_t n)
{
    memset(out, 0, height * width * sizeof *out);
    for (size_t i = 0; i < rows; i++)
        memcpy(out + i * width, from + i * ld, n * sizeof *out);
}

INLINE void tiled_step(const int two, const uint32_t *left, size_t lda, const uint32_t *right,
                       size_t ldm)
{
    tmm_load(6, right, ldm * 4);
    tmm_load(7, right + LANES, ldm * 4);
    tmm_load(4, left, lda * 4);
    if (two)
        tmm_load(5, left + TMM_ROWS * lda, lda * 4);
    tmm_bf16(0, 4, 6);
    tmm_bf16(1, 4, 7);
    if (two) {
        tmm_bf16(2, 5, 6);
        tmm_bf16(3, 5, 7);
    }
}

INLINE void tiled_rows(const int two, size_t cols, size_t K, float *out, size_t ldo,
                       const uint32_t *left, size_t lda, const uint32_t *right, size_t ldm)
{
    enum { STEP = TMM_BYTES / 4 };
    const size_t whole = K / STEP * STEP, rest = K - whole;
    _Alignas(64) uint32_t a_rest[2 * TMM_ROWS * STEP], m_rest[STEP * PANEL];
    if (rest)
        tiled_pad(a_rest, two ? 2 * TMM_ROWS : TMM_ROWS, STEP, left + whole, lda,
                  two ? 2 * TMM_ROWS : TMM_ROWS, rest);
    for (size_t column = 0; column < cols; column += PANEL) {
        amx_zero(two);
        for (size_t k = 0; k < whole; k += STEP)
            tiled_step(two, left + k, lda, right + k * ldm + column, ldm);
        if (rest) {
            tiled_pad(m_rest, STEP, PANEL, right + whole * ldm + column, ldm, rest, PANEL);
            tiled_step(two, a_rest, STEP, m_rest, PANEL);
        }
        tmm_store(0, out + column, ldo * 4);
        tmm_store(1, out + column + LANES, ldo * 4);
        if (two) {
            tmm_store(2, out + TMM_ROWS * ldo + column, ldo * 4);
            tmm_store(3, out + TMM_ROWS * ldo + column + LANES, ldo * 4);
        }
    }
}

/* out[rows, cols] = left[rows, K] right[K, cols], K counted in words of two bf16. rows: 16 or 32.
 * cols: a multiple of PANEL. Row strides: ldo, lda, ldm words. */
INLINE void tiled_product(size_t rows, size_t cols, size_t K, float *out, size_t ldo,
                          const uint32_t *left, size_t lda, const uint32_t *right, size_t ldm)
{
    if (rows > TMM_ROWS)
        tiled_rows(1, cols, K, out, ldo, left, lda, right, ldm);
    else
        tiled_rows(0, cols, K, out, ldo, left, lda, right, ldm);
}

/* sums[16, PANEL] = left b, or += if `more` is 1, over `words` words of K, a multiple of a tile.
 * left: 16 rows, tile by tile. a_next: the next 16 rows, whose sums follow; or NULL. b:
 * [words][PANEL]. */
INLINE void tiled_strips(float *sums, const uint32_t *left, const uint32_t *a_next,
                         const uint32_t *b, size_t words, int more)
{
    const struct amx_block k = {.sums = sums, .fresh = !more, .a = (const char *)left,
                                .a_next = (const char *)a_next, .height = TMM_ROWS,
                                .step_bytes = TMM_ROWS * TMM_BYTES, .b = (const char *)b,
                                .steps = words * 4 / TMM_BYTES};
    if (a_next)
        amx_multiply(0, 1, 1, &k);
    else
        amx_multiply(0, 0, 1, &k);
}
