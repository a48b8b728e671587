/* levels.h - the numbers that codes stand for, for host and device: the 16 levels of NF4, FP4 and
 * Q4, the 256 levels of the dynamic map for double quantization, e4m3 and fp16. kernels/quant.h
 * defines their use.
 *
 * Source: NF4: arXiv 2305.14314, appendix E: quantiles of N(0, 1) with an exact zero, divided by
 * the largest. FP4: dDequantizeFP4Tree and dQuantizeFP4 of bitsandbytes: a sign, two bits of
 * exponent (bias 3), one bit of fraction, divided by 12; an exception is code 1, which is 1/16 /
 * 12. e4m3: OCP 8-bit Floating Point Specification (OFP8) 1.0, E4M3: no infinities, one NaN of
 * either sign, numbers up to 448. The dynamic map: for each decade s = 10^-6..1 the interval [0.1,
 * 1] is cut into n = 1, 2, 4, .. 64 equal parts; the levels are their midpoints times s, the
 * negatives of these, 0 and 1. A bound of a part is computed by a fused multiply-add from the
 * nearer end, and a midpoint by a float sum, as torch.linspace and bitsandbytes compute them. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/dtype.h"
#include "lib/base/host_device.h"

#define NF4_LEVELS                                                                              \
    {-1.0f,                                                                                     \
     -0.6961928009986877f,                                                                      \
     -0.5250730514526367f,                                                                      \
     -0.39491748809814453f,                                                                     \
     -0.28444138169288635f,                                                                     \
     -0.18477343022823334f,                                                                     \
     -0.09105003625154495f,                                                                     \
     0.0f,                                                                                      \
     0.07958029955625534f,                                                                      \
     0.16093020141124725f,                                                                      \
     0.24611230194568634f,                                                                      \
     0.33791524171829224f,                                                                      \
     0.44070982933044434f,                                                                      \
     0.5626170039176941f,                                                                       \
     0.7229568362236023f,                                                                       \
     1.0f}

#define FP4_LEVELS                                                                              \
    {0.0f,  5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,   \
     -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f}

#define Q4_LEVELS                                                                               \
    {-1.0f, -0.875f, -0.75f, -0.625f, -0.5f, -0.375f, -0.25f, -0.125f,                          \
     0.0f,  0.125f,  0.25f,  0.375f,  0.5f,  0.625f,  0.75f,  0.875f}

#define LEVEL_STEP(n) ((1.0f - 0.1f) / (n))
#define LEVEL_BOUND(i, n)                                                                       \
    (2 * (i) < (n) ? (float)((double)0.1f + (double)LEVEL_STEP(n) * (i))                        \
                   : (float)(1.0 - (double)LEVEL_STEP(n) * ((n) - (i))))
#define LEVEL_MIDDLE(i, n, s) ((LEVEL_BOUND(i, n) + LEVEL_BOUND((i) + 1, n)) / 2 * s##f)
#define LEVEL_UP_1(i, n, s) LEVEL_MIDDLE(i, n, s)
#define LEVEL_UP_2(i, n, s) LEVEL_UP_1(i, n, s), LEVEL_UP_1((i) + 1, n, s)
#define LEVEL_UP_4(i, n, s) LEVEL_UP_2(i, n, s), LEVEL_UP_2((i) + 2, n, s)
#define LEVEL_UP_8(i, n, s) LEVEL_UP_4(i, n, s), LEVEL_UP_4((i) + 4, n, s)
#define LEVEL_UP_16(i, n, s) LEVEL_UP_8(i, n, s), LEVEL_UP_8((i) + 8, n, s)
#define LEVEL_UP_32(i, n, s) LEVEL_UP_16(i, n, s), LEVEL_UP_16((i) + 16, n, s)
#define LEVEL_UP_64(i, n, s) LEVEL_UP_32(i, n, s), LEVEL_UP_32((i) + 32, n, s)
#define LEVEL_DOWN_1(i, n, s) -LEVEL_MIDDLE((n) - 1 - (i), n, s)
#define LEVEL_DOWN_2(i, n, s) LEVEL_DOWN_1(i, n, s), LEVEL_DOWN_1((i) + 1, n, s)
#define LEVEL_DOWN_4(i, n, s) LEVEL_DOWN_2(i, n, s), LEVEL_DOWN_2((i) + 2, n, s)
#define LEVEL_DOWN_8(i, n, s) LEVEL_DOWN_4(i, n, s), LEVEL_DOWN_4((i) + 4, n, s)
#define LEVEL_DOWN_16(i, n, s) LEVEL_DOWN_8(i, n, s), LEVEL_DOWN_8((i) + 8, n, s)
#define LEVEL_DOWN_32(i, n, s) LEVEL_DOWN_16(i, n, s), LEVEL_DOWN_16((i) + 16, n, s)
#define LEVEL_DOWN_64(i, n, s) LEVEL_DOWN_32(i, n, s), LEVEL_DOWN_32((i) + 32, n, s)
#define DYNAMIC_LEVELS                                                                             \
    {LEVEL_DOWN_64(0, 64, 1.0), LEVEL_DOWN_32(0, 32, 1e-1), LEVEL_DOWN_16(0, 16, 1e-2),         \
     LEVEL_DOWN_8(0, 8, 1e-3),  LEVEL_DOWN_4(0, 4, 1e-4),   LEVEL_DOWN_2(0, 2, 1e-5),           \
     LEVEL_DOWN_1(0, 1, 1e-6),  0.0f,                       LEVEL_UP_1(0, 1, 1e-6),             \
     LEVEL_UP_2(0, 2, 1e-5),    LEVEL_UP_4(0, 4, 1e-4),     LEVEL_UP_8(0, 8, 1e-3),             \
     LEVEL_UP_16(0, 16, 1e-2),  LEVEL_UP_32(0, 32, 1e-1),   LEVEL_UP_64(0, 64, 1.0),            \
     1.0f}

/* level_of() and dynamic_level_of() return elements of quant_levels(dtype) and of dynamic_level
 * (quant.h), for device code, which cannot read these arrays of the host. */
