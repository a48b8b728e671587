/* quant.h - defines the quantized formats in plain C: values to codes, and codes to values. Back
 * ends have their own kernels for the same bits. Sizes and limits of the formats are in
 * kernels/dtype.h. w' is the value that a code stands for.
 *
 * INT8, LLM.int8() (Dettmers et al. 2022, arXiv 2208.07339): a row of weights has one scale,
 *     scale = max |w|,  code = round(w * (127 / scale)) in -127..127,  w' = code * (scale / 127),
 * in fp32, ties to even. In a product a row of activations is quantized in the same way. Its
 * outliers are the elements for which |x| < 6 is false (so NaN is an outlier). They count as zero
 * in the codes:
 *     y = sum_k xcode_k code_k * ((xscale / 127) * (scale / 127)) + sum_outliers x_k w'_k.
 * The first sum is an exact integer, rounded once to fp32. The products of outliers are added to
 * the scaled sum one by one, k ascending, each operation rounded to fp32. So y has the same bits on
 * every back end. The paper and bitsandbytes treat a whole column as outlier if any row of the
 * batch has an outlier there. Here each row has its own outliers, so that a sequence does not
 * depend on its neighbours.
 *
 * INT8_VECTOR, vector-wise int8 (the baseline of the paper on LLM.int8(), 2.1): weights have the
 * codes and scales of INT8. Only elements of x that are infinite or NaN are outliers, so that y
 * shows them. One large element makes the codes of its whole row coarse.
 *
 * NF4 (Dettmers et al. 2023, arXiv 2305.14314): the row-major matrix is cut into blocks of 64
 * consecutive values, with a = max |w| of the block (absmax), and
 *     code = the index of the level nearest to w * (1 / a), of 16 levels,  w' = level[code] * a.
 * Two codes make a byte, the first one in the high half. Double quantization: with m = the mean of
 * all a of the matrix, a - m is stored as an 8-bit code of the dynamic map, and 256 of these codes
 * share one fp32 scale, their largest |a - m|. Columns are a multiple of 64, so that no block spans
 * two rows. A product rounds x and the level to bf16 and uses a in fp32:
 *     y = sum_blocks a sum_k bf16(x_k) bf16(level[code_k]).
 * (Rounding the level is our choice; bitsandbytes rounds w' = level * a, or computes in the dtype
 * of x.) A back end may round w' to bf16 instead when there are many rows: CUDA does so for the
 * vendor's library and in wide.cu (kernels/cuda/product).
 *
 * NF4_F32: NF4 without double quantization, a in fp32. FP4: NF4_F32 with 16 other levels, a sign
 * and 0, 1/192, 1/6, 1/4, 1/3, 1/2, 2/3, 1 (bnb_4bit_quant_type "fp4" of bitsandbytes without
 * bnb_4bit_use_double_quant, its default).
 *
 * Q4 (blocks of integers, as Q4_0 of llama.cpp): blocks of 64 values. Let v be the value of the
 * largest magnitude (if v and -v both occur, the positive one). Then a = -|v| if v is positive,
 * else a = |v|, so that v has code 0 and w' = v exactly:
 *     code = min(15, 8 + round(8 w / a)),  w' = (code - 8) * (a / 8),
 * ties to even. In a product each block of 64 activations becomes int8 codes with a scale of its
 * own, as a row does in INT8, without outliers:
 *     y = sum_blocks (sum_k xcode_k (code_k - 8)) * ((xscale / 127) * (a / 8)).
 * The inner sum is an exact integer, and blocks are added in order, each operation rounded to fp32.
 * So y has the same bits at every level and in ref. A block of x with a value that is not finite
 * gives NaN.
 *
 * FP8 (Micikevicius et al. 2022, arXiv 2209.05433): a row of weights has one scale,
 *     scale = max |w|,  code = the e4m3 number nearest to w * (448 / scale), ties to even,
 *     w' = value(code) * (scale / 448).
 * A product rounds x to bf16 and scales the whole sum:
 *     y = (sum_k bf16(x_k) value(code_k)) * (scale / 448).
 *
 * Values that are not finite: a row (int8, FP8) or a block (4 bits) with a NaN or an infinity has
 * the scale NaN; in NF4 with double quantization the whole matrix has. Products with such a scale
 * are NaN, and the head reports them. A scale below QUANT_TINY, whose reciprocal would overflow,
 * counts as zero.
 *
 * Source: github.com/bitsandbytes-foundation/bitsandbytes; the dynamic map is its
 * create_dynamic_map(signed), bit for bit. */
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"
#include "kernels/ops.h"
#include "lib/base/linkage.h"

C_BEGIN

#define INT8_OUTLIER 6.0f
#define INT8_TOP 127.0f
#define FP8_TOP 448.0f
#define QUANT_TINY 0x1p-119f

