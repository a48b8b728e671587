/* four_lanes.h - primitives for vectors of four lanes, in the compiler's own vectors, shared by
 * portable and the levels of aarch64. The level defines how many rows a tile has. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

/* a > b ? a : b and a < b ? a : b; b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return pick(a > b, a, b); }
INLINE vec vmin(vec a, vec b) { return pick(a < b, a, b); }

/* Interleaves the lanes of a and b: their first halves (low), their second halves (high). */
INLINE vecu zip_low(vecu a, vecu b) { return (vecu){a[0], b[0], a[1], b[1]}; }
INLINE vecu zip_high(vecu a, vecu b) { return (vecu){a[2], b[2], a[3], b[3]}; }

#include "kernels/cpu/vectors/lanes.h"

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }

/* LANES values of the dynamic map. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    vec out = {0};
    for (int i = 0; i < LANES; i++)
        out[i] = map[code[i]];
    return out;
}
