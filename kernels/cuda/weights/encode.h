/* encode.h - converts values to the format of a matrix on the device, with the bits of
 * kernels/quant.h. */
#pragma once

#include "kernels/cuda/weights/layout.h"
#include "kernels/draw.h"
#include "kernels/ops.h"

/* Rows first .. first + count - 1 of a matrix: values[count, cols], in fp32 or, if `half`, in
 * bf16. */
struct mat_chunk {
    const void *values;
    int half;
    size_t first, count, cols;
};

/* Writes a chunk to its place in the matrix `data` of that format. For NF4 it writes only the codes
 * into the matrix, and the largest |w| of each block to absmax[rows * cols / 64], from the index of
 * the chunk's first block on. */
void encode_chunk(struct backend *backend, unsigned char *data, const struct layout *at,
                  enum dtype dtype, const struct mat_chunk *chunk, float *absmax);

/* The second quantization of NF4: writes codes and scales of absmax[blocks], and the offset, to
 * their places in `data`. offset: quant_absmax_mean() of absmax[blocks]. */
void encode_absmax(struct backend *backend, unsigned char *data, const struct layout *at,
                   const float *absmax, size_t blocks, float offset);

/* out[n] = weights first .. first + n - 1 of a random matrix. table: draw.table in memory of the
 * device. */
void encode_draw(struct backend *backend, float *out, const struct draw *draw, const float *table,
                 size_t first, size_t n);
