/* avx2.h - the primitives that the levels of 256-bit vectors share. */
#pragma once

#include <immintrin.h>

#include "kernels/cpu/vectors/vector.h"

/* nf4: the low bytes and the high bytes of the 16 levels as bf16, for both 128-bit halves. */
typedef struct {
    __m256i low, high;
} level_table;

INLINE level_table level_look(const uint16_t level[16])
{
    __m128i a = _mm_loadu_si128((const void *)level);
    __m128i b = _mm_loadu_si128((const void *)(level + 8));
    __m128i byte = _mm_set1_epi16(255);
    __m128i low = _mm_packus_epi16(_mm_and_si128(a, byte), _mm_and_si128(b, byte));
    __m128i high = _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
    return (level_table){_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high)};
}

#include "kernels/cpu/vectors/nibbles_bytes.h"

/* The bf16 pairs of the levels for k = 2n, 2n + 1. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    __m256i at = (__m256i)(codes >> (n < 2 ? 0 : 4) & 0x0f0f0f0fu);
    __m256i low = _mm256_shuffle_epi8(t.low, at), high = _mm256_shuffle_epi8(t.high, at);
    return (vecu)(n % 2 ? _mm256_unpackhi_epi8(low, high) : _mm256_unpacklo_epi8(low, high));
}

/* LANES values of the dynamic map. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    vec out = {0};
    for (int i = 0; i < LANES; i++) /* faster than a gather (7 for 11 cycles on Zen 3) */
        out[i] = map[code[i]];
    return out;
}

/* a > b ? a : b and a < b ? a : b; b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE vec vmin(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }

/* Interleaves the lanes of a and b: their first halves (low), their second halves (high). */
INLINE vecu zip_low(vecu a, vecu b)
{
    __m256i low = _mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
    __m256i high = _mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
    return (vecu)_mm256_permute2x128_si256(low, high, 0x20);
}

INLINE vecu zip_high(vecu a, vecu b)
{
    __m256i low = _mm256_unpacklo_epi32((__m256i)a, (__m256i)b);
    __m256i high = _mm256_unpackhi_epi32((__m256i)a, (__m256i)b);
    return (vecu)_mm256_permute2x128_si256(low, high, 0x31);
}

/* Lane i: the sum of the lanes of v[i]; overwrites v. */
INLINE vec add_lanes(vec v[LANES])
{
    __m256 sum[LANES / 2];
    for (int i = 0; i < LANES / 2; i++)
        sum[i] = _mm256_hadd_ps((__m256)v[2 * i], (__m256)v[2 * i + 1]);
    __m256 low = _mm256_hadd_ps(sum[0], sum[1]), high = _mm256_hadd_ps(sum[2], sum[3]);
    return (vec)(_mm256_permute2f128_ps(low, high, 0x20) +
                 _mm256_permute2f128_ps(low, high, 0x31));
}

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (vecw)_mm256_mul_epu32((__m256i)a, (__m256i)b); }
