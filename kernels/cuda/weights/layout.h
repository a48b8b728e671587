/* layout.h - how a matrix lies in the memory of a device. mat.data is one block; N: rows, K:
 * columns:
 *
 *     F32             float  [N, K]
 *     BF16, BF16_F32  uint16 [N, S]          S = K rounded up to 8, the tail zero
 *     F16             uint16 [N, S]          the same
 *     INT8, .._VECTOR int8   [N, S]          S = K rounded up to 16, the tail zero; float scale[N]
 *     FP8             uint8  [N, S]          the same
 *     NF4             uint8  [N, K/2]; uint8 absmax[N K/64]; float scale[ceil(N K/64/256)];
 *                     float offset
 *     NF4_F32, FP4    uint8  [N, K/2]; float scale[N K/64]
 *
 * Values have the row-major order of the checkpoint; each part begins at a multiple of 256 bytes.
 * F32 rows are not padded. */
#pragma once

#include "kernels/ops.h"
#include "kernels/quant.h"
#include "lib/base/host_device.h"

HOST_DEVICE size_t layout_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The distance of two rows of values or codes, in values (4-bit formats: in bytes). Rows start at
 * multiples of 16 bytes, except in F32 and formats of blocks, whose rows have no gaps. */
static inline size_t layout_stride(enum dtype dtype, size_t cols)
{
    const struct dtype_info *i = &dtype_info[dtype];
    if (i->bits == 32 || i->block)
        return i->bits < 8 ? cols * i->bits / 8 : cols;
    return layout_up(cols, 16 * 8 / i->bits);
}

/* Bytes of the unit in which layout_stride() counts. */
static inline size_t layout_value(enum dtype dtype)
{
    size_t bits = dtype_info[dtype].bits;
    return bits < 8 ? 1 : bits / 8;
}

/* Offsets of the parts and the end of the block, in bytes. A part that a format lacks is empty. */
struct layout {
    size_t stride; /* as layout_stride() */
    size_t absmax, scale, offset, bytes;
};
static inline struct layout layout_of(enum dtype dtype, size_t rows, size_t cols)
{
    size_t absmax = dtype_part_bytes(dtype, PART_ABSMAX, rows, cols);
    size_t scale = dtype_part_bytes(dtype, PART_SCALE, rows, cols);
    size_t offset = dtype_part_bytes(dtype, PART_OFFSET, rows, cols), values;
    struct layout layout;
    layout.stride = layout_stride(dtype, cols);
    values = rows * layout.stride * layout_value(dtype);
    layout.absmax = layout_up(values, 256);
    layout.scale = layout_up(layout.absmax + absmax, 256);
    layout.offset = layout_up(layout.scale + scale, 256);
    layout.bytes = offset ? layout.offset + offset : scale ? layout.scale + scale : values;
    return layout;
}
