/* isa_avx512bf16.h - AVX-512 with BF16, VNNI and VBMI, 512-bit vectors, 32 registers. */
#pragma once

#include <immintrin.h>

/* BF16_DOT: dot_bf16 is one instruction, so activations are stored as bf16 pairs too. */
enum { LANES = 16, TILE_ROWS = 12, BF16_DOT = 1 };
#include "kernels/cpu/vectors/vector.h"

/* sum += even(a) * even(b) + odd(a) * odd(b), lane by lane, over bf16 pairs; subnormal inputs count
 * as zero. */
INLINE vec dot_bf16(vec sum, vecu a, vecu b)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}

/* Lanes rounded to bf16; subnormal inputs count as zero. */
INLINE vech bf16_narrow(vec x) { return (vech)_mm512_cvtneps_pbh((__m512)x); }

/* int8: a step is four codes of each output. Its activation codes k..k+3 are one 32-bit word of
 * unsigned bytes, code + INT8_BIAS, the form of the first factor of vpdpbusd. */
enum { INT8_STEP = 4, INT8_WORDS = 1, INT8_BIAS = 128 };
typedef vecu int8_weights;

INLINE void int8_words(uint32_t *out, const int8_t code[INT8_STEP])
{
    uint32_t word;
    memcpy(&word, code, 4);
    *out = word ^ 0x80808080u;
}

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p) { return load_bits(p); }

/* sum += the products of each lane: codes of w times the codes at x. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x)
{
    return (veci)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)splat_bits(*x), (__m512i)w);
}

/* Q4: four activation codes are one word of signed bytes. */
enum { Q4_WORDS = 1 };
INLINE void q4_words(uint32_t *out, const int8_t code[4]) { memcpy(out, code, 4); }
INLINE uint32_t q4_start(int low, int high) { return (uint32_t)(low + high); }

/* sum += the products of each lane: bytes of w, 0..15, times the codes at x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x)
{
    return (veci)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)splat_bits(*x));
}

/* The sums as int32. */
INLINE veci q4_total(veci sum) { return sum; }

#include "kernels/cpu/vectors/avx512.h"
