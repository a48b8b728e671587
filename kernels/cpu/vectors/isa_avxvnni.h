/* isa_avxvnni.h - AVX2 and FMA with AVX-VNNI, 256-bit vectors, 16 registers. */
#pragma once

enum { LANES = 8, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include <immintrin.h>

#include "kernels/cpu/vectors/int8_bytes.h"

/* sum += the products of each lane: codes of w times the codes of a row in x. */
INLINE veci dot_int8(veci sum, int8_weights w, const uint32_t *x, int row)
{
    return (veci)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)splat_bits(x[row]), (__m256i)w);
}

/* sum += the products of each lane: bytes of w, 0..15, times the codes of a row in x. */
INLINE veci q4_add(veci sum, vecu w, const uint32_t *x, int row)
{
    sum = (veci)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)splat_bits(x[row]));
    return (veci)settled((vecu)sum);
}

#include "kernels/cpu/vectors/avx2.h"
