/* dtype.h - the number formats, and one table with all facts about each except its arithmetic:
 * dtype_info[]. Code that needs a fact about a format reads its row; no code compares members of
 * enum dtype by order.
 *
 * kernels/quant.h defines the codes of a quantized format. To add a format: a row here, its
 * definition (kernels/quant-NAME.c), and a file with its kernels in each back end that has it:
 * kernels/ref/ref_mat.c, kernels/cpu/format/format_NAME.c, kernels/cuda/weights/format_NAME.cuh.
 * Formats that differ only in a table or in the storage of scales share these files, for example
 * NF4, NF4_F32 and FP4. */
#pragma once

#include <stddef.h>

#include "lib/base/linkage.h"

C_BEGIN

enum dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_BF16_F32,
    DTYPE_INT8,
    DTYPE_NF4,
    DTYPE_FP8,
    DTYPE_INT8_VECTOR,
    DTYPE_NF4_F32,
    DTYPE_FP4,
    DTYPE_F16,
    DTYPE_Q4,
    DTYPES
};

/* The numbers that a product multiplies. UNIT_F32: floats. UNIT_BF16: x rounded to bf16.
 * UNIT_INT8: codes of x and codes of W. UNIT_INT4: codes of x and 4-bit codes of W, so that 16 bits
 * hold the sum of half a block. Where 16-bit sums are not faster, the rate of UNIT_INT8
 * holds. */
enum unit { UNIT_F32, UNIT_BF16, UNIT_INT8, UNIT_INT4, UNITS };
const char *dtype_unit_name(enum unit unit); /* "f32", "bf16", "int8", "int4" */
/* The unit to use if `unit` has no rate. */
static inline enum unit dtype_unit_instead(enum unit unit)
{
    return unit == UNIT_INT4 ? UNIT_INT8 : UNIT_F32;
}

/* The arrays of a quantized matrix: the members of struct codes (kernels/quant.h). */
enum codes_part { PART_CODE, PART_ABSMAX, PART_SCALE, PART_OFFSET, PARTS };

/* QUANT_BLOCK: values in a block of the 4-bit formats. QUANT_SUPER: number of absmax values of NF4
 * that are quantized together (absmax: the largest |w| of a block). INT8_COLS_MAX: limit of
 * columns, so that a sum of products of codes fits an int32. */
enum { QUANT_BLOCK = 64, QUANT_SUPER = 256, INT8_COLS_MAX = 131072 };

/* The unit to which one element of an array belongs. PER_VALUE: elements have dtype_info.bits
 * bits. */
enum part_per { PER_NONE, PER_VALUE, PER_ROW, PER_BLOCK, PER_SUPER, PER_MATRIX };

struct dtype_part {
    enum part_per per;  /* PER_NONE: the format has no such array */
    const char *stored; /* dtype of the array in a packed checkpoint, in the spelling of
                         * safetensors */
    const char *tail;   /* suffix of the tensor's name in the checkpoint */
};

struct dtype_info {
    const char *name;     /* in options and records */
    enum unit unit;       /* unit of the products with such a matrix */
    size_t bits;          /* bits of a value or of its code */
    int cache;            /* 1: caches and activations may have this format */
    int quantized;        /* 1: codes with scales; 0: plain values */
    /* For quantized formats only: */
    enum dtype head;      /* format of the output layer (and of an embedding tied to it) in a model
                           * whose blocks have this format */
    size_t cols_multiple; /* columns must be a multiple of this; 0: any number */
    size_t cols_most;     /* limit of columns; 0: none */
    const char *limit;    /* cols_multiple and cols_most in words, for messages */
    size_t block;         /* values that share a scale; 0: a whole row */
    size_t super;         /* scales that are quantized together; 0: scales are not quantized */
    struct dtype_part part[PARTS];
};
extern const struct dtype_info dtype_info[DTYPES];

/* The names of the quantized formats, as choices of an option. tests/kernels/test-dtype.c compares
 * them with the table. */
#define DTYPE_QUANTIZED "int8|nf4|fp8|int8-vector|nf4-f32|fp4|q4"

/* The format with that name; DTYPES: there is none. */
enum dtype dtype_named(const char *name);
/* The reason why a matrix with `cols` columns cannot be stored in this format; NULL: it can. */
const char *dtype_refuses(enum dtype dtype, size_t cols);

/* The number of scales of a matrix before they are quantized: one a row, or one a block. */
size_t dtype_scales(enum dtype dtype, size_t rows, size_t cols);
/* shape[] = the shape of an array of a matrix [rows, cols], in elements; for PART_CODE in bytes.
 * Returns the rank, or 0 if the format has no such array. */
size_t dtype_part_shape(enum dtype dtype, enum codes_part part, size_t rows, size_t cols,
                        size_t shape[2]);
/* Bytes of an array; 0: the format has none. */
size_t dtype_part_bytes(enum dtype dtype, enum codes_part part, size_t rows, size_t cols);

/* The least number of bytes that a product reads of a matrix: values or codes, and the scale of
 * each row or block. Scales of scales are left out; they are less than a thousandth. */
double dtype_bytes(enum dtype dtype, size_t rows, size_t cols);

/* Bytes of one value of a cache or of activations: F32 or BF16. */
static inline size_t dtype_value_bytes(enum dtype dtype)
{
    return dtype == DTYPE_F32 ? 4 : 2;
}

C_END
