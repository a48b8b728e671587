/* nf4_avx512.h - the nf4 primitives of both AVX-512 levels. */
#ifndef KERNELS_CPU_NF4_AVX512_H
#define KERNELS_CPU_NF4_AVX512_H

#include <immintrin.h>

#include "kernels/cpu/vector.h"

/* The 16 levels as bf16, twice, since vpermw looks at five bits of an index. */
typedef __m512i nf4_table;

INLINE nf4_table nf4_levels(const uint16_t level[16])
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)level));
}

/* bf16 pairs of the levels that nibble n of every 16-bit lane names. */
INLINE vecu nf4_pairs(nf4_table t, vecu codes, int n)
{
    return (vecu)_mm512_permutexvar_epi16((__m512i)(codes >> 4 * n), t);
}

/* Entries at..at+31 of a table. */
INLINE __m512 nf4_part(const float *table, __m512i at)
{
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), at, _mm512_loadu_ps(table + 16));
}

/* LANES values of the dynamic map, without a gather (20 cycles). The map's upper half is the
 * magnitudes 0..127, its lower half their negatives downwards: code 126 is -magnitude 0; code 127,
 * alone, is zero. */
INLINE vec nf4_map(const float map[256], const uint8_t *code)
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

#endif
