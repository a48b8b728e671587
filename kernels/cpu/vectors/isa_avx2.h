/* isa_avx2.h - AVX2 and FMA, 256-bit vectors, 16 registers. */
#pragma once

enum { LANES = 8, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include <immintrin.h>

#include "kernels/cpu/vectors/int8_words.h"

/* The codes at p of a step of LANES outputs. */
INLINE int8_weights int8_load(const void *p)
{
    return (int8_weights)_mm256_cvtepi8_epi16(_mm_loadu_si128(p));
}

/* sum += the products of each lane: codes of w times the codes of a row in x. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    sum += (veci)_mm256_madd_epi16((__m256i)w, (__m256i)splat_bits(x[row]));
    return (veci)settled((vecu)sum);
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes of a row in x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x, int row)
{
    __m256i pairs = _mm256_maddubs_epi16((__m256i)w, (__m256i)splat_bits(x[row]));
    return (veci)settled((vecu)_mm256_add_epi16((__m256i)sum, pairs));
}

/* The sums as int32. */
INLINE veci q4_total(veci sum)
{
    return (veci)_mm256_madd_epi16((__m256i)sum, _mm256_set1_epi16(1));
}

#include "kernels/cpu/vectors/avx2.h"
