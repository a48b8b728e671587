/* draw.h - random weights for -m synth:NAME. A weight is a function of (seed, role, layer, index),
 * so a device makes the same weights as the host without a transfer.
 *
 * One Philox block gives eight 16-bit numbers. Each number picks one of 65536 equally likely
 * quantiles of a normal distribution. This is finer than bf16, and a weight costs only an eighth of
 * a block. */
#pragma once

#include "lib/base/philox.h"

enum { DRAW_QUANTILES = 65536, DRAW_BLOCK = 8 };
struct draw {
    const float *table; /* [DRAW_QUANTILES], host memory */
    uint64_t seed;
    uint32_t role, layer;
};

/* out[8] = weights 8 block .. 8 block + 7 of a matrix, row-major. table: draw.table, or a copy of
 * that table in memory that the caller can read. */
HOST_DEVICE void draw_block(const struct draw *draw, const float *table, uint64_t block,
                            float out[DRAW_BLOCK])
{
    const uint32_t at[4] = {(uint32_t)block, (uint32_t)(block >> 32), draw->layer, draw->role};
    const uint32_t key[2] = {(uint32_t)draw->seed, (uint32_t)(draw->seed >> 32)};
    uint32_t bits[4];
    philox(at, key, bits);
    for (int j = 0; j < DRAW_BLOCK; j++)
        out[j] = table[bits[j / 2] >> (j % 2 ? 16 : 0) & 0xffff];
}
