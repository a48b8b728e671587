/* format_f32.c - weights and activations as floats.
 *
 * Panel: [K][PANEL]. Block: [K/LINE][rows][LINE]. For each k the tile loads one row of the panel (2
 * registers), broadcasts the k-th value of each row, and runs rows x 2 fused multiply-adds.
 */
#include "kernels/cpu/format.h"

static size_t panel_bytes(size_t K) { return K * PANEL * sizeof(float); }

static size_t block_bytes(size_t K)
{
    return (K + LINE - 1) / LINE * LINE * TILE_ROWS * sizeof(float);
}

static void pack_panel(void *panel, const struct mat_source *s, size_t first, size_t count,
                       float *scratch)
{
    enum { STEP = 16 }; /* columns at a time: the lines being written stay in the nearest cache */
    float *out = panel;
    const float *w = s->f32 ? s->f32 + first * s->cols : scratch;
    if (!s->f32)
        s->floats(s, first, count, scratch);
    for (size_t k0 = 0; k0 < s->cols; k0 += STEP) {
        size_t k1 = s->cols - k0 < STEP ? s->cols : k0 + STEP;
        for (size_t j = 0; j < count; j++)
            for (size_t k = k0; k < k1; k++)
                out[k * PANEL + j] = w[j * s->cols + k];
        for (size_t k = k0; k < k1; k++)
            memset(out + k * PANEL + count, 0, (PANEL - count) * sizeof *out);
    }
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    float *out = block;
    for (size_t k = 0; k < K; k += LINE)
        for (size_t i = 0; i < rows; i++, out += LINE)
            if (K - k >= LINE) /* a copy of constant size is a few moves */
                memcpy(out, x + i * ldx + k, LINE * sizeof *out);
            else
                memcpy(out, x + i * ldx + k, (K - k) * sizeof *out);
}

INLINE void tile_rows(const int rows, float *out, const float *x, const float *w, size_t K,
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
        vec lo = load(w), hi = load(w + LANES);
        for (int i = 0; i < rows; i++) {
            vec v = splat(from[i * LINE]);
            sum[i][0] += v * lo;
            sum[i][1] += v * hi;
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

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const float *w = panel;
    for (size_t k = 0; k < K; k++)
        out[k] = w[k * PANEL + j];
}

const struct format CPU(format_f32) = {panel_bytes, block_bytes, pack_panel,
                                       pack_rows,   tile,        row, 8192};
