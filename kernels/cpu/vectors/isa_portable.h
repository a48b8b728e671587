/* isa_portable.h - any processor, 128-bit vectors, possibly only 16 registers. */
#pragma once

enum { LANES = 4, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/four_lanes.h"

#include "kernels/cpu/vectors/int8_plain.h"

typedef const uint16_t *level_table;

INLINE level_table level_look(const uint16_t level[16]) { return level; }

#include "kernels/cpu/vectors/nibbles.h"

/* The bf16 pairs of the levels for k = 2n, 2n + 1. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    vecu at = codes >> 4 * n, out = {0};
    for (int i = 0; i < LANES; i++)
        out[i] = t[at[i] & 15] | (uint32_t)t[at[i] >> 16 & 15] << 16;
    return out;
}
