/* quant.c - whole matrices to codes and back, in any format. One thread encodes a row from floats
 * that are made for this row, so a matrix is never in memory as floats. The formats are in
 * quant-NAME.c. */
#include "kernels/quant.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"

static const struct quant_format *const formats[DTYPES] = {
    [DTYPE_INT8] = &quant_int8_format, [DTYPE_INT8_VECTOR] = &quant_int8_format,
    [DTYPE_FP8] = &quant_fp8_format,   [DTYPE_NF4] = &quant_nf4_format,
    [DTYPE_FP4] = &quant_fp4_format,   [DTYPE_NF4_F32] = &quant_nf4_f32_format,
    [DTYPE_Q4] = &quant_q4_format,
};

float quant_largest(const float *x, size_t n)
{
    float top = 0;
    for (size_t i = 0; i < n; i++) {
        float a = fabsf(x[i]);
        top = a > top || a != a ? a : top; /* NaN stays NaN: no value compares greater */
    }
    return isfinite(top) ? top : NAN;
}

void quant_floats(const struct codes *q, size_t cols, size_t first, size_t count, float *out)
{
    for (size_t r = 0; r < count; r++)
        formats[q->dtype]->floats(q, cols, first + r, out + r * cols);
}

struct making {
    const struct mat_source *s;
    const struct quant_format *format;
    struct quant_target to;
};

static void encode_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct making *m = ctx;
    float *row = mem_aligned(m->s->cols * sizeof *row);
    for (size_t r = begin; r < end; r++) {
        m->s->floats(m->s, r, 1, row);
        m->format->encode(&m->to, r, row);
    }
    free(row);
}

void *quant_make(struct codes *q, const struct mat_source *s, enum dtype dtype, struct pool *pool)
{
    assert(!dtype_refuses(dtype, s->cols));
    const size_t N = s->rows, K = s->cols;
    size_t code = dtype_part_bytes(dtype, PART_CODE, N, K);
    size_t absmax = dtype_part_bytes(dtype, PART_ABSMAX, N, K);
    size_t scale = dtype_part_bytes(dtype, PART_SCALE, N, K);
    size_t blocks = absmax ? dtype_scales(dtype, N, K) : 0;
    char *block = mem_aligned(scale + blocks * sizeof(float) + absmax + code);
    struct making m = {s, formats[dtype], {.cols = K, .scale = (float *)block}};
    m.to.block_scale = m.to.scale + (blocks ? scale / sizeof(float) : 0);
    m.to.absmax = (uint8_t *)(m.to.scale + scale / sizeof(float) + blocks);
    m.to.code = m.to.absmax + absmax;
    pool_run(pool, N, 1, encode_rows, &m);
    float offset = m.format->fold ? m.format->fold(&m.to, blocks, pool) : 0;
    *q = (struct codes){dtype, m.to.code, m.to.absmax, m.to.scale, offset};
    return block;
}
