/* quant.c - encoding and decoding by the definitions in quant.h, in plain fp32. */
#include "kernels/quant.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

const float nf4_level[16] = NF4_LEVELS;
const float nf4_dynamic[256] = NF4_DYNAMIC;
const uint16_t nf4_level_bf16[16] = {
    0xbf80, 0xbf32, 0xbf06, 0xbeca, 0xbe92, 0xbe3d, 0xbdba, 0x0000,
    0x3da3, 0x3e25, 0x3e7c, 0x3ead, 0x3ee2, 0x3f10, 0x3f39, 0x3f80,
};

const char *quant_refuses(enum dtype dtype, size_t cols)
{
    if (dtype == DTYPE_NF4 && cols % NF4_BLOCK)
        return "nf4 needs a number of columns that is a multiple of 64";
    if (dtype == DTYPE_INT8 && cols > INT8_COLS_MAX)
        return "int8 needs 131072 columns or fewer";
    return NULL;
}

/* max |x|, NaN if one is not finite. */
static float largest(const float *x, size_t n)
{
    float top = 0;
    for (size_t i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        top = a > top || a != a ? a : top; /* a NaN stays: nothing compares greater */
    }
    return isfinite(top) ? top : NAN;
}

float int8_encode(const float *w, size_t n, int8_t *code)
{
    float top = largest(w, n), up = quant_up(top, INT8_TOP);
    for (size_t i = 0; i < n; i++)
        code[i] = up > 0 ? (int8_t)level_round(w[i] * up) : 0;
    return quant_scale(top);
}

float fp8_encode(const float *w, size_t n, uint8_t *code)
{
    float top = largest(w, n), up = quant_up(top, FP8_TOP);
    for (size_t i = 0; i < n; i++)
        code[i] = up > 0 ? e4m3_of(w[i] * up) : 0;
    return quant_scale(top);
}

float int8_encode_row(const float *x, size_t n, int8_t *code, uint32_t *outlier, size_t *n_outliers)
{
    float scale = 0;
    *n_outliers = 0;
    for (size_t i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        if (!(a < INT8_OUTLIER))
            outlier[(*n_outliers)++] = (uint32_t)i;
        else if (a > scale)
            scale = a;
    }
    float up = quant_up(scale, INT8_TOP);
    for (size_t i = 0; i < n; i++)
        code[i] = fabsf(x[i]) < INT8_OUTLIER ? (int8_t)level_round(x[i] * up) : 0;
    return quant_scale(scale);
}

void nf4_encode(const float *w, size_t n, uint8_t *code, float *absmax)
{
    assert(n % NF4_BLOCK == 0);
    for (size_t b = 0; b < n / NF4_BLOCK; b++, w += NF4_BLOCK) {
        float top = largest(w, NF4_BLOCK);
        float up = quant_up(top, 1); /* 0: zeros, and codes of a NaN block: level 0 */
        for (size_t i = 0; i < NF4_BLOCK; i += 2)
            *code++ = (uint8_t)(level_code(up > 0 ? w[i] * up : 0) << 4 |
                                level_code(up > 0 ? w[i + 1] * up : 0));
        absmax[b] = quant_scale(top);
    }
}

float nf4_mean(const float *absmax, size_t n)
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

float nf4_encode_absmax(const float *absmax, size_t n, uint8_t *code, float *scale)
{
    float offset = nf4_mean(absmax, n);
    for (size_t i = 0; i < n; i += NF4_SUPER)
        scale[i / NF4_SUPER] =
            encode_super(absmax + i, n - i < NF4_SUPER ? n - i : NF4_SUPER, offset, code + i);
    return offset;
}

float nf4_unfold(uint8_t code, float scale, float offset)
{
    return offset + nf4_dynamic[code] * scale;
}

float nf4_absmax(const struct codes *q, size_t i)
{
    return nf4_unfold(q->absmax[i], q->scale[i / NF4_SUPER], q->offset);
}

