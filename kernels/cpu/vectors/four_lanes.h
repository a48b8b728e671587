/* four_lanes.h - primitives for vectors of four lanes, in the compiler's own vectors, shared by
 * neon and portable. The level defines how many rows a tile has. */
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

/* ---- int8 and nf4, without instructions for them ---- */

/* A step is four codes of each output. Its activation codes k..k+3 are two 32-bit words, (k, k + 2)
 * and (k + 1, k + 3) as int16. */
enum { INT8_STEP = 4, INT8_WORDS = 2, INT8_BIAS = 0 };
typedef int16_t vecs __attribute__((vector_size(LANES * 4)));
typedef vecu int8_weights;

INLINE void int8_words(uint32_t *out, const int8_t code[INT8_STEP])
{
    out[0] = (uint16_t)code[0] | (uint32_t)(uint16_t)code[2] << 16;
    out[1] = (uint16_t)code[1] | (uint32_t)(uint16_t)code[3] << 16;
}

/* Bytes 0 and 2, or 1 and 3, of each 32-bit lane, widened. */
INLINE vecs even_bytes(vecu w) { return (vecs)(w << 8) >> 8; }
INLINE vecs odd_bytes(vecu w) { return (vecs)w >> 8; }

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p) { return load_bits(p); }

/* sum += the products of each lane: codes of w times the codes at x. The two products of a half
 * lane fit 16 bits: 2 * 128 * 127 < 2^15. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x)
{
    vecs pairs = even_bytes(w) * (vecs)splat_bits(x[0]) + odd_bytes(w) * (vecs)splat_bits(x[1]);
    return sum + ((veci)((vecu)pairs << 16) >> 16) + ((veci)pairs >> 16);
}

/* Q4: the words of int8. Sums are pairs of int16, of k and k + 1 and of k + 2 and k + 3 of every
 * four. */
enum { Q4_WORDS = INT8_WORDS };
INLINE void q4_words(uint32_t *out, const int8_t code[4]) { int8_words(out, code); }

INLINE uint32_t q4_start(int low, int high)
{
    return (uint16_t)low | (uint32_t)(uint16_t)high << 16;
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes at x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x)
{
    vecs pairs = even_bytes(w) * (vecs)splat_bits(x[0]) + odd_bytes(w) * (vecs)splat_bits(x[1]);
    return (veci)((vecs)sum + pairs);
}

/* The sums as int32. */
INLINE veci q4_total(veci sum) { return ((veci)((vecu)sum << 16) >> 16) + (sum >> 16); }

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

/* LANES values of the dynamic map. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    vec out = {0};
    for (int i = 0; i < LANES; i++)
        out[i] = map[code[i]];
    return out;
}
