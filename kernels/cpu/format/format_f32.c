/* format_f32.c - weights and activations in fp32.
 *
 * Panel: [K][PANEL] floats. Block and tile are those of tile_wide.h. Packing copies values and
 * changes none. */
#include "kernels/cpu/format/cpu_format.h"

static size_t panel_bytes(size_t K) { return K * PANEL * sizeof(float); }

static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    enum { STEP = 16 }; /* columns at a time: the lines being written stay in the L1 cache */
    float *out = panel;
    const float *w = source->f32 ? source->f32 + first * source->cols : scratch;
    if (!source->f32)
        source->floats(source, first, count, scratch);
    for (size_t k0 = 0; k0 < source->cols; k0 += STEP) {
        size_t k1 = source->cols - k0 < STEP ? source->cols : k0 + STEP;
        for (size_t j = 0; j < count; j++)
            for (size_t k = k0; k < k1; k++)
                out[k * PANEL + j] = w[j * source->cols + k];
        for (size_t k = k0; k < k1; k++)
            memset(out + k * PANEL + count, 0, (PANEL - count) * sizeof *out);
    }
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    float *out = block;
    for (size_t k = 0; k < K; k += LINE)
        for (size_t i = 0; i < rows; i++, out += LINE)
            if (K - k >= LINE) /* a copy of constant size compiles to a few moves */
                memcpy(out, x + i * ldx + k, LINE * sizeof *out);
            else
                memcpy(out, x + i * ldx + k, (K - k) * sizeof *out);
}

#define WEIGHT float
#define WIDEN load
#include "kernels/cpu/format/tile_wide.h"

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const float *w = panel;
    for (size_t k = 0; k < K; k++)
        out[k] = w[k * PANEL + j];
}

const struct format CPU(format_f32) = {panel_bytes, block_bytes, pack_panel,
                                       pack_rows,   tile,        row, 8192, TILE_ROWS};
