/* avx512.h - the primitives that both AVX-512 levels share. */
#pragma once

#include <immintrin.h>

#include "kernels/cpu/vectors/vector.h"

/* The 16 levels as bf16, twice, because vpermw reads five bits of an index. */
typedef __m512i level_table;

INLINE level_table level_look(const uint16_t level[16])
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)level));
}

#include "kernels/cpu/vectors/nibbles.h"

/* The bf16 pairs of the levels for k = 2n, 2n + 1. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    return (vecu)_mm512_permutexvar_epi16((__m512i)(codes >> 4 * n), t);
}

/* Entries at..at+31 of a table. */
INLINE __m512 nf4_part(const float *table, __m512i at)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), at, _mm512_loadu_ps(table + 16));
}

/* LANES values of the dynamic map, without a gather (20 cycles). The upper half of the map is the
 * magnitudes 0..127, the lower half their negatives downwards: code 126 is -magnitude 0; only code
 * 127 is zero. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    __m512i c = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)code));
    __m512i s = _mm512_sub_epi32(c, _mm512_set1_epi32(128)), minus = _mm512_srai_epi32(s, 31);
    __m512i at = _mm512_add_epi32(_mm512_xor_si512(s, minus), minus);
    __mmask16 odd = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
    __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(64));
    __mmask16 zero = _mm512_cmpeq_epi32_mask(c, _mm512_set1_epi32(127));
    __m512 low = _mm512_mask_blend_ps(odd, nf4_part(map + 128, at), nf4_part(map + 160, at));
    __m512 high = _mm512_mask_blend_ps(odd, nf4_part(map + 192, at), nf4_part(map + 224, at));
    __m512i v = _mm512_castps_si512(_mm512_mask_blend_ps(upper, low, high));
    return (vec)_mm512_maskz_xor_epi32((__mmask16)~zero, v, _mm512_slli_epi32(minus, 31));
}

/* a > b ? a : b and a < b ? a : b; b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vec vmin(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }

/* Interleaves the lanes of a and b: their first halves (low), their second halves (high). */
INLINE vecu zip_low(vecu a, vecu b)
{
    const __m512i from =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return (vecu)_mm512_permutex2var_epi32((__m512i)a, from, (__m512i)b);
}

INLINE vecu zip_high(vecu a, vecu b)
{
    const __m512i from =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    return (vecu)_mm512_permutex2var_epi32((__m512i)a, from, (__m512i)b);
}

#include "kernels/cpu/vectors/lanes.h"

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (vecw)_mm512_mul_epu32((__m512i)a, (__m512i)b); }
