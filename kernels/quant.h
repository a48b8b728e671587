/* quant.h - what int8, nf4 and fp8 mean: how values become codes and codes become values again.
 * Here is the definition, in plain C: other back ends have kernels of their own for the same bits.
 *
 * INT8, LLM.int8() (Dettmers et al. 2022, arXiv 2208.07339): a row of weights has one scale,
 *     scale = max |w|,  code = round(w * (127 / scale)) in -127..127,  w' = code * (scale / 127),
 * in fp32, ties to even. In a product a row of activations is quantized the same way, after its
 * outliers, the elements that are not |x| < 6 (so NaN is one), are set to zero there:
 *     y = sum_k xcode_k code_k * ((xscale / 127) * (scale / 127)) + sum_outliers x_k w'_k.
 * The first sum is an exact integer, rounded once to fp32; the outliers' products are added to the
 * scaled sum one by one, k ascending, every operation rounded to fp32: so y is the same bits on
 * every back end. The paper and bitsandbytes take a whole column as outlier when any row of the
 * batch has one there; here each row decides for itself, so that a sequence does not depend on its
 * neighbours.
 *
 * NF4 (Dettmers et al. 2023, arXiv 2305.14314): blocks of 64 consecutive values of the row-major
 * matrix, a = max |w| of the block, code = index of the nearest of 16 levels to w * (1 / a),
 * w' = level[code] * a. Two codes a byte, the first in the high half. Double quantization: with
 * m = mean of all a of the matrix, a - m is kept as 8-bit codes of the dynamic map, in blocks of
 * 256 with one fp32 maximum each. Columns are a multiple of 64, so that no block spans two rows.
 * A product rounds x and the level to bf16 and keeps a in fp32. (Rounding the level is ours;
 * bitsandbytes rounds w' = level * a, or computes in the dtype of x.) A back end may round w' to
 * bf16 instead when there are many rows: CUDA does (kernels/cuda/large.cu), for its library.
 *     y = sum_blocks a sum_k bf16(x_k) bf16(level[code_k]).
 *
 * FP8 (Micikevicius et al. 2022, arXiv 2209.05433): a row of weights has one scale,
 *     scale = max |w|,  code = the e4m3 number nearest to w * (448 / scale), ties to even,
 *     w' = value(code) * (scale / 448).
 * A product rounds x to bf16 and scales the whole sum:
 *     y = (sum_k bf16(x_k) value(code_k)) * (scale / 448).
 *
 * What is not a number: a row (INT8, FP8) or a block (NF4) with a NaN or an infinity has the scale
 * NaN, so that products with it are NaN (for NF4 with double quantization: the whole matrix) and
 * the head reports them. A scale below QUANT_TINY, whose reciprocal would overflow, counts as zero.
 *
 * Source: seeds.md 5.1; the dynamic map is bitsandbytes' create_dynamic_map(signed), bit for bit.
 */
#ifndef KERNELS_QUANT_H
#define KERNELS_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/levels.h"
#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { NF4_BLOCK = 64, NF4_SUPER = 256 };
#define INT8_OUTLIER 6.0f
#define INT8_TOP 127.0f
#define FP8_TOP 448.0f
#define QUANT_TINY 0x1p-119f
/* 127 * 128 * INT8_COLS_MAX still fits an int32 sum. */
enum { INT8_COLS_MAX = 131072 };

/* A quantized matrix as the checkpoint keeps it. INT8: code [rows, cols] int8, scale [rows].
 * NF4: code [rows * cols / 2]; absmax [rows * cols / 64] dynamic-map codes; scale
 * [ceil(rows * cols / 64 / 256)] their maxima; offset m. FP8: as INT8, e4m3 codes. */
struct codes {
    enum dtype dtype;
    const void *code;
    const uint8_t *absmax;
    const float *scale;
    float offset;
};

/* Scales that the absmax of so many blocks have. */
HOST_DEVICE size_t nf4_supers(size_t blocks)
{
    return (blocks + NF4_SUPER - 1) / NF4_SUPER;
}

extern const float nf4_level[16];
extern const uint16_t nf4_level_bf16[16]; /* the same, rounded */
extern const float nf4_dynamic[256];      /* ascending */

/* Why a matrix with so many columns cannot be kept as `dtype`, or NULL: it can. mat_make may only
 * be called when it can. */
const char *quant_refuses(enum dtype dtype, size_t cols);

/* The scale of a row whose largest |w| is `top` (NaN when one is not finite), and what w is
 * multiplied by before it is coded, `most` being the largest code; 0: all codes are 0. */
HOST_DEVICE float quant_scale(float top)
{
    return top < QUANT_TINY ? 0 : top;
}

HOST_DEVICE float quant_up(float top, float most)
{
    return top >= QUANT_TINY ? most / top : 0;
}

/* code[n] and the scale of one row; a row of zeros has scale 0 and codes 0. */
float int8_encode(const float *w, size_t n, int8_t *code);
float fp8_encode(const float *w, size_t n, uint8_t *code);
/* The same for activations: outliers are left out (code 0) and reported in ascending order:
 * outlier[*n_outliers] are their indices (room for n). */
float int8_encode_row(const float *x, size_t n, int8_t *code, uint32_t *outlier,
                      size_t *n_outliers);
/* codes of n values (a multiple of 64), code[n / 2], and absmax[n / 64] of the blocks, in fp32. */
void nf4_encode(const float *w, size_t n, uint8_t *code, float *absmax);
/* Double quantization of the absmax of a whole matrix: code[n], scale[ceil(n / 256)]; returns m. */
float nf4_encode_absmax(const float *absmax, size_t n, uint8_t *code, float *scale);
/* m alone: a sum in double, in order. */
float nf4_mean(const float *absmax, size_t n);
/* The absmax that a code stands for: offset + nf4_dynamic[code] * scale. */
float nf4_unfold(uint8_t code, float scale, float offset);
/* absmax of block i of a matrix, back from its codes. */
float nf4_absmax(const struct codes *q, size_t i);
/* out[count * cols]: the values of rows first.. of a quantized matrix (w' above). */
void codes_floats(const struct codes *q, size_t cols, size_t first, size_t count, float *out);

/* Quantizes a whole matrix by the functions above, on all threads. q's arrays lie in one block,
 * which is returned and the caller's to free. */
void *codes_make(struct codes *q, const struct mat_source *s, enum dtype dtype, struct pool *pool);

#ifdef __cplusplus
}
#endif

#endif
