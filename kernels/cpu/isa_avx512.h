/* isa_avx512.h - AVX-512 (F, BW, DQ, VL), 512-bit vectors, 32 registers. */
#ifndef KERNELS_CPU_ISA_AVX512_H
#define KERNELS_CPU_ISA_AVX512_H

enum { LANES = 16, TILE_ROWS = 12, BF16_DOT = 0 };
#include "kernels/cpu/vector.h"

#include "kernels/cpu/plain.h"

#include <immintrin.h>

#include "kernels/cpu/words.h"

/* sum += the four byte products, lane by lane: bytes of w by the four codes at x. */
INLINE veci dot_int8(veci sum, vecu w, const uint32_t *x)
{
    veci even = (veci)_mm512_madd_epi16((__m512i)even_bytes(w), (__m512i)splat_bits(x[0]));
    veci odd = (veci)_mm512_madd_epi16((__m512i)odd_bytes(w), (__m512i)splat_bits(x[1]));
    return sum + (even + odd);
}

#include "kernels/cpu/nf4_avx512.h"

/* a > b ? a : b and a < b ? a : b: b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE vec vmin(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }

/* The lanes of a and b in turn: the first half of both, and the second. */
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

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (vecw)_mm512_mul_epu32((__m512i)a, (__m512i)b); }

#endif
