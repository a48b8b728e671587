/* level.h - one source, several instruction sets.
 *
 * Each file of kernels/cpu is compiled once per instruction set (Makefile, CPU_LEVELS) with
 * -DLEVEL=x and -DISA="kernels/cpu/vectors/isa_x.h". CPU(name) puts the level into the name of a
 * function, and kernels/ops.c picks the best table at run time. Vectors are those of the compiler:
 * LANES floats fill one register. A matrix tile is TILE_ROWS x 2 registers of sums, which just fits
 * the register file.
 *
 * A level may have products only (amx_tiles.h). It takes the vectors, the layouts and all other
 * operations from LEVEL, and its own functions are OWN_CPU(name). In all other levels OWN_CPU() is
 * CPU(), and attention multiplies by its own code (DENSE). */
#pragma once

#include ISA /* LANES, TILE_ROWS, PANEL, the vector types and this level's own instructions */

#define CPU_PASTE(level, name) cpu_##level##_##name
#define CPU_NAME(level, name) CPU_PASTE(level, name)
#define CPU(name) CPU_NAME(LEVEL, name)
#ifndef OWN
#define OWN LEVEL
#define DENSE "kernels/cpu/amx/untiled.h"
#endif
#define OWN_CPU(name) CPU_NAME(OWN, name)

/* n rounded up to a multiple. */
INLINE size_t up(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

INLINE double sum_lanes(vecd v)
{
    double s = 0;
    for (int i = 0; i < LANES; i++)
        s += v[i];
    return s;
}

/* The sum of the squares of x, in double. The order depends only on n. */
INLINE double sum_squares(const float *x, size_t n)
{
    vecd sum = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vecd v = __builtin_convertvector(load(x + i), vecd);
        sum += v * v;
    }
    double s = sum_lanes(sum);
    for (; i < n; i++)
        s += (double)x[i] * x[i];
    return s;
}

/* 1 if any lane of the mask is set. */
INLINE int any_of(veci mask)
{
    uint64_t words[LANES / 2], any = 0;
    memcpy(words, &mask, sizeof words);
    for (int i = 0; i < LANES / 2; i++)
        any |= words[i];
    return any != 0;
}

/* e^x within 2 ulp for x in [-87, 88]; 0 below -88.1, as softmax needs; NaN stays NaN.
 * n = round(x / ln 2), e^x = 2^n e^r with |r| <= ln2/2 and a polynomial for e^r (Cephes expf,
 * Moshier 1984). At the lower end n = -127 and 2^n is made of zero bits. */
INLINE vec vexp(vec x)
{
    vec y = vmin(splat(88.0f), vmax(splat(-88.1f), x));
    vec shifted = y * 1.44269504088896341f + 12582912.0f; /* n in the lowest bits */
    vec n = shifted - 12582912.0f;
    vec rest = y - n * 0.693359375f;
    rest = rest - n * -2.12194440e-4f;
    vec sum = rest * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    vecu power = ((vecu)shifted + 127) << 23;
    return sum * (vec)power;
}
