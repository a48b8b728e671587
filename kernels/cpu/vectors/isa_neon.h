/* isa_neon.h - aarch64 with Advanced SIMD, 128-bit vectors, 32 registers. */
#ifndef KERNELS_CPU_VECTORS_ISA_NEON_H
#define KERNELS_CPU_VECTORS_ISA_NEON_H

enum { LANES = 4, TILE_ROWS = 12, BF16_DOT = 0 };
#include "kernels/cpu/vectors/four_lanes.h"

#endif
