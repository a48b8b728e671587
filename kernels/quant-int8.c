/* quant-int8.c - LLM.int8() and int8-vector by their definition in quant.h, in plain fp32: codes of
 * rows of weights, and of rows of activations without their outliers. Every operation is rounded to
 * fp32 separately, so that each back end can make the same codes. */
#include <math.h>
#include <string.h>

#include "kernels/quant-vectors.h"
#include "kernels/quant.h"

EACH_LEVEL float quant_int8(const float *w, size_t n, int8_t *code)
{
    float top = largest_of(w, n), up = quant_up(top, INT8_TOP);
    if (!(up > 0))
        memset(code, 0, n);
    else
        for (size_t i = 0; i < n; i++)
            code[i] = (int8_t)level_round(w[i] * up);
    return quant_scale(top);
}

float quant_int8_row(const float *x, size_t n, float limit, int8_t *code, uint32_t *outlier,
                     size_t *n_outliers)
{
    float scale = 0;
    *n_outliers = 0;
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);
        if (!(size < limit))
            outlier[(*n_outliers)++] = (uint32_t)i;
        else if (size > scale)
            scale = size;
    }
    float up = quant_up(scale, INT8_TOP);
    for (size_t i = 0; i < n; i++)
        code[i] = fabsf(x[i]) < limit ? (int8_t)level_round(x[i] * up) : 0;
    return quant_scale(scale);
}

static void encode(const struct quant_target *target, size_t row, const float *w)
{
    target->scale[row] = quant_int8(w, target->cols, (int8_t *)target->code + row * target->cols);
}

static void floats(const struct codes *codes, size_t cols, size_t row, float *out)
{
    const int8_t *code = (const int8_t *)codes->code + row * cols;
    float step = codes->scale[row] / INT8_TOP;
    for (size_t k = 0; k < cols; k++)
        out[k] = code[k] * step;
}

const struct quant_format quant_int8_format = {.encode = encode, .floats = floats};
