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

#include "kernels/cpu/vectors/int8_bytes.h"

/* sum += the products of each lane: codes of w times the codes of a row in x. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    return (veci)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)splat_bits(x[row]), (__m512i)w);
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes of a row in x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x, int row)
{
    sum = (veci)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)splat_bits(x[row]));
    return (veci)settled((vecu)sum);
}

#include "kernels/cpu/vectors/avx512.h"
