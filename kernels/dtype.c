/* dtype.c - the table of formats, and the sizes and shapes that follow from a row of the table.
 * Checkpoints, devices and the cost model take the bytes of a matrix from these functions, so their
 * sizes cannot disagree. Invariants: a format has codes exactly when it is quantized; the arrays of
 * a format are in the order of enum codes_part. */
#include "kernels/dtype.h"

#include <string.h>

#define INT8_ROW                                                                                \
    .unit = UNIT_INT8, .bits = 8, .quantized = 1, .cols_most = INT8_COLS_MAX,                   \
    .limit = "int8 needs 131072 columns or fewer",                                              \
    .part = {[PART_CODE] = {PER_VALUE, "I8", ""}, [PART_SCALE] = {PER_ROW, "F32", ".scale"}}
/* No block spans two rows of a matrix. */
#define BLOCK_ROW                                                                               \
    .bits = 4, .quantized = 1, .head = DTYPE_INT8,                           \
    .cols_multiple = QUANT_BLOCK, .block = QUANT_BLOCK,                                         \
    .limit = "4-bit formats need a number of columns that is a multiple of 64"
#define BLOCK_PARTS                                                                             \
    {[PART_CODE] = {PER_VALUE, "U8", ""}, [PART_SCALE] = {PER_BLOCK, "F32", ".absmax"}}

const struct dtype_info dtype_info[DTYPES] = {
    [DTYPE_F32] = {.name = "f32", .unit = UNIT_F32, .bits = 32, .cache = 1},
    [DTYPE_BF16] = {.name = "bf16", .unit = UNIT_BF16, .bits = 16, .cache = 1},
    [DTYPE_BF16_F32] = {.name = "bf16-f32", .unit = UNIT_F32, .bits = 16},
    [DTYPE_F16] = {.name = "f16", .unit = UNIT_F32, .bits = 16},
    [DTYPE_INT8] = {.name = "int8", INT8_ROW, .head = DTYPE_INT8},
    [DTYPE_INT8_VECTOR] = {.name = "int8-vector", INT8_ROW, .head = DTYPE_INT8_VECTOR},
    [DTYPE_NF4] = {.name = "nf4", .unit = UNIT_BF16, BLOCK_ROW, .super = QUANT_SUPER,
                   .part = {[PART_CODE] = {PER_VALUE, "U8", ""},
                            [PART_ABSMAX] = {PER_BLOCK, "U8", ".absmax"},
                            [PART_SCALE] = {PER_SUPER, "F32", ".absmax.scale"},
                            [PART_OFFSET] = {PER_MATRIX, "F32", ".absmax.offset"}}},
    [DTYPE_NF4_F32] = {.name = "nf4-f32", .unit = UNIT_BF16, BLOCK_ROW, .part = BLOCK_PARTS},
    [DTYPE_FP4] = {.name = "fp4", .unit = UNIT_BF16, BLOCK_ROW, .part = BLOCK_PARTS},
    [DTYPE_Q4] = {.name = "q4", .unit = UNIT_INT4, BLOCK_ROW, .part = BLOCK_PARTS},
    [DTYPE_FP8] = {.name = "fp8", .unit = UNIT_BF16, .bits = 8, .quantized = 1, .head = DTYPE_FP8,
                   .part = {[PART_CODE] = {PER_VALUE, "F8_E4M3", ""},
                            [PART_SCALE] = {PER_ROW, "F32", ".scale"}}},
};

const char *dtype_unit_name(enum unit unit)
{
    static const char *const names[UNITS] = {"f32", "bf16", "int8", "int4"};
    return names[unit];
}

enum dtype dtype_named(const char *name)
{
    int d = 0;
    while (d < DTYPES && strcmp(name, dtype_info[d].name))
        d++;
    return (enum dtype)d;
}

const char *dtype_refuses(enum dtype dtype, size_t cols)
{
    const struct dtype_info *i = &dtype_info[dtype];
    int fits = (!i->cols_multiple || cols % i->cols_multiple == 0) &&
               (!i->cols_most || cols <= i->cols_most);
    return fits ? NULL : i->limit;
}

size_t dtype_scales(enum dtype dtype, size_t rows, size_t cols)
{
    const struct dtype_info *i = &dtype_info[dtype];
    return !i->quantized ? 0 : i->block ? rows * (cols / i->block) : rows;
}

size_t dtype_part_shape(enum dtype dtype, enum codes_part part, size_t rows, size_t cols,
                        size_t shape[2])
{
    const struct dtype_info *i = &dtype_info[dtype];
    size_t scales = dtype_scales(dtype, rows, cols);
    shape[0] = rows;
    shape[1] = 1;
    switch (i->part[part].per) {
    case PER_VALUE: shape[1] = cols * i->bits / 8; return 2;
    case PER_ROW: return 1;
    case PER_BLOCK: shape[1] = cols / i->block; return 2;
    case PER_SUPER: shape[0] = (scales + i->super - 1) / i->super; return 1;
    case PER_MATRIX: shape[0] = 1; return 1;
    case PER_NONE: break;
    }
    return 0;
}

/* Returns the bytes of one element of an array: 4 for F32, 1 for all other stored types. */
static size_t element_bytes(const struct dtype_part *part)
{
    return strcmp(part->stored, "F32") ? 1 : sizeof(float);
}

size_t dtype_part_bytes(enum dtype dtype, enum codes_part part, size_t rows, size_t cols)
{
    size_t shape[2], rank = dtype_part_shape(dtype, part, rows, cols, shape);
    return rank ? shape[0] * shape[1] * element_bytes(&dtype_info[dtype].part[part]) : 0;
}

double dtype_bytes(enum dtype dtype, size_t rows, size_t cols)
{
    const struct dtype_info *i = &dtype_info[dtype];
    double n = (double)rows * (double)cols, bytes = n * (double)i->bits / 8;
    for (int p = 0; p < PARTS; p++) {
        const struct dtype_part *part = &i->part[p];
        if (part->per == PER_ROW)
            bytes += (double)rows * (double)element_bytes(part);
        if (part->per == PER_BLOCK)
            bytes += n / (double)i->block * (double)element_bytes(part);
    }
    return bytes;
}
