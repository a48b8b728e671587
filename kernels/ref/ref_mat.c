/* ref_mat.c - matrices of the reference back end. They are stored so that each product can be
 * compared with its definition in kernels/ops.h. Plain formats are stored as floats [rows, cols],
 * rounded to bf16 or fp16 if that is the dtype. Quantized formats are stored as codes in floats,
 * followed by fp32 scales: one a row, or for formats of blocks the absmax [rows, cols / 64]. Each
 * quantized format has one row of formats[] with three functions. */
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
    void (*outputs)(double *y, const float *x, const struct mat *weight);
};

static const float *scales_of(const struct mat *weight)
{
    return (const float *)weight->data + weight->rows * weight->cols;
}

/* Returns a copy of x[n] rounded to bf16, or for F16 to fp16. The caller frees it. */
static float *rounded(const float *x, size_t n, enum dtype dtype)
{
    float *near = mem_alloc(n * sizeof *near);
    for (size_t k = 0; k < n; k++)
        near[k] = dtype == DTYPE_F16 ? f16_float(f16_of(x[k])) : bf16_float(bf16_of(x[k]));
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

static void int8_outputs(double *y, const float *x, const struct mat *weight)
{
    size_t K = weight->cols, n_outliers;
    const float *value = weight->data, *scale = scales_of(weight);
    int8_t *code = mem_alloc(K);
    uint32_t *outlier = mem_alloc(K * sizeof *outlier);
    float limit = quant_outlier(weight->dtype);
    float step = quant_int8_row(x, K, limit, code, outlier, &n_outliers) / INT8_TOP;
    for (size_t n = 0; n < weight->rows; n++) {
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

static void block_outputs(double *y, const float *x, const struct mat *weight)
{
    size_t K = weight->cols;
    float *near = rounded(x, K, weight->dtype);
    for (size_t n = 0; n < weight->rows; n++)
        y[n] = block_output(near, (const float *)weight->data + n * K,
                            scales_of(weight) + n * (K / QUANT_BLOCK),
                            quant_levels_bf16(weight->dtype), K);
    free(near);
}

/* ---- fp8 ---- */

static float fp8_code(const void *codes, size_t i)
{
    return e4m3_value(((const uint8_t *)codes)[i]);
}

static float fp8_value(float code, float scale) { return code * (scale / FP8_TOP); }

static void fp8_outputs(double *y, const float *x, const struct mat *weight)
{
    size_t K = weight->cols;
    float *near = rounded(x, K, weight->dtype);
    for (size_t n = 0; n < weight->rows; n++)
        y[n] = dot(near, (const float *)weight->data + n * K, K) * (scales_of(weight)[n] / FP8_TOP);
    free(near);
}

/* ---- blocks of integers ---- */

static float q4_value(float code, float scale) { return (code - 8) * (scale / 8); }

static float q4_output(const int8_t *x, const float *step, const float *code, const float *absmax,
                       size_t K)
{
    float y = 0;
    for (size_t k = 0; k < K; k += QUANT_BLOCK) {
        size_t block = k / QUANT_BLOCK;
        int32_t sum = 0;
        for (size_t i = k; i < k + QUANT_BLOCK; i++)
            sum += x[i] * ((int32_t)code[i] - 8);
        float scale = step[block] * (absmax[block] / 8);
        y += (float)sum * scale;
    }
    return y;
}

static void q4_outputs(double *y, const float *x, const struct mat *weight)
{
    size_t K = weight->cols, blocks = K / QUANT_BLOCK;
    int8_t *code = mem_alloc(K);
    float *step = mem_alloc(blocks * sizeof *step);
    for (size_t block = 0; block < blocks; block++)
        step[block] = quant_int8(x + block * QUANT_BLOCK, QUANT_BLOCK, code + block * QUANT_BLOCK) /
                      INT8_TOP;
    for (size_t n = 0; n < weight->rows; n++)
        y[n] = (double)q4_output(code, step, (const float *)weight->data + n * K,
                                 scales_of(weight) + n * blocks, K);
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

static void from_codes(float *data, const struct codes *codes, size_t rows, size_t cols)
{
    size_t n = rows * cols, scales = dtype_scales(codes->dtype, rows, cols);
    for (size_t i = 0; i < n; i++)
        data[i] = formats[codes->dtype].code(codes->code, i);
    for (size_t i = 0; i < scales; i++)
        data[n + i] = dtype_info[codes->dtype].block ? quant_absmax_at(codes, i) : codes->scale[i];
}

static void from_floats(float *data, const struct mat_source *source, enum dtype dtype)
{
    size_t n = source->rows * source->cols;
    source->floats(source, 0, source->rows, data);
    for (size_t i = 0; dtype != DTYPE_F32 && i < n; i++)
        data[i] = dtype == DTYPE_F16 ? f16_float(f16_of(data[i])) : bf16_float(bf16_of(data[i]));
}

size_t ref_mat_bytes(size_t rows, size_t cols, enum dtype dtype)
{
    return (rows * cols + dtype_scales(dtype, rows, cols)) * sizeof(float);
}

int ref_mat_make(struct backend *backend, struct mat *weight, const struct mat_source *source,
                 enum dtype dtype)
{
    assert(!dtype_refuses(dtype, source->cols));
    float *data = host_alloc(backend, ref_mat_bytes(source->rows, source->cols, dtype),
                             MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *weight = (struct mat){data, dtype, source->rows, source->cols};
    if (!dtype_info[dtype].quantized) {
        from_floats(data, source, dtype);
        return 0;
    }
    struct codes made;
    int ready = source->q && source->q->dtype == dtype;
    void *block = ready ? NULL : quant_make(&made, source, dtype, backend->pool);
    from_codes(data, ready ? source->q : &made, source->rows, source->cols);
    if (source->odd && !finite_floats(data, source->rows * source->cols))
        finite_mark(source);
    free(block);
    return 0;
}

void ref_mat_free(struct backend *backend, struct mat *weight)
{
    host_free(backend, weight->data);
    weight->data = NULL;
}

void ref_embed(struct backend *backend, act *y, const struct mat *weight, const int32_t *token,
               size_t T)
{
    (void)backend;
    size_t K = weight->cols, N = weight->rows, all = dtype_scales(weight->dtype, N, K);
    const struct ref_format *format = &formats[weight->dtype];
    for (size_t row = 0; row < T; row++)
        for (size_t k = 0; k < K; k++) {
            size_t i = (size_t)token[row] * K + k;
            float value = ((const float *)weight->data)[i];
            ((float *)y)[row * K + k] =
                all ? format->value(value, scales_of(weight)[i / (N * K / all)]) : value;
        }
}

void ref_outputs(double *y, const float *x, const struct mat *weight)
{
    size_t K = weight->cols;
    if (formats[weight->dtype].outputs) {
        formats[weight->dtype].outputs(y, x, weight);
        return;
    }
    int rounds = weight->dtype == DTYPE_BF16 || weight->dtype == DTYPE_F16;
    float *near = rounds ? rounded(x, K, weight->dtype) : NULL;
    for (size_t n = 0; n < weight->rows; n++)
        y[n] = dot(near ? near : x, (const float *)weight->data + n * K, K);
    free(near);
}
