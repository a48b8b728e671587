/* format_f16.c - weights in fp16, activations rounded to fp16, products and sums in fp32.
 *
 * Panel: [K][PANEL] halves. Block and tile are those of tile_wide.h, with each value of the block
 * rounded to the nearest fp16 number. |x| >= 65520 becomes infinite, as in a model that computes in
 * fp16. */
#include <math.h>

#include "kernels/cpu/format/cpu_format.h"
#include "kernels/levels.h"

static size_t panel_bytes(size_t K) { return (K * PANEL * sizeof(uint16_t) + 63) / 64 * 64; }

static void pack_panel(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch)
{
    enum { STEP = 32 }; /* columns at a time: the lines being written stay in the L1 cache */
    uint16_t *out = panel;
    const float *w = source->f32 ? source->f32 + first * source->cols : scratch;
    if (!source->f32)
        source->floats(source, first, count, scratch);
    if (count < PANEL)
        memset(panel, 0, panel_bytes(source->cols));
    for (size_t k0 = 0; k0 < source->cols; k0 += STEP) {
        size_t k1 = source->cols - k0 < STEP ? source->cols : k0 + STEP;
        for (size_t j = 0; j < count; j++)
            for (size_t k = k0; k < k1; k++)
                out[k * PANEL + j] = f16_of(w[j * source->cols + k]);
    }
}

/* Rounds lanes to fp16. Adding 2^13 times the power of two of |x| leaves only the upper 11 bits of
 * x in the sum; then the number is subtracted again. */
INLINE vec half_round(vec x)
{
    const vecu least = splat_bits(0x38800000), most = splat_bits(0x47000000); /* 2^-14, 2^15 */
    vecu sign = (vecu)x & 0x80000000u, size = (vecu)x & 0x7fffffffu;
    vecu power = size & 0x7f800000u;
    power = pick_bits(power < least, least, power);
    power = pick_bits(power > most, most, power);
    vec push = (vec)(power + (13u << 23)), near = ((vec)size + push) - push;
    near = pick(near > 65504.0f, splat(INFINITY), near);
    return (vec)((vecu)near | sign);
}

static void pack_rows(void *block, const float *x, size_t ldx, size_t rows, size_t K)
{
    float *out = block;
    for (size_t k = 0; k < K; k += LINE)
        for (size_t i = 0; i < rows; i++, out += LINE) {
            const float *from = x + i * ldx + k;
            size_t n = K - k < LINE ? K - k : LINE, j = 0;
            for (; j + LANES <= n; j += LANES)
                put(out + j, half_round(load(from + j)));
            for (; j < n; j++)
                out[j] = f16_float(f16_of(from[j]));
        }
}

/* Converts LANES halves to floats, as f16_float() does. */
INLINE vec load_half(const uint16_t *p)
{
    vech h;
    memcpy(&h, p, sizeof h);
    vecu u = __builtin_convertvector(h, vecu), size = u & 0x7fff;
    vec value = (vec)(size << 13) * 0x1p112f;
    vecu odd = (vecu)(size >= 0x7c00) & 0x7f800000u;
    return (vec)((vecu)value | odd | (u & 0x8000) << 16);
}

#define WEIGHT uint16_t
#define WIDEN load_half
#include "kernels/cpu/format/tile_wide.h"

static void row(float *out, const void *panel, size_t j, size_t K)
{
    const uint16_t *w = panel;
    for (size_t k = 0; k < K; k++)
        out[k] = f16_float(w[k * PANEL + j]);
}

const struct format CPU(format_f16) = {panel_bytes, block_bytes, pack_panel, pack_rows,
                                       tile,        row,         8192, TILE_ROWS};
