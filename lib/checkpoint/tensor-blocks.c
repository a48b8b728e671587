/* tensor-blocks.c - widens the block formats of GGUF files to fp32. A block has 32 or 256 values
 * that share scales; a row consists of whole blocks. q is the code of a value; d and m are fp16
 * numbers of the block; s and t are the scale and the minimum of a group of values:
 *
 *     format  values  bytes of a block, in order                        value
 *     Q8_0    32      d, q i8[32]                                       d q
 *     Q4_0    32      d, 16 bytes of q: low halves, then high halves    d (q - 8)
 *     Q4_1    32      d, m, 16 bytes of q as in Q4_0                    d q + m
 *     Q4_K    256     d, m, 12 bytes of s and t (6 bits each),          d s q - m t
 *                     128 bytes of q; groups of 32
 *     Q6_K    256     128 bytes (low 4 bits of q), 64 bytes (high       d s (q - 32)
 *                     2 bits), s i8[16], d; groups of 16
 *
 * Source: github.com/ggml-org/llama.cpp, ggml/src/ggml-quants.c (layouts). */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "kernels/levels.h"
#include "lib/checkpoint/tensor.h"

static float half_at(const unsigned char *at)
{
    return f16_float((uint16_t)(at[0] | at[1] << 8));
}

static void decode_q8_0(const unsigned char *b, float *out)
{
    const float d = half_at(b);
    for (int i = 0; i < 32; i++)
        out[i] = d * (float)(int8_t)b[2 + i];
}

static void decode_q4_0(const unsigned char *b, float *out)
{
    const float d = half_at(b);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((b[2 + i] & 15) - 8);
        out[i + 16] = d * (float)((b[2 + i] >> 4) - 8);
    }
}

static void decode_q4_1(const unsigned char *b, float *out)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)(b[4 + i] & 15) + m;
        out[i + 16] = d * (float)(b[4 + i] >> 4) + m;
    }
}

/* The scale (which 0) or the minimum (which 1) of group g, 6 bits. The bytes of groups 0 to 3 also
 * hold the upper two bits of groups 4 to 7. */
static unsigned scale_at(const unsigned char s[12], int g, int which)
{
    if (g < 4)
        return s[g + 4 * which] & 63;
    return (which ? s[g + 4] >> 4 : s[g + 4] & 15) | (unsigned)(s[g - 4 + 4 * which] >> 6) << 4;
}

static void decode_q4_k(const unsigned char *b, float *out)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        const float scale = d * (float)scale_at(b + 4, g, 0);
        const float least = m * (float)scale_at(b + 4, g, 1);
        const unsigned char *q = b + 16 + g / 2 * 32;
        for (int i = 0; i < 32; i++)
            out[g * 32 + i] = scale * (float)(g % 2 ? q[i] >> 4 : q[i] & 15) - least;
    }
}

static void decode_q6_k(const unsigned char *b, float *out)
{
    const float d = half_at(b + 208);
    for (int g = 0; g < 16; g++) {
        const unsigned char *low = b + g / 8 * 64 + g % 4 * 16;
        const unsigned char *high = b + 128 + g / 8 * 32 + g % 2 * 16;
        const float scale = d * (float)(int8_t)b[192 + g];
        for (int i = 0; i < 16; i++) {
            const int q = (low[i] >> g % 8 / 4 * 4 & 15) | (high[i] >> g % 8 / 2 * 2 & 3) << 4;
            out[g * 16 + i] = scale * (float)(q - 32);
        }
    }
}

/* id: the number of the format in a GGUF file. F32, F16 and BF16 have blocks of one value. */
static const struct block {
    const char *name;
    uint32_t id;
    size_t values, bytes;
    void (*decode)(const unsigned char *b, float *out);
} blocks[] = {
    {"F32", 0, 1, 4, NULL},          {"F16", 1, 1, 2, NULL},
    {"BF16", 30, 1, 2, NULL},        {"Q4_0", 2, 32, 18, decode_q4_0},
    {"Q4_1", 3, 32, 20, decode_q4_1}, {"Q8_0", 8, 32, 34, decode_q8_0},
    {"Q4_K", 12, 256, 144, decode_q4_k}, {"Q6_K", 14, 256, 210, decode_q6_k},
};

static const struct block *block_named(const char *dtype)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (!strcmp(blocks[i].name, dtype))
            return &blocks[i];
    return NULL;
}

const char *tensor_block_dtype(uint32_t id, size_t *values, size_t *bytes)
{
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (blocks[i].id == id) {
            *values = blocks[i].values;
            *bytes = blocks[i].bytes;
            return blocks[i].name;
        }
    return NULL;
}

int tensor_is_readable(const char *dtype)
{
    return block_named(dtype) != NULL;
}

int tensor_has_blocks(const char *dtype)
{
    const struct block *block = block_named(dtype);
    return block && block->decode;
}

void tensor_blocks(const struct tensor *tensor, size_t first, size_t n, float *out)
{
    const struct block *block = block_named(tensor->dtype);
    assert(block && block->decode && first % block->values == 0 && n % block->values == 0);
    for (size_t i = 0; i < n; i += block->values)
        block->decode(tensor->data + (first + i) / block->values * block->bytes, out + i);
}
