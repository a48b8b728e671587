/* quant.c - quantizes whole matrices and returns their values, in any format. A thread makes the
 * floats of one row and encodes them, so a matrix is never in memory as floats. The formats are in
 * quant-NAME.c. */
#include "kernels/quant.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

static const struct quant_format *const formats[DTYPES] = {
    [DTYPE_INT8] = &quant_int8_format, [DTYPE_INT8_VECTOR] = &quant_int8_format,
    [DTYPE_FP8] = &quant_fp8_format,   [DTYPE_NF4] = &quant_nf4_format,
    [DTYPE_FP4] = &quant_fp4_format,   [DTYPE_NF4_F32] = &quant_nf4_f32_format,
    [DTYPE_Q4] = &quant_q4_format,
};

void quant_floats(const struct codes *codes, size_t cols, size_t first, size_t count, float *out)
{
    for (size_t row = 0; row < count; row++)
        formats[codes->dtype]->floats(codes, cols, first + row, out + row * cols);
}

struct making {
    const struct mat_source *s;
    const struct quant_format *format;
    struct quant_target to;
};

static void encode_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct making *making = ctx;
    float *row = mem_aligned(making->s->cols * sizeof *row);
    for (size_t at = begin; at < end; at++) {
        making->s->floats(making->s, at, 1, row);
        making->format->encode(&making->to, at, row);
    }
    free(row);
}

void *quant_make(struct codes *codes, const struct mat_source *source, enum dtype dtype,
                 struct pool *pool)
{
    assert(!dtype_refuses(dtype, source->cols));
    const size_t rows = source->rows, K = source->cols;
    size_t code = dtype_part_bytes(dtype, PART_CODE, rows, K);
    size_t absmax = dtype_part_bytes(dtype, PART_ABSMAX, rows, K);
    size_t scale = dtype_part_bytes(dtype, PART_SCALE, rows, K);
    size_t blocks = absmax ? dtype_scales(dtype, rows, K) : 0;
    char *block = mem_aligned(scale + blocks * sizeof(float) + absmax + code);
    struct making making = {source, formats[dtype], {.cols = K, .scale = (float *)block}};
    making.to.block_scale = making.to.scale + (blocks ? scale / sizeof(float) : 0);
    making.to.absmax = (uint8_t *)(making.to.scale + scale / sizeof(float) + blocks);
    making.to.code = making.to.absmax + absmax;
    pool_run(pool, rows, 1, encode_rows, &making);
    float offset = making.format->fold ? making.format->fold(&making.to, blocks, pool) : 0;
    *codes = (struct codes){dtype, making.to.code, making.to.absmax, making.to.scale, offset};
    return block;
}
