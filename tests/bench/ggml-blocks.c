/* ggml-blocks.c - encodes values in the block layouts of ggml-blocks.h. Scales follow the largest
 * value of a block, as the peer's own quantizer does without an importance matrix. The quantizer's
 * search for a better Q6_K scale is left out, because only speed is measured. */
#include "tests/bench/ggml-blocks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/host.h"

enum { SUPER = 256, GROUP = 16, GROUPS = SUPER / GROUP };

size_t ggml_block_values(enum ggml_type t)
{
    return t == GGML_Q6_K ? SUPER : t == GGML_Q8_0 || t == GGML_Q4_0 ? 32 : 1;
}

size_t ggml_block_bytes(enum ggml_type t)
{
    switch (t) {
    case GGML_F32: return 4;
    case GGML_BF16: return 2;
    case GGML_Q8_0: return 34;
    case GGML_Q4_0: return 18;
    case GGML_Q6_K: return 210;
    }
    return 0;
}

/* Rounds to the nearest half, ties to even. A scale never exceeds the range of a half. */
static uint16_t half_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000;
    float size = fabsf(x);
    assert(size < 65504);
    if (size < 0x1p-14f)
        return (uint16_t)(sign | (uint32_t)lrintf(size * 0x1p24f));
    uint32_t kept = (bits & 0x7fffffff) - (112u << 23);
    return (uint16_t)(sign | (kept + 0xfff + (kept >> 13 & 1)) >> 13);
}

static void put16(unsigned char *out, uint16_t v)
{
    memcpy(out, &v, sizeof v);
}

/* The value farthest from 0, with its sign. */
static float farthest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(most))
            most = x[i];
    return most;
}

/* round(x / step), limited to lo..hi; 0 if step is 0. */
static int level(float x, float step, int lo, int hi)
{
    int q = step == 0 ? 0 : (int)lrintf(x / step);
    return q < lo ? lo : q > hi ? hi : q;
}

static void encode_q8(const float *x, unsigned char *out)
{
    float d = fabsf(farthest(x, 32)) / 127;
    put16(out, half_of(d));
    for (int i = 0; i < 32; i++)
        out[2 + i] = (unsigned char)level(x[i], d, -127, 127);
}

static void encode_q4(const float *x, unsigned char *out)
{
    float d = farthest(x, 32) / -8;
    put16(out, half_of(d));
    for (int i = 0; i < 16; i++)
        out[2 + i] = (unsigned char)((level(x[i], d, -8, 7) + 8) |
                                     (level(x[i + 16], d, -8, 7) + 8) << 4);
}

/* Puts value i of a Q6_K block. A block has two halves of 128 values. In a half, value 32 k + l
 * (k = 0..3) shares byte l of the high bits with the other k, and has its low bits in byte
 * l + 32 (k mod 2). */
static void put_q6(unsigned char *out, int i, int q)
{
    int half = i / 128, k = i % 128 / 32, l = i % 32;
    unsigned char *low = out + 64 * half + l + 32 * (k % 2), *high = out + 128 + 32 * half + l;
    *low = (unsigned char)(*low | (q & 15) << 4 * (k / 2));
    *high = (unsigned char)(*high | (q >> 4) << 2 * k);
}

static void encode_q6(const float *x, unsigned char *out)
{
    float step[GROUPS], d = 0;
    for (int g = 0; g < GROUPS; g++)
        step[g] = farthest(x + GROUP * g, GROUP) / -32;
    d = farthest(step, GROUPS) / 127;
    memset(out, 0, 192);
    for (int g = 0; g < GROUPS; g++) {
        int s = level(step[g], d, -128, 127);
        out[192 + g] = (unsigned char)s;
        for (int i = GROUP * g; i < GROUP * (g + 1); i++)
            put_q6(out, i, level(x[i], d * (float)s, -32, 31) + 32);
    }
    put16(out + 208, half_of(d));
}

void ggml_encode(enum ggml_type t, const float *x, size_t n, unsigned char *out)
{
    size_t values = ggml_block_values(t), bytes = ggml_block_bytes(t);
    if (t == GGML_F32)
        memcpy(out, x, 4 * n);
    for (size_t i = 0; t != GGML_F32 && i < n; i += values, out += bytes) {
        if (t == GGML_BF16)
            put16(out, bf16_of(x[i]));
        else if (t == GGML_Q8_0)
            encode_q8(x + i, out);
        else if (t == GGML_Q4_0)
            encode_q4(x + i, out);
        else
            encode_q6(x + i, out);
    }
}
