/* isa_neon.h - aarch64 with Advanced SIMD, 128-bit vectors, 32 registers. */
#pragma once

enum { LANES = 4, TILE_ROWS = 12, BF16_DOT = 0 };
#include "kernels/cpu/vectors/neon.h"

#include "kernels/cpu/vectors/int8_plain.h"
