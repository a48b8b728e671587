/* vector.h - vectors of LANES lanes in the compiler's own notation. Included by an isa_*.h, which
 * defines LANES. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PANEL = 2 * LANES }; /* columns of a tile, and of a packed panel */
enum { LINE = 16 };         /* 32-bit words of a cache line */

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t veci __attribute__((vector_size(LANES * 4)));
typedef uint32_t vecu __attribute__((vector_size(LANES * 4)));
typedef uint16_t vech __attribute__((vector_size(LANES * 2)));
typedef uint64_t vecw __attribute__((vector_size(LANES * 4))); /* half as many lanes, twice as
                                                                * wide */
typedef double vecd __attribute__((vector_size(LANES * 8)));
#define INLINE static inline __attribute__((always_inline, unused))

INLINE vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vecu load_bits(const void *p)
{
    vecu v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void put(float *p, vec v) { memcpy(p, &v, sizeof v); }
INLINE void put_bits(void *p, vecu v) { memcpy(p, &v, sizeof v); }

/* If `on` is 1, the compiler moves no read or write of memory across this call. If it may move
 * them, it reads values of many rows early or keeps results in registers. Then no registers are
 * left for the sums. */
INLINE void fenced(const int on)
{
    if (on)
        __asm__ volatile("" ::: "memory");
}

INLINE vec load_bf16(const uint16_t *from)
{
    vech h;
    memcpy(&h, from, sizeof h);
    vecu u = __builtin_convertvector(h, vecu) << 16;
    return (vec)u;
}

INLINE vec splat(float x) { return x - (vec){0}; /* exact for every x, also -0 and NaN */ }
INLINE vecu splat_bits(uint32_t x) { return x - (vecu){0}; }

/* Prefetches PANEL words from `at` on. */
INLINE void fetch_ahead(const char *at)
{
    for (size_t i = 0; i < PANEL; i += LINE)
        __builtin_prefetch(at + i * sizeof(uint32_t));
}

/* Lane by lane: mask ? a : b. A lane of the mask is all ones or all zeros. */
INLINE vec pick(veci mask, vec a, vec b) { return (vec)((mask & (veci)a) | (~mask & (veci)b)); }
INLINE vecu pick_bits(veci mask, vecu a, vecu b) { return ((vecu)mask & a) | (~(vecu)mask & b); }

/* bf16 pairs: a 32-bit lane holds the value of an even k in its lower half, of k + 1 in its
 * upper. */
INLINE vec even_of(vecu pairs) { return (vec)(pairs << 16); }
INLINE vec odd_of(vecu pairs) { return (vec)(pairs & 0xffff0000u); }

/* Rounds lanes to bf16: to nearest, ties to even, NaN stays NaN. The 16 bits are on top with zeros
 * below: the rounded values, read as floats. */
INLINE vecu bf16_round(vec x)
{
    vecu u = (vecu)x;
    vecu near = u + 0x7fff + (u >> 16 & 1);
    return pick_bits(x == x, near, u | 0x400000) & 0xffff0000u;
}

/* bf16 pairs of lanes: even in the lower halves, odd in the upper halves. */
INLINE vecu bf16_pairs(vec even, vec odd) { return bf16_round(even) >> 16 | bf16_round(odd); }
