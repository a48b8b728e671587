/* finite.h - checks that stored values are finite, at about the speed of reading them.
 *
 * A value is infinite or NaN if all bits of its exponent are set. (e4m3 has no infinity; it is NaN
 * if all bits but the sign are set.) The check masks the sign bit and adds one to the lowest tested
 * bit. The carry reaches the sign bit exactly for values that are not finite. So one 64-bit word
 * tests two to eight values. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"

/* mask: the tested bits of a value; one: the lowest tested bit. Both are repeated for all values of
 * the word. */
static inline int finite_words(const void *values, size_t bytes, uint64_t mask, uint64_t one)
{
    const unsigned char *at = (const unsigned char *)values;
    uint64_t carry = 0, w;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        memcpy(&w, at, 8);
        carry |= (w & mask) + one;
    }
    w = 0;
    memcpy(&w, at, bytes);
    carry |= (w & mask) + one;
    return !(carry & (mask + one));
}

static inline int finite_bf16(const uint16_t *v, size_t n)
{
    return finite_words(v, 2 * n, 0x7f807f807f807f80u, 0x0080008000800080u);
}

static inline int finite_floats(const float *value, size_t n)
{
    return finite_words(value, 4 * n, 0x7f8000007f800000u, 0x0080000000800000u);
}

static inline int finite_e4m3(const void *v, size_t n)
{
    return finite_words(v, n, 0x7f7f7f7f7f7f7f7fu, 0x0101010101010101u);
}

/* Records that the source has values that are not finite. Several threads may call it at once. */
static inline void finite_mark(const struct mat_source *source)
{
    __atomic_store_n(source->odd, 1, __ATOMIC_RELAXED);
}