static void int8_floats(const struct codes *q, size_t cols, size_t row, float *out)
{
    const int8_t *code = (const int8_t *)q->code + row * cols;
    float step = q->scale[row] / INT8_TOP;
    for (size_t k = 0; k < cols; k++)
        out[k] = code[k] * step;
}

static void fp8_floats(const struct codes *q, size_t cols, size_t row, float *out)
{
    const uint8_t *code = (const uint8_t *)q->code + row * cols;
    float step = q->scale[row] / FP8_TOP;
    for (size_t k = 0; k < cols; k++)
        out[k] = e4m3_value(code[k]) * step;
}

static void nf4_floats(const struct codes *q, size_t cols, size_t row, float *out)
{
    const uint8_t *code = (const uint8_t *)q->code + row * cols / 2;
    for (size_t k = 0; k < cols; k += 2) {
        float a = nf4_absmax(q, (row * cols + k) / NF4_BLOCK);
        out[k] = nf4_level[code[k / 2] >> 4] * a;
        out[k + 1] = nf4_level[code[k / 2] & 15] * a;
    }
}

void codes_floats(const struct codes *q, size_t cols, size_t first, size_t count, float *out)
{
    for (size_t r = 0; r < count; r++, out += cols)
        if (q->dtype == DTYPE_INT8)
            int8_floats(q, cols, first + r, out);
        else if (q->dtype == DTYPE_FP8)
            fp8_floats(q, cols, first + r, out);
        else
            nf4_floats(q, cols, first + r, out);
}

/* ---- a whole matrix ---- */

struct making {
    const struct mat_source *s;
    enum dtype dtype;
    void *code;
    float *scale, *absmax;
    uint8_t *absmax_code;
    size_t blocks;
    float offset;
};

static void encode_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    struct making *m = ctx;
    size_t K = m->s->cols;
    float *row = mem_aligned(K * sizeof *row);
    for (size_t r = begin; r < end; r++) {
        m->s->floats(m->s, r, 1, row);
        if (m->dtype == DTYPE_INT8)
            m->scale[r] = int8_encode(row, K, (int8_t *)m->code + r * K);
        else if (m->dtype == DTYPE_FP8)
            m->scale[r] = fp8_encode(row, K, (uint8_t *)m->code + r * K);
        else
            nf4_encode(row, K, (uint8_t *)m->code + r * K / 2, m->absmax + r * K / NF4_BLOCK);
    }
    free(row);
}

static void encode_supers(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    struct making *m = ctx;
    for (size_t i = begin; i < end; i++) {
        size_t at = i * NF4_SUPER, n = m->blocks - at;
        m->scale[i] = encode_super(m->absmax + at, n < NF4_SUPER ? n : NF4_SUPER, m->offset,
                                   m->absmax_code + at);
    }
}

void *codes_make(struct codes *q, const struct mat_source *s, enum dtype dtype, struct pool *pool)
{
    assert(!quant_refuses(dtype, s->cols));
    size_t n = s->rows * s->cols, blocks = dtype == DTYPE_NF4 ? n / NF4_BLOCK : 0;
    size_t scales = blocks ? nf4_supers(blocks) : s->rows;
    float *scale = mem_aligned((scales + blocks) * sizeof(float) + blocks + n);
    struct making m = {s, dtype, NULL, scale, scale + scales, NULL, blocks, 0};
    m.absmax_code = (uint8_t *)(m.absmax + blocks);
    m.code = m.absmax_code + blocks;
    pool_run(pool, s->rows, 1, encode_rows, &m);
    if (blocks) {
        m.offset = nf4_mean(m.absmax, blocks);
        pool_run(pool, nf4_supers(blocks), 1, encode_supers, &m);
    }
    *q = (struct codes){dtype, m.code, m.absmax_code, scale, m.offset};
    return scale;
}
