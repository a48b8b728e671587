/* quant-blocks.c - the formats whose blocks of values share a scale and have 16 levels (NF4,
 * NF4_F32, FP4, Q4), by their definition in quant.h, in plain fp32. They differ only in the levels,
 * and in whether scales are quantized too.
 *
 * Codes are made row by row. For NF4 the absmax values (the largest |w| of each block) are
 * quantized when all are known, because their mean is subtracted. The mean is a sum in order, so
 * the number of threads does not change it. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/quant-vectors.h"
#include "kernels/quant.h"

const float dynamic_level[256] = DYNAMIC_LEVELS;

const float *quant_levels(enum dtype dtype)
{
    static const float nf4[16] = NF4_LEVELS, fp4[16] = FP4_LEVELS, q4[16] = Q4_LEVELS;
    return dtype == DTYPE_Q4 ? q4 : dtype == DTYPE_FP4 ? fp4 : nf4;
}

const uint16_t *quant_levels_bf16(enum dtype dtype)
{
    static const uint16_t nf4[16] = {0xbf80, 0xbf32, 0xbf06, 0xbeca, 0xbe92, 0xbe3d,
                                     0xbdba, 0x0000, 0x3da3, 0x3e25, 0x3e7c, 0x3ead,
                                     0x3ee2, 0x3f10, 0x3f39, 0x3f80};
    static const uint16_t fp4[16] = {0x0000, 0x3bab, 0x3f2b, 0x3f80, 0x3eab, 0x3f00,
                                     0x3e2b, 0x3e80, 0x8000, 0xbbab, 0xbf2b, 0xbf80,
                                     0xbeab, 0xbf00, 0xbe2b, 0xbe80};
    static const uint16_t q4[16] = {0xbf80, 0xbf60, 0xbf40, 0xbf20, 0xbf00, 0xbec0,
                                    0xbe80, 0xbe00, 0x0000, 0x3e00, 0x3e80, 0x3ec0,
                                    0x3f00, 0x3f20, 0x3f40, 0x3f60};
    return dtype == DTYPE_Q4 ? q4 : dtype == DTYPE_FP4 ? fp4 : nf4;
}

/* 1 if `top` is one of the values of the block w, not only -top. The scale of Q4 has the opposite
 * sign then. */
PART int reaches(const float *w, float top)
{
    int found = 0;
    for (size_t i = 0; i < QUANT_BLOCK; i++)
        found |= w[i] == top;
    return found;
}

/* Returns the largest float that is not above the middle between two levels. So a float is above
 * this bound exactly if it is above the middle. */
static float bound_between(float a, float b)
{
    const double middle = ((double)a + b) / 2;
    const float bound = (float)middle;
    return bound > middle ? nextafterf(bound, -INFINITY) : bound;
}

/* code[i] = level_code(dtype, value[i]), in loops that a compiler turns into vectors. */
PART void find_codes(enum dtype dtype, const float *value, const float bound[15], uint8_t *code)
{
    if (dtype == DTYPE_FP4) {
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            code[i] = (uint8_t)level_fp4_code(value[i]);
        return;
    }
    if (dtype == DTYPE_Q4) {
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            code[i] = (uint8_t)level_q4_code(value[i]);
        return;
    }
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        int above = 0; /* levels ascend: the code is the number of bounds below value */
        for (size_t at = 0; at < 15; at++)
            above += value[i] > bound[at];
        code[i] = (uint8_t)above;
    }
}

