/* neon.h - the primitives that the levels of aarch64 share. */
#pragma once

#include <arm_neon.h>

#include "kernels/cpu/vectors/four_lanes.h"

/* nf4: the low bytes and the high bytes of the 16 levels as bf16. */
typedef struct {
    uint8x16_t low, high;
} level_table;

INLINE level_table level_look(const uint16_t level[16])
{
    uint16x8_t a = vld1q_u16(level), b = vld1q_u16(level + 8);
    return (level_table){vcombine_u8(vmovn_u16(a), vmovn_u16(b)),
                         vcombine_u8(vshrn_n_u16(a, 8), vshrn_n_u16(b, 8))};
}

#include "kernels/cpu/vectors/nibbles_bytes.h"

/* The bf16 pairs of the levels for k = 2n, 2n + 1. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    uint8x16_t code = (uint8x16_t)codes;
    uint8x16_t at = n < 2 ? vandq_u8(code, vdupq_n_u8(15)) : vshrq_n_u8(code, 4);
    uint8x16_t low = vqtbl1q_u8(t.low, at), high = vqtbl1q_u8(t.high, at);
    return (vecu)(n % 2 ? vzip2q_u8(low, high) : vzip1q_u8(low, high));
}