/* A quantized matrix as the checkpoint stores it: the arrays of its row in dtype_info[]. INT8: code
 * [rows, cols] int8, scale [rows]. NF4: code [rows * cols / 2]; absmax [rows * cols / 64], codes of
 * the dynamic map; scale [ceil(rows * cols / 64 / 256)], the scales of these codes; offset m.
 * NF4_F32, FP4, Q4: code as in NF4; scale [rows * cols / 64] holds the values a; in Q4 they have a
 * sign. FP8: as INT8, with e4m3 codes. */
struct codes {
    enum dtype dtype;
    const void *code;
    const uint8_t *absmax;
    const float *scale;
    float offset;
};

/* The number of scales for the absmax of `blocks` blocks. */
HOST_DEVICE size_t quant_supers(size_t blocks)
{
    return (blocks + QUANT_SUPER - 1) / QUANT_SUPER;
}

extern const float dynamic_level[256]; /* ascending */
/* The 16 levels of a format of blocks. quant_levels_bf16() returns them rounded to bf16. */
const float *quant_levels(enum dtype dtype);
const uint16_t *quant_levels_bf16(enum dtype dtype);

/* The limit of outliers in a format that codes x: elements for which |x| < limit is false are
 * outliers. */
HOST_DEVICE float quant_outlier(enum dtype dtype)
{
    return dtype == DTYPE_INT8 ? INT8_OUTLIER : INFINITY;
}

/* top: the largest |w| of a row (NaN if one is not finite). quant_scale() returns the scale of the
 * row. quant_up() returns the factor by which w is multiplied before it is coded, with `most` the
 * largest code; 0: all codes are 0. */
HOST_DEVICE float quant_scale(float top)
{
    return top < QUANT_TINY ? 0 : top;
}

HOST_DEVICE float quant_up(float top, float most)
{
    return top >= QUANT_TINY ? most / top : 0;
}

/* Writes code[n]; returns the scale of the row. A row of zeros has scale 0 and codes 0. */
float quant_int8(const float *w, size_t n, int8_t *code);
float quant_fp8(const float *w, size_t n, uint8_t *code);
/* quant_int8() for a row of activations. Outliers (|x| < limit is false) get code 0;
 * outlier[0 .. *n_outliers) are their indices in ascending order, in an array of n. */
float quant_int8_row(const float *x, size_t n, float limit, int8_t *code, uint32_t *outlier,
                     size_t *n_outliers);
/* Writes the codes of n values (a multiple of 64) in a format of blocks to code[n / 2], and the
 * value a of each block to absmax[n / 64]. */
void quant_blocks(enum dtype dtype, const float *w, size_t n, uint8_t *code, float *absmax);
/* The mean m of all absmax of a matrix, summed in double, in order. */
float quant_absmax_mean(const float *absmax, size_t n);
/* The absmax a that a code stands for: offset + dynamic_level[code] * scale. */
float quant_absmax_unfold(uint8_t code, float scale, float offset);
/* The absmax of block i of a matrix, from its codes. */
float quant_absmax_at(const struct codes *codes, size_t i);

/* ---- whole matrices ---- */

/* The output arrays while a matrix is quantized: those of struct codes and, for a format that
 * quantizes scales too, the scales in fp32. */
struct quant_target {
    size_t cols;
    void *code;
    float *scale;
    float *block_scale; /* [dtype_scales()] scales in fp32; the array is `scale` unless scales are
                         * quantized too */
    uint8_t *absmax;
};
/* The functions of a format, defined in quant-NAME.c; quant.c lists them. */
struct quant_format {
    /* Writes codes and scales of row `row` from its values w[cols]. */
    void (*encode)(const struct quant_target *target, size_t row, const float *w);
    /* Called when all rows are encoded. Quantizes the n scales in block_scale on all threads and
     * returns the offset. NULL: scales stay in fp32. */
    float (*fold)(const struct quant_target *target, size_t n, struct pool *pool);
    /* out[cols] = the values w' of a row. */
    void (*floats)(const struct codes *codes, size_t cols, size_t row, float *out);
};
extern const struct quant_format quant_int8_format, quant_fp8_format;
extern const struct quant_format quant_nf4_format, quant_nf4_f32_format, quant_fp4_format;
extern const struct quant_format quant_q4_format;

/* out[count, cols] = the values w' of rows first .. first + count - 1 of a quantized matrix. */
void quant_floats(const struct codes *codes, size_t cols, size_t first, size_t count, float *out);
/* Quantizes a whole matrix on all threads. The arrays of *codes lie in one block, which is
 * returned; the caller frees it. */
void *quant_make(struct codes *codes, const struct mat_source *source, enum dtype dtype,
                 struct pool *pool);

C_END
