/* tile.h - computes c = a m or c += a m with the sums in registers, for up to TILE_ROWS rows and
 * PANEL columns with any strides. An element is a 32-bit word: a float, or a pair of bf16 (an even
 * k and k + 1). */
#pragma once

#include "kernels/cpu/level.h"

/* The addresses that a tile reads and writes, with strides in words: a(i, k) = a[i*a_row + k*a_k],
 * m(k, j) = m[k*m_k + j], c(i, j) = c[i*ldc + j] for j < cols <= PANEL. Rows of m must be readable
 * for PANEL columns. */
struct tile {
    const void *a; /* words */
    size_t a_row, a_k;
    const void *m;
    size_t m_k, K;
    float *c;
    size_t ldc, cols;
    int add;
};

INLINE const void *word_at(const void *words, size_t i)
{
    return (const char *)words + i * sizeof(uint32_t);
}

INLINE uint32_t word(const char *at)
{
    uint32_t w;
    memcpy(&w, at, sizeof w);
    return w;
}

INLINE void tile_store(float *c, vec lo, vec hi, size_t cols, int add)
{
    if (cols == PANEL) {
        put(c, add ? load(c) + lo : lo);
        put(c + LANES, add ? load(c + LANES) + hi : hi);
        return;
    }
    float row[PANEL];
    put(row, lo);
    put(row + LANES, hi);
    for (size_t j = 0; j < cols; j++)
        c[j] = add ? c[j] + row[j] : row[j];
}

INLINE void tile_rows(const int rows, const int pairs, const struct tile *tile)
{
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    const char *left = tile->a, *right = tile->m;
    const size_t size = sizeof(uint32_t), a_row = tile->a_row * size;
    const size_t a_k = tile->a_k * size, m_k = tile->m_k * size;
    for (size_t k = tile->K; k > 0; k--) {
        vecu lo = load_bits(right), hi = load_bits(right + LANES * size);
        for (int i = 0; i < rows; i++) {
            vecu x = splat_bits(word(left + (size_t)i * a_row));
            sum[i][0] = pairs ? dot_bf16(sum[i][0], lo, x) : sum[i][0] + (vec)x * (vec)lo;
            sum[i][1] = pairs ? dot_bf16(sum[i][1], hi, x) : sum[i][1] + (vec)x * (vec)hi;
        }
        left += a_k;
        right += m_k;
    }
    for (int i = 0; i < rows; i++)
        tile_store(tile->c + (size_t)i * tile->ldc, sum[i][0], sum[i][1], tile->cols, tile->add);
}
