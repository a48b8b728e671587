/* isa_i8mm.h - level neon with the instruction smmla, which multiplies two rows of eight bytes by
 * eight bytes of two outputs. */
#pragma once

enum { LANES = 4, TILE_ROWS = 12, BF16_DOT = 0, INT8_STEP = 8, INT8_ROWS = 2 };
#include "kernels/cpu/vectors/neon.h"

#include "kernels/cpu/vectors/int8_signed.h"

/* sum += products of the pair of rows in x that `row` belongs to, as pair_sums() of cpu_format.h
 * orders sums: an even `row` takes the first two outputs of w, an odd one the others. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    int8x16_t codes, pair = (int8x16_t)load_bits(x + row / 2 * 2 * INT8_WORDS);
    memcpy(&codes, (const char *)&w + row % 2 * (int)sizeof codes, sizeof codes);
    return (veci)vmmlaq_s32((int32x4_t)sum, pair, codes);
}

INLINE veci q4_add(veci sum, int8_weights w, const uint32_t *x, int row)
{
    return dot_int8(sum, w, x, row);
}
