/* isa_avx2.h - AVX2 and FMA, 256-bit vectors, 16 registers. */
#ifndef KERNELS_CPU_VECTORS_ISA_AVX2_H
#define KERNELS_CPU_VECTORS_ISA_AVX2_H

enum { LANES = 8, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include <immintrin.h>

#include "kernels/cpu/vectors/int8_words.h"

/* sum += the four byte products of each lane: bytes of w times the four codes at x. */
INLINE veci dot_int8(veci sum, vecu w, const uint32_t *x)
{
    veci even = (veci)_mm256_madd_epi16((__m256i)even_bytes(w), (__m256i)splat_bits(x[0]));
    veci odd = (veci)_mm256_madd_epi16((__m256i)odd_bytes(w), (__m256i)splat_bits(x[1]));
    return sum + (even + odd);
}

/* nf4: the low bytes and the high bytes of the 16 levels as bf16, for both 128-bit halves. */
typedef struct {
    __m256i low, high;
} level_table;

INLINE level_table level_look(const uint16_t level[16])
{
    uint8_t low[32], high[32];
    for (int i = 0; i < 32; i++) {
        low[i] = (uint8_t)(level[i % 16] & 255);
        high[i] = (uint8_t)(level[i % 16] >> 8);
    }
    return (level_table){_mm256_loadu_si256((const void *)low),
                       _mm256_loadu_si256((const void *)high)};
}

/* The bf16 pairs of the levels for nibble n of every 16-bit lane. An index with its top bit set
 * looks up a zero. */
INLINE vecu level_pairs(level_table t, vecu codes, int n)
{
    vecu at = codes >> 4 * n & 0x000f000fu;
    __m256i low = _mm256_shuffle_epi8(t.low, (__m256i)(at | 0x80008000u));
    __m256i high = _mm256_shuffle_epi8(t.high, (__m256i)(at << 8 | 0x00800080u));
    return (vecu)_mm256_or_si256(low, high);
}

/* LANES values of the dynamic map. */
INLINE vec dynamic_map(const float map[256], const uint8_t *code)
{
    __m256i at = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)code));
    return (vec)_mm256_i32gather_ps(map, at, 4);
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

#endif