HOST_DEVICE float level_of(enum dtype dtype, unsigned code)
{
    static const float nf4[16] = NF4_LEVELS, fp4[16] = FP4_LEVELS, q4[16] = Q4_LEVELS;
    return dtype == DTYPE_Q4 ? q4[code] : dtype == DTYPE_FP4 ? fp4[code] : nf4[code];
}

HOST_DEVICE float dynamic_level_of(unsigned code)
{
    static const float level[256] = DYNAMIC_LEVELS;
    return level[code];
}

/* The index of the level nearest to v, among n ascending levels (n: a power of two); of two equally
 * near levels the lower one. */
HOST_DEVICE unsigned level_nearest(const float *level, unsigned n, float v)
{
    unsigned at = 0;
    for (unsigned half = n / 2; half; half /= 2) {
        double middle = ((double)level[at + half - 1] + level[at + half]) / 2;
        at += v > middle ? half : 0;
    }
    return at;
}

/* The FP4 code of v in -1..1, by the bounds of bitsandbytes; on a bound, the smaller magnitude. */
HOST_DEVICE unsigned level_fp4_code(float v)
{
    static const float bound[7] = {0.00260417f, 0.0859375f, 0.20833333f, 0.29166667f,
                                   0.4166667f,  0.583333f,  0.8333333f};
    float size = v < 0 ? -v : v;
    unsigned above = 0;
    for (unsigned i = 0; i < 7; i++)
        above += size > bound[i];
    return (above ^ (above & 2) << 1) | (v < 0 ? 8 : 0); /* codes by magnitude: 0 1 6 7 4 5 2 3 */
}

/* Rounds to the nearest integer, ties to even, for |x| < 2^22. x + 1.5 * 2^23 lies where floats are
 * integers, so the sum rounds x. */
HOST_DEVICE float level_round(float x)
{
    return (x + 12582912.0f) - 12582912.0f;
}

/* The Q4 code of v in -1..1; of two equally near levels the one with the even code. */
HOST_DEVICE unsigned level_q4_code(float v)
{
    int code = (int)level_round(v * 8) + 8;
    return code < 15 ? (unsigned)code : 15;
}

/* The code of v in -1..1 in a format of 16 levels. */
HOST_DEVICE unsigned level_code(enum dtype dtype, float v)
{
    static const float nf4[16] = NF4_LEVELS;
    return dtype == DTYPE_Q4    ? level_q4_code(v)
           : dtype == DTYPE_FP4 ? level_fp4_code(v)
                                : level_nearest(nf4, 16, v);
}

/* The number of an e4m3 code: sign, 4 bits of exponent (bias 7), 3 bits of fraction. Moved to the
 * place of exponent and fraction of a float (8 bits of exponent, bias 127), the bits read as the
 * number times 2^-120, subnormal numbers included. */
HOST_DEVICE float e4m3_value(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24, rest = code & 0x7f;
    uint32_t bits = sign | (rest == 0x7f ? 0x7fc00000u : rest << 20);
    float f;
    memcpy(&f, &bits, sizeof f);
    return rest == 0x7f ? f : f * 0x1p120f;
}

/* The number of an fp16 code (IEEE 754 binary16): sign, 5 bits of exponent (bias 15), 10 bits of
 * fraction. Moved to the place of exponent and fraction of a float, the bits read as the number
 * times 2^-112, subnormal numbers included. Infinities and NaN need an exponent of ones instead. */
HOST_DEVICE float f16_float(uint16_t code)
{
    uint32_t sign = (uint32_t)(code & 0x8000) << 16, bits = (uint32_t)(code & 0x7fff) << 13;
    float f;
    memcpy(&f, &bits, sizeof f);
    f *= 0x1p112f;
    memcpy(&bits, &f, sizeof bits);
    bits |= sign | ((code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0);
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The code of the fp16 number nearest to x, ties to even. |x| >= 65520 gives infinity; NaN stays
 * NaN. */
HOST_DEVICE uint16_t f16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (size >= 0x477ff000) /* 65520 */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below 2^-14 fp16 numbers are subnormal: multiples of 2^-24 */
        float small;
        memcpy(&small, &size, sizeof small);
        return (uint16_t)(sign | (uint32_t)level_round(small * 0x1p24f));
    }
    size += 0xfff + (size >> 13 & 1);
    return (uint16_t)(sign | ((size >> 13) - (112 << 10)));
}

/* The code of the e4m3 number nearest to x, ties to even. |x| > 448 and infinities give the code of
 * 448; NaN stays NaN. */
HOST_DEVICE uint8_t e4m3_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return (uint8_t)(sign | 0x7f);
    if (size >= 0x43e00000) /* 448 */
        return (uint8_t)(sign | 0x7e);
    if (size < 0x3c800000) /* below 2^-6 e4m3 numbers are subnormal: multiples of 2^-9 */
        return (uint8_t)(sign | (uint32_t)level_round((x < 0 ? -x : x) * 512));
    size += 0x7ffff + (size >> 20 & 1);
    return (uint8_t)(sign | ((size >> 20) - (120 << 3)));
}