EACH_LEVEL void quant_blocks(enum dtype dtype, const float *w, size_t n, uint8_t *code,
                             float *absmax)
{
    assert(n % QUANT_BLOCK == 0);
    const float *level = quant_levels(dtype);
    float bound[15], value[QUANT_BLOCK];
    uint8_t found[QUANT_BLOCK];
    for (size_t at = 0; at < 15; at++)
        bound[at] = bound_between(level[at], level[at + 1]);
    for (size_t block = 0; block < n / QUANT_BLOCK; block++, w += QUANT_BLOCK) {
        float top = largest_of(w, QUANT_BLOCK);
        float sign = dtype == DTYPE_Q4 && reaches(w, top) ? -1 : 1;
        float up = quant_up(top, sign); /* up is 0 for a block of zeros or with a NaN: then all
                                         * codes are those of the value 0 */
        for (size_t i = 0; i < QUANT_BLOCK; i++)
            value[i] = w[i] * up;
        if (up == 0)
            memset(value, 0, sizeof value);
        find_codes(dtype, value, bound, found);
        for (size_t i = 0; i < QUANT_BLOCK; i += 2)
            *code++ = (uint8_t)(found[i] << 4 | found[i + 1]);
        absmax[block] = sign * quant_scale(top);
    }
}

float quant_absmax_mean(const float *absmax, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += absmax[i];
    return (float)(n ? sum / (double)n : 0);
}

/* Quantizes one block of absmax values; returns its scale. */
static float encode_super(const float *absmax, size_t n, float offset, uint8_t *code)
{
    float scale = 0;
    for (size_t i = 0; i < n; i++)
        scale = fmaxf(scale, fabsf(absmax[i] - offset));
    float up = quant_up(scale, 1);
    for (size_t i = 0; i < n; i++) {
        float v = up > 0 ? (absmax[i] - offset) * up : 0;
        code[i] = (uint8_t)level_nearest(dynamic_level, 256, v);
    }
    return up > 0 ? scale : 0;
}

float quant_absmax_unfold(uint8_t code, float scale, float offset)
{
    return offset + dynamic_level[code] * scale;
}

float quant_absmax_at(const struct codes *codes, size_t i)
{
    if (!dtype_info[codes->dtype].super)
        return codes->scale[i];
    return quant_absmax_unfold(codes->absmax[i], codes->scale[i / QUANT_SUPER], codes->offset);
}

static void encode(enum dtype dtype, const struct quant_target *target, size_t row, const float *w)
{
    quant_blocks(dtype, w, target->cols, (uint8_t *)target->code + row * target->cols / 2,
                 target->block_scale + row * target->cols / QUANT_BLOCK);
}

static void encode_nf4(const struct quant_target *target, size_t row, const float *w)
{
    encode(DTYPE_NF4, target, row, w);
}

static void encode_fp4(const struct quant_target *target, size_t row, const float *w)
{
    encode(DTYPE_FP4, target, row, w);
}

static void encode_q4(const struct quant_target *target, size_t row, const float *w)
{
    encode(DTYPE_Q4, target, row, w);
}

struct folding {
    const struct quant_target *t;
    size_t n;
    float offset;
};

static void fold_some(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct folding *folding = ctx;
    const struct quant_target *target = folding->t;
    for (size_t i = begin; i < end; i++) {
        size_t at = i * QUANT_SUPER, n = folding->n - at;
        n = n < QUANT_SUPER ? n : QUANT_SUPER;
        target->scale[i] = encode_super(target->block_scale + at, n, folding->offset,
                                        target->absmax + at);
    }
}

static float fold(const struct quant_target *target, size_t n, struct pool *pool)
{
    struct folding folding = {target, n, quant_absmax_mean(target->block_scale, n)};
    pool_run(pool, quant_supers(n), 1, fold_some, &folding);
    return folding.offset;
}

static void floats(const struct codes *codes, size_t cols, size_t row, float *out)
{
    const uint8_t *code = (const uint8_t *)codes->code + row * cols / 2;
    const float *level = quant_levels(codes->dtype);
    for (size_t k = 0; k < cols; k += 2) {
        float a = quant_absmax_at(codes, (row * cols + k) / QUANT_BLOCK);
        out[k] = level[code[k / 2] >> 4] * a;
        out[k + 1] = level[code[k / 2] & 15] * a;
    }
}

const struct quant_format quant_nf4_format = {encode_nf4, fold, floats};
const struct quant_format quant_nf4_f32_format = {encode_nf4, NULL, floats};
const struct quant_format quant_fp4_format = {encode_fp4, NULL, floats};
const struct quant_format quant_q4_format = {encode_q4, NULL, floats};
