/* finite.h - whether stored values are all numbers, at about the speed of reading them.
 *
 * A value is infinite or no number when all bits of its exponent are set (e4m3, which has no
 * infinity: all bits but the sign). One more in the last of these bits then carries into the place
 * of the sign, which was masked; else it stays below. So a word of 64 bits tells of two to eight
 * values at once.
 */
#ifndef KERNELS_FINITE_H
#define KERNELS_FINITE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"

/* mask: the bits in question; one: the last of them; both repeated over the word. */
static inline int finite_words(const void *values, size_t bytes, uint64_t mask, uint64_t one)
{
    const unsigned char *p = (const unsigned char *)values;
    uint64_t carry = 0, w;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        memcpy(&w, p, 8);
        carry |= (w & mask) + one;
    }
    w = 0;
    memcpy(&w, p, bytes);
    carry |= (w & mask) + one;
    return !(carry & (mask + one));
}

static inline int finite_bf16(const uint16_t *v, size_t n)
{
    return finite_words(v, 2 * n, 0x7f807f807f807f80u, 0x0080008000800080u);
}

static inline int finite_floats(const float *v, size_t n)
{
    return finite_words(v, 4 * n, 0x7f8000007f800000u, 0x0080000000800000u);
}

static inline int finite_e4m3(const void *v, size_t n)
{
    return finite_words(v, n, 0x7f7f7f7f7f7f7f7fu, 0x0101010101010101u);
}

/* Says of a source that some of its values are not finite. From several threads at once. */
static inline void finite_mark(const struct mat_source *s)
{
    __atomic_store_n(s->odd, 1, __ATOMIC_RELAXED);
}

#endif
