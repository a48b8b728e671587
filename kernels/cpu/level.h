/* level.h - one source, several processors.
 *
 * Each file of this folder is compiled once per processor level (Makefile, CPU_LEVELS) with
 * -DLEVEL=x; CPU(name) gives every function the level's own name, and kernels/backend.c picks the
 * best table at run time. Vectors are the compiler's: LANES floats fill one register, and a matrix
 * tile is TILE_ROWS x 2 registers of sums, which just fits the register file.
 */
#ifndef KERNELS_CPU_LEVEL_H
#define KERNELS_CPU_LEVEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX512F__
enum { LANES = 16, TILE_ROWS = 12 };
#elif defined __AVX2__
enum { LANES = 8, TILE_ROWS = 6 };
#else
enum { LANES = 4, TILE_ROWS = 6 };
#endif
enum { PANEL = 2 * LANES }; /* columns of a tile, and of a packed panel */

#define CPU_PASTE(level, name) cpu_##level##_##name
#define CPU_NAME(level, name) CPU_PASTE(level, name)
#define CPU(name) CPU_NAME(LEVEL, name)

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t veci __attribute__((vector_size(LANES * 4)));
typedef uint32_t vecu __attribute__((vector_size(LANES * 4)));
typedef uint16_t vech __attribute__((vector_size(LANES * 2)));
typedef double vecd __attribute__((vector_size(LANES * 8)));
#define INLINE static inline __attribute__((always_inline, unused))

INLINE vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void put(float *p, vec v) { memcpy(p, &v, sizeof v); }

INLINE vec load_bf16(const uint16_t *p)
{
    vech h;
    memcpy(&h, p, sizeof h);
    vecu u = __builtin_convertvector(h, vecu) << 16;
    return (vec)u;
}

INLINE vec splat(float x) { return x - (vec){0}; /* exact for every x, -0 and NaN included */ }

/* Lane by lane: mask ? a : b, with mask all ones or all zeros. */
INLINE vec pick(veci mask, vec a, vec b) { return (vec)((mask & (veci)a) | (~mask & (veci)b)); }

INLINE vec vmax(vec a, vec b) { return pick(a > b, a, b); }

INLINE double sum_lanes(vecd v)
{
    double s = 0;
    for (int i = 0; i < LANES; i++)
        s += v[i];
    return s;
}

/* e^x within 2 ulp for x in [-87, 88]; 0 below, as softmax wants. n = round(x / ln 2),
 * e^x = 2^n e^r with |r| <= ln2/2 and a polynomial for e^r (Cephes expf, Moshier 1984). */
INLINE vec vexp(vec x)
{
    veci tiny = x < -87.0f;
    vec y = pick(x > 88.0f, splat(88.0f), x);
    y = pick(tiny, splat(0.0f), y);
    vec n = (y * 1.44269504088896341f + 12582912.0f) - 12582912.0f;
    vec r = y - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    veci e = (__builtin_convertvector(n, veci) + 127) << 23;
    return pick(tiny, splat(0.0f), p * (vec)e);
}

#endif
