/* tile.h - the inner product kernel of strided float operands: training.
 *
 *            K                    PANEL = 2 registers
 *        a ┌─────┐            m ┌──────┐
 *   rows   │ ... │ x          K │      │   =  c [rows, PANEL], held in rows x 2 registers
 *   <= 12  └─────┘              └──────┘
 *
 * For each k one row of m is loaded, each a(i, k) is broadcast, and rows x 2 fused multiply-adds
 * run. Every output has one accumulator and k ascends, so the shape of the tile never shows in the
 * result.
 */
#ifndef KERNELS_CPU_TILE_H
#define KERNELS_CPU_TILE_H

#include "kernels/cpu/format.h"

/* Where a tile reads and writes: a(i,k) = a[i*a_row + k*a_k], m(k, j) = m[k*m_k + j],
 * c(i, j) = c[i*ldc + j] for j < cols <= PANEL. m must be readable PANEL wide. */
struct tile {
    const float *a;
    size_t a_row, a_k;
    const float *m;
    size_t m_k, K;
    float *c;
    size_t ldc, cols;
    int add;
};

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

INLINE void tile_rows(const int rows, const struct tile *t)
{
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    const float *a = t->a, *m = t->m;
    const size_t a_row = t->a_row, a_k = t->a_k, m_k = t->m_k;
    for (size_t k = t->K; k > 0; k--) {
        vec lo = load(m), hi = load(m + LANES);
        for (int i = 0; i < rows; i++) {
            float x = a[(size_t)i * a_row];
            sum[i][0] += x * lo;
            sum[i][1] += x * hi;
        }
        a += a_k;
        m += m_k;
    }
    for (int i = 0; i < rows; i++)
        tile_store(t->c + (size_t)i * t->ldc, sum[i][0], sum[i][1], t->cols, t->add);
}

/* Runs one tile of 1..TILE_ROWS rows. */
INLINE void tile_run(size_t rows, const struct tile *t)
{
#define KERNEL(n) tile_rows(n, t)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}

/* c[M, N] (+)= a[M, K] m[K, N] on one thread; m is readable to a multiple of PANEL columns, or N is
 * one. Columns outside, rows inside: a panel of m stays in the nearest cache for all rows. */
void CPU(product)(size_t M, size_t N, size_t K, const float *a, size_t a_row, size_t a_k,
                  const float *m, size_t m_k, float *c, size_t ldc, int add);

#endif
