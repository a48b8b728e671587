/* amx_bf16.c - products of bf16 weights on tiles. Activations are rounded to bf16 (BF16) or not
 * (BF16_F32).
 *
 * A panel of format_bf16.c is [K/2][PANEL] pairs; 16 rows of pairs are a step. Rows of x as pairs,
 * [step][rows][64 bytes], are tiles already. A float is exactly the sum of three bf16: each part
 * takes 8 of the 24 bits of the fraction, the highest first. So BF16_F32 is three products with the
 * same weights, and its sums are as exact as sums of products of floats (ops.h), unless a part is
 * below 2^-126 or a weight is infinite.
 *
 * Order of sums: an instruction adds 16 products to each of two sums that start at zero (one for
 * even k, one for odd k), k ascending, and adds both sums to the tile. All operations are fp32, to
 * nearest even, fused, with subnormal inputs and outputs as zeros. */
#include "kernels/cpu/amx/amx_tiles.h"
#include "kernels/host.h"

enum { VALUES = TMM_BYTES / 2, THREE = 3 };

/* Packs one step of a row tile, the values from k on, in as many parts as the format has. */
static void pack_step(const struct amx_rows *amx_rows, size_t tile, const float *x, size_t k)
{
    float rest[TMM_ROWS * VALUES] = {0};
    const size_t rows = amx_height(amx_rows, tile),
                 n = amx_rows->K - k < VALUES ? amx_rows->K - k : VALUES;
    char *out = OWN_CPU(amx_at)(amx_rows, tile, k / VALUES);
    for (size_t i = 0; i < rows; i++)
        memcpy(rest + i * VALUES, x + (tile * TMM_ROWS + i) * amx_rows->K + k, n * sizeof *rest);
    for (size_t which = 0; which < amx_rows->f->parts;
         which++, out += amx_rows->height * TMM_BYTES) {
        CPU(pack_pairs)(out, rest, VALUES, amx_rows->height, VALUES);
        const uint16_t *part = (const uint16_t *)(const void *)out;
        for (size_t i = 0; i < rows * VALUES && which + 1 < amx_rows->f->parts; i++) {
            float left = rest[i] - bf16_float(part[i]);
            rest[i] = left - left == 0 ? left : 0; /* an infinity or NaN has no further part */
        }
    }
}

void OWN_CPU(amx_pack)(const struct amx_rows *rows, size_t tile, const float *x)
{
    const size_t whole = amx_height(rows, tile) == rows->height && rows->f->parts == 1
                             ? rows->K / VALUES
                             : 0;
    for (size_t step = 0; step < whole; step += rows->stage) {
        size_t n = whole - step < rows->stage ? whole - step : rows->stage;
        CPU(pack_pairs)(OWN_CPU(amx_at)(rows, tile, step),
                        x + tile * TMM_ROWS * rows->K + step * VALUES, rows->K, rows->height,
                        n * VALUES);
    }
    for (size_t k = whole * VALUES; k < rows->K; k += VALUES)
        pack_step(rows, tile, x, k);
}

const void *OWN_CPU(amx_padded)(struct amx_room *room, const void *at, size_t there, size_t n)
{
    if (n * AMX_STEP <= there)
        return at;
    memcpy(room->weights, at, there);
    memset((char *)room->weights + there, 0, n * AMX_STEP - there);
    return room->weights;
}

static const void *weights(struct amx_room *room, const void *panel, size_t K, size_t step,
                           size_t n)
{
    size_t bytes = (K + 1) / 2 * PANEL * sizeof(uint32_t), first = step * AMX_STEP;
    return OWN_CPU(amx_padded)(room, (const char *)panel + first, bytes - first, n);
}

static void multiply(const struct amx_block *k)
{
    if (k->a_next)
        amx_multiply(0, 1, 1, k);
    else
        amx_multiply(0, 0, 1, k);
}

static void multiply_parts(const struct amx_block *k)
{
    if (k->a_next)
        amx_multiply(0, 1, THREE, k);
    else
        amx_multiply(0, 0, THREE, k);
}

const struct amx_format OWN_CPU(amx_bf16) = {
    .values = VALUES, .parts = 1, .stored_bytes = AMX_STEP, .distance = 8192,
    .pack = OWN_CPU(amx_pack), .weights = weights, .multiply = multiply,
};
const struct amx_format OWN_CPU(amx_bf16_f32) = {
    .values = VALUES, .parts = THREE, .stored_bytes = AMX_STEP, .distance = 8192,
    .pack = OWN_CPU(amx_pack), .weights = weights, .multiply = multiply_parts,
};
