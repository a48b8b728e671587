/* isa_avx512.h - AVX-512 (F, BW, DQ, VL), 512-bit vectors, 32 registers. */
#pragma once

enum { LANES = 16, TILE_ROWS = 12, BF16_DOT = 0 };
#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include <immintrin.h>

#include "kernels/cpu/vectors/int8_words.h"

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p)
{
    return (int8_weights)_mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}

/* sum += the products of each lane: codes of w times the codes of a row in x. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    sum += (veci)_mm512_madd_epi16((__m512i)w, (__m512i)splat_bits(x[row]));
    return (veci)settled((vecu)sum);
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes of a row in x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x, int row)
{
    __m512i pairs = _mm512_maddubs_epi16((__m512i)w, (__m512i)splat_bits(x[row]));
    return (veci)settled((vecu)_mm512_add_epi16((__m512i)sum, pairs));
}

/* The sums as int32. */
INLINE veci q4_total(veci sum)
{
    return (veci)_mm512_madd_epi16((__m512i)sum, _mm512_set1_epi16(1));
}

#include "kernels/cpu/vectors/avx512.h"
