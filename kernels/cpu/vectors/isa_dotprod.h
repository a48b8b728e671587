/* isa_dotprod.h - level neon with the instruction sdot, which adds the products of four bytes to
 * each lane. */
#pragma once

enum { LANES = 4, TILE_ROWS = 12, BF16_DOT = 0, INT8_STEP = 4, INT8_ROWS = 1 };
#include "kernels/cpu/vectors/neon.h"

#include "kernels/cpu/vectors/int8_signed.h"

/* sum += the products of each lane: codes of w times the codes of a row in x. A load serves four
 * rows, because sdot takes its second factor from any lane. (x may be read up to the next multiple
 * of four rows: a block has room for TILE_ROWS.) */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    int32x4_t to = (int32x4_t)sum;
    int8x16_t code = (int8x16_t)w, four = (int8x16_t)load_bits(x + row / 4 * 4);
    switch (row % 4) { /* the intrinsic needs a constant */
    case 0:
        return (veci)vdotq_laneq_s32(to, code, four, 0);
    case 1:
        return (veci)vdotq_laneq_s32(to, code, four, 1);
    case 2:
        return (veci)vdotq_laneq_s32(to, code, four, 2);
    default:
        return (veci)vdotq_laneq_s32(to, code, four, 3);
    }
}

INLINE veci q4_add(veci sum, int8_weights w, const uint32_t *x, int row)
{
    return dot_int8(sum, w, x, row);
}
