/* ref_mat.c - matrices of the reference back end. They are stored so that each product can be
 * compared with its definition in kernels/ops.h: as floats [rows, cols], rounded to bf16 or fp16
 * where that is the dtype; or as codes in floats, followed by fp32 scales (one a row; formats of
 * blocks: the absmax [rows, cols / 64]). Each quantized format is one row of formats[] with
 * three functions. */
#include "kernels/ref/ref.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/finite.h"
#include "kernels/host.h"
#include "kernels/quant.h"
#include "lib/base/mem.h"

/* The functions of a quantized format. */
struct ref_format {
    /* code i of a matrix as a float */
    float (*code)(const void *codes, size_t i);
    /* the value of a code with its scale */
    float (*value)(float code, float scale);
    /* y[N] = the products of x[K] (not rounded) with w */
    void (*outputs)(double *y, const float *x, const struct mat *w);
};

static const float *scales_of(const struct mat *w)
{
    return (const float *)w->data + w->rows * w->cols;
}

/* x[n] rounded to bf16, or for F16 to fp16. The caller frees it. */
static float *rounded(const float *x, size_t n, enum dtype d)
{
    float *near = mem_alloc(n * sizeof *near);
    for (size_t k = 0; k < n; k++)
        near[k] = d == DTYPE_F16 ? f16_float(f16_of(x[k])) : bf16_float(bf16_of(x[k]));
    return near;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

/* ---- int8 ---- */

static float int8_code(const void *codes, size_t i) { return ((const int8_t *)codes)[i]; }

static float int8_value(float code, float scale) { return code * (scale / INT8_TOP); }

static void int8_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols, n_outliers;
    const float *value = w->data, *scale = scales_of(w);
    int8_t *code = mem_alloc(K);
    uint32_t *outlier = mem_alloc(K * sizeof *outlier);
    float limit = quant_outlier(w->dtype);
    float step = quant_int8_row(x, K, limit, code, outlier, &n_outliers) / INT8_TOP;
    for (size_t n = 0; n < w->rows; n++) {
        const float *row = value + n * K;
        float wstep = scale[n] / INT8_TOP;
        int64_t sum = 0;
        for (size_t k = 0; k < K; k++)
            sum += code[k] * (int64_t)row[k];
        float out = (float)sum * (step * wstep);
        for (size_t i = 0; i < n_outliers; i++)
            out += x[outlier[i]] * (row[outlier[i]] * wstep);
        y[n] = (double)out;
    }
    free(code), free(outlier);
}

/* ---- blocks of 16 levels ---- */

static float block_code(const void *codes, size_t i)
{
    uint8_t pair = ((const uint8_t *)codes)[i / 2];
    return i % 2 ? pair & 15 : pair >> 4;
}

static float nf4_value(float code, float scale)
{
    return quant_levels(DTYPE_NF4)[(int)code] * scale;
}

static float fp4_value(float code, float scale)
{
    return quant_levels(DTYPE_FP4)[(int)code] * scale;
}

static double block_output(const float *x, const float *code, const float *absmax,
                           const uint16_t *level, size_t K)
{
    double y = 0;
    for (size_t k = 0; k < K; k += QUANT_BLOCK) {
        double sum = 0;
        for (size_t i = k; i < k + QUANT_BLOCK; i++)
            sum += (double)x[i] * bf16_float(level[(int)code[i]]);
        y += absmax[k / QUANT_BLOCK] * sum;
    }
    return y;
}

static void block_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols;
    float *near = rounded(x, K, w->dtype);
    for (size_t n = 0; n < w->rows; n++)
        y[n] = block_output(near, (const float *)w->data + n * K,
                            scales_of(w) + n * (K / QUANT_BLOCK), quant_levels_bf16(w->dtype), K);
    free(near);
}

/* ---- fp8 ---- */

static float fp8_code(const void *codes, size_t i)
{
    return e4m3_value(((const uint8_t *)codes)[i]);
}

static float fp8_value(float code, float scale) { return code * (scale / FP8_TOP); }

static void fp8_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols;
    float *near = rounded(x, K, w->dtype);
    for (size_t n = 0; n < w->rows; n++)
        y[n] = dot(near, (const float *)w->data + n * K, K) * (scales_of(w)[n] / FP8_TOP);
    free(near);
}

/* ---- blocks of integers ---- */

static float q4_value(float code, float scale) { return (code - 8) * (scale / 8); }

