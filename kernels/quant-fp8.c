/* quant-fp8.c - the FP8 format (e4m3 with one scale a row) by its definition in quant.h, in plain
 * fp32. The numbers of e4m3 and their rounding are in levels.h, which devices use too. */
#include "kernels/quant-vectors.h"
#include "kernels/quant.h"

float quant_fp8(const float *w, size_t n, uint8_t *code)
{
    float top = largest_of(w, n), up = quant_up(top, FP8_TOP);
    for (size_t i = 0; i < n; i++)
        code[i] = up > 0 ? e4m3_of(w[i] * up) : 0;
    return quant_scale(top);
}

static void encode(const struct quant_target *target, size_t row, const float *w)
{
    target->scale[row] = quant_fp8(w, target->cols, (uint8_t *)target->code + row * target->cols);
}

static void floats(const struct codes *codes, size_t cols, size_t row, float *out)
{
    const uint8_t *code = (const uint8_t *)codes->code + row * cols;
    float step = codes->scale[row] / FP8_TOP;
    for (size_t k = 0; k < cols; k++)
        out[k] = e4m3_value(code[k]) * step;
}

const struct quant_format quant_fp8_format = {.encode = encode, .floats = floats};
