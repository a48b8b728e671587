/* isa_portable.h - any processor, 128-bit vectors, possibly only 16 registers. */
#ifndef KERNELS_CPU_VECTORS_ISA_PORTABLE_H
#define KERNELS_CPU_VECTORS_ISA_PORTABLE_H

enum { LANES = 4, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/four_lanes.h"

#endif
