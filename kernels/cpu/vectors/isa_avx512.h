/* isa_avx512.h - AVX-512 (F, BW, DQ, VL), 512-bit vectors, 32 registers. */
#ifndef KERNELS_CPU_VECTORS_ISA_AVX512_H
#define KERNELS_CPU_VECTORS_ISA_AVX512_H

enum { LANES = 16, TILE_ROWS = 12, BF16_DOT = 0 };
#include "kernels/cpu/vectors/vector.h"

#include "kernels/cpu/vectors/plain_bf16.h"

#include <immintrin.h>

#include "kernels/cpu/vectors/int8_words.h"

/* sum += the four byte products of each lane: bytes of w times the four codes at x. */
INLINE veci dot_int8(veci sum, vecu w, const uint32_t *x)
{
    veci even = (veci)_mm512_madd_epi16((__m512i)even_bytes(w), (__m512i)splat_bits(x[0]));
    veci odd = (veci)_mm512_madd_epi16((__m512i)odd_bytes(w), (__m512i)splat_bits(x[1]));
    return sum + (even + odd);
}

#include "kernels/cpu/vectors/avx512.h"

#endif
