/* isa_portable.h - any processor, 128-bit vectors, possibly only 16 registers. */
#pragma once

enum { LANES = 4, TILE_ROWS = 6, BF16_DOT = 0 };
#include "kernels/cpu/vectors/four_lanes.h"
