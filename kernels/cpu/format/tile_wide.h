/* tile_wide.h - the tile of formats whose weights are multiplied as floats. The including file
 * defines WEIGHT, the type of an element of a panel [K][PANEL], and WIDEN(p), which loads LANES
 * elements as floats.
 *
 * Block: floats [K/LINE][rows][LINE]. For each k the tile widens one row of the panel (2
 * registers), broadcasts the k-th value of each row, and runs rows x 2 fused multiply-adds. */
#pragma once

static size_t block_bytes(size_t K)
{
    return (K + LINE - 1) / LINE * LINE * TILE_ROWS * sizeof(float);
}

INLINE void tile_rows(const int rows, float *out, const float *x, const WEIGHT *w, size_t K,
                      struct ahead next)
{
    const size_t share = next.bytes / K;
    vec sum[TILE_ROWS][2];
    for (int i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = (vec){0};
    for (size_t k = 0; k < K; k++, w += PANEL) {
        fetch_ahead(next.at);
        next.at += share;
        const float *from = x + line_at(k, (size_t)rows);
        vec lo = WIDEN(w), hi = WIDEN(w + LANES);
        for (int i = 0; i < rows; i++) {
            vec value = splat(from[i * LINE]);
            sum[i][0] += value * lo;
            sum[i][1] += value * hi;
        }
    }
    for (int i = 0; i < rows; i++) {
        put(out + i * PANEL, sum[i][0]);
        put(out + i * PANEL + LANES, sum[i][1]);
    }
}

static void tile(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next)
{
#define KERNEL(n) tile_rows(n, out, block, panel, K, next)
    WITH_ROWS(rows, KERNEL)
#undef KERNEL
}