static float q4_output(const int8_t *x, const float *step, const float *code, const float *absmax,
                       size_t K)
{
    float y = 0;
    for (size_t k = 0; k < K; k += QUANT_BLOCK) {
        size_t b = k / QUANT_BLOCK;
        int32_t sum = 0;
        for (size_t i = k; i < k + QUANT_BLOCK; i++)
            sum += x[i] * ((int32_t)code[i] - 8);
        float scale = step[b] * (absmax[b] / 8);
        y += (float)sum * scale;
    }
    return y;
}

static void q4_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols, blocks = K / QUANT_BLOCK;
    int8_t *code = mem_alloc(K);
    float *step = mem_alloc(blocks * sizeof *step);
    for (size_t b = 0; b < blocks; b++)
        step[b] = quant_int8(x + b * QUANT_BLOCK, QUANT_BLOCK, code + b * QUANT_BLOCK) / INT8_TOP;
    for (size_t n = 0; n < w->rows; n++)
        y[n] = (double)q4_output(code, step, (const float *)w->data + n * K,
                                 scales_of(w) + n * blocks, K);
    free(code), free(step);
}

static const struct ref_format formats[DTYPES] = {
    [DTYPE_INT8] = {int8_code, int8_value, int8_outputs},
    [DTYPE_INT8_VECTOR] = {int8_code, int8_value, int8_outputs},
    [DTYPE_NF4] = {block_code, nf4_value, block_outputs},
    [DTYPE_NF4_F32] = {block_code, nf4_value, block_outputs},
    [DTYPE_FP4] = {block_code, fp4_value, block_outputs},
    [DTYPE_FP8] = {fp8_code, fp8_value, fp8_outputs},
    [DTYPE_Q4] = {block_code, q4_value, q4_outputs},
};

/* ---- any format ---- */

static void from_codes(float *data, const struct codes *q, size_t rows, size_t cols)
{
    size_t n = rows * cols, scales = dtype_scales(q->dtype, rows, cols);
    for (size_t i = 0; i < n; i++)
        data[i] = formats[q->dtype].code(q->code, i);
    for (size_t i = 0; i < scales; i++)
        data[n + i] = dtype_info[q->dtype].block ? quant_absmax_at(q, i) : q->scale[i];
}

static void from_floats(float *data, const struct mat_source *s, enum dtype dtype)
{
    size_t n = s->rows * s->cols;
    s->floats(s, 0, s->rows, data);
    for (size_t i = 0; dtype != DTYPE_F32 && i < n; i++)
        data[i] = dtype == DTYPE_F16 ? f16_float(f16_of(data[i])) : bf16_float(bf16_of(data[i]));
}

size_t ref_mat_bytes(size_t rows, size_t cols, enum dtype dtype)
{
    return (rows * cols + dtype_scales(dtype, rows, cols)) * sizeof(float);
}

int ref_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype)
{
    assert(!dtype_refuses(dtype, s->cols));
    float *data = host_alloc(b, ref_mat_bytes(s->rows, s->cols, dtype), MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *m = (struct mat){data, dtype, s->rows, s->cols};
    if (!dtype_info[dtype].quantized) {
        from_floats(data, s, dtype);
        return 0;
    }
    struct codes made;
    int ready = s->q && s->q->dtype == dtype;
    void *block = ready ? NULL : quant_make(&made, s, dtype, b->pool);
    from_codes(data, ready ? s->q : &made, s->rows, s->cols);
    if (s->odd && !finite_floats(data, s->rows * s->cols))
        finite_mark(s);
    free(block);
    return 0;
}

void ref_mat_free(struct backend *b, struct mat *m)
{
    host_free(b, m->data);
    m->data = NULL;
}

void ref_embed(struct backend *b, act *y, const struct mat *w, const int32_t *token, size_t T)
{
    (void)b;
    size_t K = w->cols, N = w->rows, all = dtype_scales(w->dtype, N, K);
    const struct ref_format *f = &formats[w->dtype];
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < K; k++) {
            size_t i = (size_t)token[t] * K + k;
            float value = ((const float *)w->data)[i];
            ((float *)y)[t * K + k] =
                all ? f->value(value, scales_of(w)[i / (N * K / all)]) : value;
        }
}

void ref_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols;
    if (formats[w->dtype].outputs) {
        formats[w->dtype].outputs(y, x, w);
        return;
    }
    int rounds = w->dtype == DTYPE_BF16 || w->dtype == DTYPE_F16;
    float *near = rounds ? rounded(x, K, w->dtype) : NULL;
    for (size_t n = 0; n < w->rows; n++)
        y[n] = dot(near ? near : x, (const float *)w->data + n * K, K);
    free(near);
}
