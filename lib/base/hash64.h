/* hash64.h - fast 64-bit hashes for tables in memory, not cryptographic: callers compare
 * the values behind equal hashes, or state the chance of a collision.
 * Source: Steele et al. OOPSLA'14 (SplitMix64); Fowler, Noll, Vo, draft-eastlake-fnv (FNV-1a). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Mixes v into h: a change of any bit of h or v changes about half of the bits of the result. */
static inline uint64_t hash64_bits(uint64_t h, uint64_t v)
{
    h = (h ^ v) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* A hash of text[0..n-1] that starts from h. Its value depends on the byte order of the machine. */
static inline uint64_t hash64_text(uint64_t h, const char *text, size_t n)
{
    uint64_t x = 0;
    for (h = hash64_bits(h, n); n >= 8; text += 8, n -= 8) {
        memcpy(&x, text, 8);
        h = hash64_bits(h, x);
    }
    x = 0;
    memcpy(&x, text, n);
    return hash64_bits(h, x);
}

/* FNV-1a of n bytes, continued from h (HASH64_FNV at the start). The value is the same on all
 * machines. */
#define HASH64_FNV 0xcbf29ce484222325u
static inline uint64_t hash64_fnv(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}
