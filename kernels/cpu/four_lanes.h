/* four_lanes.h - the primitives of vectors of four lanes, in the compiler's own vectors: what neon
 * and portable share. The level has said how many rows a tile has. */
#ifndef KERNELS_CPU_FOUR_LANES_H
#define KERNELS_CPU_FOUR_LANES_H

#include "kernels/cpu/vector.h"

#include "kernels/cpu/plain.h"

#include "kernels/cpu/plain_quant.h"

/* a > b ? a : b and a < b ? a : b: b where a lane is NaN. */
INLINE vec vmax(vec a, vec b) { return pick(a > b, a, b); }
INLINE vec vmin(vec a, vec b) { return pick(a < b, a, b); }

/* The lanes of a and b in turn: the first half of both, and the second. */
INLINE vecu zip_low(vecu a, vecu b) { return (vecu){a[0], b[0], a[1], b[1]}; }
INLINE vecu zip_high(vecu a, vecu b) { return (vecu){a[2], b[2], a[3], b[3]}; }

/* The products of the lower halves of 64-bit lanes. */
INLINE vecw mul_low(vecw a, vecw b) { return (a & 0xffffffffu) * (b & 0xffffffffu); }

#endif
