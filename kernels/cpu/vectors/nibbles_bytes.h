/* nibbles_bytes.h - the order of 4-bit codes for an isa_*.h that looks up bytes of levels. */
#pragma once

#include "kernels/cpu/vectors/vector.h"

/* The place of code k of eight of output j among the nibbles of LANES outputs. Lower nibbles hold
 * k < 4. Within 128 bits the bytes of k = 0, 1 of four outputs come first, then those of k = 2, 3,
 * so that unpacking looked-up bytes gives pairs. */
INLINE size_t nibble_at(size_t j, size_t k)
{
    return 2 * (j / 4 * 16 + k % 4 / 2 * 8 + j % 4 * 2 + k % 2) + k / 4;
}
