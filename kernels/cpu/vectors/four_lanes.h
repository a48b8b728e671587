/* four_lanes.h - primitives for vectors of four lanes, in the compiler's own vectors, shared by
 * neon and portable. The level defines how many rows a tile has. */
#ifndef KERNELS_CPU_VECTORS_FOUR_LANES_H
#define KERNELS_CPU_VECTORS_FOUR_LANES_H

#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include "kernels/cpu/vectors/int8_words.h"

/* a > b ? a : b and a < b ? a : b; b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return pick(a > b, a, b); }
INLINE vec vmin(vec a, vec b) { return pick(a < b, a, b); }

/* Interleaves the lanes of a and b: their first halves (low), their second halves (high). */
INLINE vecu zip_low(vecu a, vecu b) { return (vecu){a[0], b[0], a[1], b[1]}; }
INLINE vecu zip_high(vecu a, vecu b) { return (vecu){a[2], b[2], a[3], b[3]}; }

#include "kernels/cpu/vectors/lanes.h"

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }

/* ---- int8 and nf4, without instructions for them ---- */

/* The two products of a half lane fit 16 bits: 2 * 128 * 127 < 2^15. */
INLINE veci dot_int8(veci sum, vecu w, const uint32_t *x)
{
    vecs pairs = even_bytes(w) * (vecs)splat_bits(x[0]) + odd_bytes(w) * (vecs)splat_bits(x[1]);
    return sum + ((veci)((vecu)pairs << 16) >> 16) + ((veci)pairs >> 16);
}

typedef const uint16_t *level_table;

INLINE level_table level_look(const uint16_t level[16]) { return level; }

/* The bf16 pairs of the levels for nibble n of every 16-bit lane. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    vecu at = codes >> 4 * n, out = {0};
    for (int i = 0; i < LANES; i++)
        out[i] = t[at[i] & 15] | (uint32_t)t[at[i] >> 16 & 15] << 16;
    return out;
}

/* LANES values of the dynamic map. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    vec out = {0};
    for (int i = 0; i < LANES; i++)
        out[i] = map[code[i]];
    return out;
}

#endif
