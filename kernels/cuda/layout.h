/* layout.h - how a matrix lies in the memory of a device: mat.data is one block,
 *
 *     F32             float  [N, K]
 *     BF16, BF16_F32  uint16 [N, S]          S = K rounded up to 8, the tail zero
 *     INT8            int8   [N, S]          S = K rounded up to 16, the tail zero; float scale[N]
 *     FP8             uint8  [N, S]          the same
 *     NF4             uint8  [N, K/2]; uint8 absmax[N K/64]; float scale[ceil(N K/64/256)];
 *                     float offset
 *
 * in the row-major order of the checkpoint; each part begins at a multiple of 256 bytes. F32 rows
 * are not padded.
 */
#ifndef KERNELS_CUDA_LAYOUT_H
#define KERNELS_CUDA_LAYOUT_H

#include "kernels/ops.h"
#include "kernels/quant.h"
#include "lib/base/device.h"

HOST_DEVICE size_t layout_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Values between the beginnings of two rows of codes (NF4: bytes). */
HOST_DEVICE size_t layout_stride(enum dtype dtype, size_t cols)
{
    switch (dtype) {
    case DTYPE_F32: return cols;
    case DTYPE_BF16:
    case DTYPE_BF16_F32: return layout_up(cols, 8);
    case DTYPE_NF4: return cols / 2;
    default: return layout_up(cols, 16);
    }
}

/* Bytes of such a value. */
HOST_DEVICE size_t layout_value(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : dtype == DTYPE_BF16 || dtype == DTYPE_BF16_F32 ? 2 : 1;
}

/* Where the parts begin, in bytes, and where the block ends. A part that a format lacks is empty.
 */
struct layout {
    size_t stride; /* layout_stride */
    size_t absmax, scale, offset, bytes;
};
HOST_DEVICE struct layout layout_of(enum dtype dtype, size_t rows, size_t cols)
{
    size_t value = layout_value(dtype);
    size_t blocks = dtype == DTYPE_NF4 ? rows * (cols / NF4_BLOCK) : 0;
    size_t scales = dtype == DTYPE_NF4 ? nf4_supers(blocks)
                    : dtype == DTYPE_INT8 || dtype == DTYPE_FP8 ? rows : 0;
    struct layout l;
    l.stride = layout_stride(dtype, cols);
    l.absmax = layout_up(rows * l.stride * value, 256);
    l.scale = layout_up(l.absmax + blocks, 256);
    l.offset = layout_up(l.scale + scales * 4, 256);
    l.bytes = dtype == DTYPE_NF4 ? l.offset + 4
              : scales          ? l.scale + scales * 4
                                : rows * l.stride * value;
    return l;
}

#endif
