/* mix.h - a quick hash of 64 bits for tables in memory. No secret is in it, and it is not SHA-256:
 * what is found by it is compared, or its chance of a collision said.
 * Source: Steele et al. OOPSLA'14 (SplitMix64).
 */
#ifndef BASE_MIX_H
#define BASE_MIX_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Every bit of h and v moves half of the bits. */
static inline uint64_t mix_bits(uint64_t h, uint64_t v)
{
    h = (h ^ v) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* s[0..n-1]; the same on machines of one byte order. */
static inline uint64_t mix_text(uint64_t h, const char *s, size_t n)
{
    uint64_t x = 0;
    for (h = mix_bits(h, n); n >= 8; s += 8, n -= 8) {
        memcpy(&x, s, 8);
        h = mix_bits(h, x);
    }
    x = 0;
    memcpy(&x, s, n);
    return mix_bits(h, x);
}

#endif
