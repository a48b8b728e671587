/* nibbles.h - the order of 4-bit codes for an isa_*.h that looks up levels by 16-bit lanes. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* The place of code k of eight of output j among the nibbles of LANES outputs. An output is a
 * 32-bit word. Its lower half holds k = 0, 2, 4, 6 from the lowest nibble on, its upper half k = 1,
 * 3, 5, 7, so the nibbles at one position of both halves are the pair (k, k + 1). */
INLINE size_t nibble_at(size_t j, size_t k) { return 8 * j + k % 2 * 4 + k / 2; }
