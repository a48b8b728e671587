/* int8_plain.h - int8 codes in the compiler's own vectors, for a level without instructions for
 * them. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* A step is four codes of each output. Its activation codes k..k+3 are two 32-bit words, (k, k + 2)
 * and (k + 1, k + 3) as int16. */
enum { INT8_STEP = 4, INT8_WORDS = 2, INT8_BIAS = 0, INT8_ROWS = 1 };
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

/* The products of each lane: bytes of w times the codes of a row in x, as pairs of int16. */
INLINE vecs byte_pairs(vecu w, const uint32_t *x, int row)
{
    x += row * INT8_WORDS;
    return even_bytes(w) * (vecs)splat_bits(x[0]) + odd_bytes(w) * (vecs)splat_bits(x[1]);
}

/* sum += the products of each lane: codes of w times the codes of a row in x. The two products of a
 * half lane fit 16 bits: 2 * 128 * 127 < 2^15. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    vecs pairs = byte_pairs(w, x, row);
    return sum + ((veci)((vecu)pairs << 16) >> 16) + ((veci)pairs >> 16);
}

/* Q4: the words of int8. Sums are pairs of int16, of k and k + 1 and of k + 2 and k + 3 of every
 * four. */
enum { Q4_STEP = 4, Q4_WORDS = INT8_WORDS };
INLINE void q4_words(uint32_t *out, const int8_t code[4]) { int8_words(out, code); }

INLINE uint32_t q4_start(int low, int high)
{
    return (uint16_t)low | (uint32_t)(uint16_t)high << 16;
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes of a row in x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x, int row)
{
    return (veci)((vecs)sum + byte_pairs(w, x, row));
}

/* The sums as int32. */
INLINE veci q4_total(veci sum) { return ((veci)((vecu)sum << 16) >> 16) + (sum >> 16); }
