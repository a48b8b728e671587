/* mat.c - matrices of the reference, kept so that a product can be read off the definition: floats
 * [rows, cols], rounded to bf16 where that is the dtype; or the codes as floats, followed by the
 * scales: INT8 and FP8 scale [rows], NF4 absmax [rows, cols / 64]. */
#include "kernels/ref/mat.h"

#include <assert.h>
#include <stdlib.h>

#include "kernels/host.h"
#include "kernels/quant.h"
#include "lib/base/mem.h"

static int coded(enum dtype dtype)
{
    return dtype == DTYPE_INT8 || dtype == DTYPE_NF4 || dtype == DTYPE_FP8;
}

static int rounds_x(enum dtype dtype)
{
    return dtype == DTYPE_BF16 || dtype == DTYPE_NF4 || dtype == DTYPE_FP8;
}

static size_t scales(enum dtype dtype, size_t rows, size_t cols)
{
    return dtype == DTYPE_NF4 ? rows * (cols / NF4_BLOCK) : coded(dtype) ? rows : 0;
}

static void from_codes(float *data, const struct codes *q, size_t rows, size_t cols)
{
    const uint8_t *code = q->code;
    size_t n = rows * cols;
    for (size_t i = 0; i < n; i++)
        data[i] = q->dtype == DTYPE_INT8  ? (int8_t)code[i]
                  : q->dtype == DTYPE_FP8 ? e4m3_value(code[i])
                  : i % 2                 ? code[i / 2] & 15
                                          : code[i / 2] >> 4;
    for (size_t i = 0; i < scales(q->dtype, rows, cols); i++)
        data[n + i] = q->dtype == DTYPE_NF4 ? nf4_absmax(q, i) : q->scale[i];
}

static void from_floats(float *data, const struct mat_source *s, enum dtype dtype)
{
    size_t n = s->rows * s->cols;
    s->floats(s, 0, s->rows, data);
    for (size_t i = 0; dtype != DTYPE_F32 && i < n; i++)
        data[i] = bf16_float(bf16_of(data[i]));
}

size_t ref_mat_bytes(size_t rows, size_t cols, enum dtype dtype)
{
    return (rows * cols + scales(dtype, rows, cols)) * sizeof(float);
}

int ref_mat_make(struct backend *b, struct mat *m, const struct mat_source *s, enum dtype dtype)
{
    assert(!quant_refuses(dtype, s->cols));
    float *data = host_alloc(b, ref_mat_bytes(s->rows, s->cols, dtype), MEMORY_WEIGHTS);
    if (!data)
        return -1;
    *m = (struct mat){data, dtype, s->rows, s->cols};
    if (!coded(dtype)) {
        from_floats(data, s, dtype);
        return 0;
    }
    struct codes made;
    int ready = s->q && s->q->dtype == dtype;
    void *block = ready ? NULL : codes_make(&made, s, dtype, b->pool);
    from_codes(data, ready ? s->q : &made, s->rows, s->cols);
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
    size_t K = w->cols;
    const float *value = w->data, *scale = value + w->rows * K;
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < K; k++) {
            size_t i = (size_t)token[t] * K + k;
            float *out = (float *)y + t * K + k;
            *out = value[i];
            if (w->dtype == DTYPE_INT8)
                *out = value[i] * (scale[token[t]] / INT8_TOP);
            if (w->dtype == DTYPE_FP8)
                *out = value[i] * (scale[token[t]] / FP8_TOP);
            if (w->dtype == DTYPE_NF4)
                *out = nf4_level[(int)value[i]] * scale[i / NF4_BLOCK];
        }
}

static void int8_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols, n_outliers;
    const float *value = w->data, *scale = value + w->rows * K;
    int8_t *code = mem_alloc(K);
    uint32_t *outlier = mem_alloc(K * sizeof *outlier);
    float step = int8_encode_row(x, K, code, outlier, &n_outliers) / INT8_TOP;
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

static double nf4_output(const float *x, const float *code, const float *absmax, size_t K)
{
    double y = 0;
    for (size_t k = 0; k < K; k += NF4_BLOCK) {
        double sum = 0;
        for (size_t i = k; i < k + NF4_BLOCK; i++)
            sum += (double)x[i] * bf16_float(nf4_level_bf16[(int)code[i]]);
        y += absmax[k / NF4_BLOCK] * sum;
    }
    return y;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

void ref_outputs(double *y, const float *x, const struct mat *w)
{
    size_t K = w->cols, blocks = K / NF4_BLOCK;
    const float *value = w->data, *scale = value + w->rows * K;
    if (w->dtype == DTYPE_INT8) {
        int8_outputs(y, x, w);
        return;
    }
    int fp8 = w->dtype == DTYPE_FP8;
    float *near = mem_alloc(K * sizeof *near);
    for (size_t k = 0; k < K; k++)
        near[k] = rounds_x(w->dtype) ? bf16_float(bf16_of(x[k])) : x[k];
    for (size_t n = 0; n < w->rows; n++)
        y[n] = w->dtype == DTYPE_NF4 ? nf4_output(near, value + n * K, scale + n * blocks, K)
                                     : dot(near, value + n * K, K) * (fp8 ? scale[n] / FP8_TOP : 1);
    free(near);
}
