/* quant-nf4.c - 4-bit NormalFloat with double quantization by its definition in quant.h, in plain
 * fp32. The codes of a matrix are made row by row; its absmax are quantized when all of them are
 * known, for they are taken from their mean: a sum in order, so that threads do not change it.
 */
#include <assert.h>
#include <math.h>

#include "kernels/quant.h"

const float nf4_level[16] = NF4_LEVELS;
const float nf4_dynamic[256] = NF4_DYNAMIC;
const uint16_t nf4_level_bf16[16] = {
    0xbf80, 0xbf32, 0xbf06, 0xbeca, 0xbe92, 0xbe3d, 0xbdba, 0x0000,
    0x3da3, 0x3e25, 0x3e7c, 0x3ead, 0x3ee2, 0x3f10, 0x3f39, 0x3f80,
};

void quant_nf4(const float *w, size_t n, uint8_t *code, float *absmax)
{
    assert(n % NF4_BLOCK == 0);
    for (size_t b = 0; b < n / NF4_BLOCK; b++, w += NF4_BLOCK) {
        float top = quant_largest(w, NF4_BLOCK);
        float up = quant_up(top, 1); /* 0: zeros, and codes of a NaN block: level 0 */
        for (size_t i = 0; i < NF4_BLOCK; i += 2)
            *code++ = (uint8_t)(level_code(up > 0 ? w[i] * up : 0) << 4 |
                                level_code(up > 0 ? w[i + 1] * up : 0));
        absmax[b] = quant_scale(top);
    }
}

float quant_nf4_mean(const float *absmax, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += absmax[i];
    return (float)(n ? sum / (double)n : 0);
}

/* One block of the double quantization; returns its scale. */
static float encode_super(const float *absmax, size_t n, float offset, uint8_t *code)
{
    float scale = 0;
    for (size_t i = 0; i < n; i++)
        scale = fmaxf(scale, fabsf(absmax[i] - offset));
    float up = quant_up(scale, 1);
    for (size_t i = 0; i < n; i++)
        code[i] = (uint8_t)level_nearest(nf4_dynamic, 256, up > 0 ? (absmax[i] - offset) * up : 0);
    return up > 0 ? scale : 0;
}

float quant_nf4_unfold(uint8_t code, float scale, float offset)
{
    return offset + nf4_dynamic[code] * scale;
}

float quant_nf4_absmax_at(const struct codes *q, size_t i)
{
    return quant_nf4_unfold(q->absmax[i], q->scale[i / NF4_SUPER], q->offset);
}

static void encode(const struct quant_target *t, size_t row, const float *w)
{
    quant_nf4(w, t->cols, (uint8_t *)t->code + row * t->cols / 2,
              t->block_scale + row * t->cols / NF4_BLOCK);
}

struct folding {
    const struct quant_target *t;
    size_t n;
    float offset;
};

static void fold_some(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct folding *f = ctx;
    const struct quant_target *t = f->t;
    for (size_t i = begin; i < end; i++) {
        size_t at = i * NF4_SUPER, n = f->n - at;
        t->scale[i] = encode_super(t->block_scale + at, n < NF4_SUPER ? n : NF4_SUPER, f->offset,
                                   t->absmax + at);
    }
}

static float fold(const struct quant_target *t, size_t n, struct pool *pool)
{
    struct folding f = {t, n, quant_nf4_mean(t->block_scale, n)};
    pool_run(pool, nf4_supers(n), 1, fold_some, &f);
    return f.offset;
}

static void floats(const struct codes *q, size_t cols, size_t row, float *out)
{
    const uint8_t *code = (const uint8_t *)q->code + row * cols / 2;
    for (size_t k = 0; k < cols; k += 2) {
        float a = quant_nf4_absmax_at(q, (row * cols + k) / NF4_BLOCK);
        out[k] = nf4_level[code[k / 2] >> 4] * a;
        out[k + 1] = nf4_level[code[k / 2] & 15] * a;
    }
}

const struct quant_format quant_nf4_format = {.encode = encode, .fold = fold, .floats = floats};
