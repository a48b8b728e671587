/* dtype.h - the formats in which values are kept, and one table of all that is known of each
 * besides its arithmetic: dtype_info[]. Whoever wants to know something about a format reads its
 * row; nothing compares members of enum dtype by their order.
 *
 * What the codes of a quantized format mean is defined in kernels/quant.h. A further one is a row
 * here, its definition (kernels/quant-NAME.c), and a file with its kernels in each back end that
 * has it: kernels/ref/ref_mat.c, kernels/cpu/format/format_NAME.c,
 * kernels/cuda/weights/format_NAME.cuh. Formats that differ in a table or in how scales are kept
 * share these files: those of blocks of 16 levels do.
 */
#ifndef KERNELS_DTYPE_H
#define KERNELS_DTYPE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    DTYPES
};

/* The numbers that a product multiplies. F32: floats; BF16: x rounded to bf16; INT8: codes of x by
 * codes of W. */
enum unit { UNIT_F32, UNIT_BF16, UNIT_INT8, UNITS };
const char *dtype_unit_name(enum unit u); /* "f32", "bf16", "int8" */

/* The arrays of a quantized matrix: the members of struct codes (kernels/quant.h). */
enum codes_part { PART_CODE, PART_ABSMAX, PART_SCALE, PART_OFFSET, PARTS };

/* Of formats of 4 bits: values in a block; of NF4, blocks whose absmax are quantized together. Of
 * INT8: 127 * 128 times so many columns still fit an int32 sum. */
enum { QUANT_BLOCK = 64, QUANT_SUPER = 256, INT8_COLS_MAX = 131072 };

/* What has an element of an array: of PER_VALUE its elements are `bits` of dtype_info. */
enum part_per { PER_NONE, PER_VALUE, PER_ROW, PER_BLOCK, PER_SUPER, PER_MATRIX };

struct dtype_part {
    enum part_per per;  /* PER_NONE: the format has no such array */
    const char *stored; /* its dtype in a packed checkpoint, as safetensors spells it */
    const char *tail;   /* of its tensor's name there, after that of the matrix */
};

struct dtype_info {
    const char *name;     /* in options and records */
    enum unit unit;       /* of its products */
    size_t bits;          /* of a value, or of its code */
    int cache;            /* 1: caches and activations may have it */
    int quantized;        /* 1: codes with scales, 0: the values themselves */
    /* Of a quantized format: */
    enum dtype head;      /* what keeps head and tied embedding of a model whose blocks have it */
    size_t cols_multiple; /* a matrix has a multiple of so many columns, 0: any number, */
    size_t cols_most;     /* and no more than so many, 0: any number; */
    const char *limit;    /* in words */
    size_t block;         /* values that share a scale; 0: a row */
    size_t super;         /* scales that are quantized together in their turn; 0: they are not */
    struct dtype_part part[PARTS];
};
extern const struct dtype_info dtype_info[DTYPES];

/* The names of the quantized formats, as choices of an option; tests/kernels/test-dtype.c compares
 * them with the table. */
#define DTYPE_QUANTIZED "int8|nf4|fp8|int8-vector|nf4-f32|fp4"

/* The format of that name, or DTYPES: there is none. */
enum dtype dtype_named(const char *name);
/* Why a matrix with so many columns cannot be kept as d, or NULL: it can. */
const char *dtype_refuses(enum dtype d, size_t cols);

/* Scales of a matrix before they are quantized in their turn: one a row, or one a block. */
size_t dtype_scales(enum dtype d, size_t rows, size_t cols);
/* The shape of a part of a matrix [rows, cols] in elements, of codes in bytes. Returns its rank; 0:
 * the format has no such part. */
size_t dtype_part_shape(enum dtype d, enum codes_part p, size_t rows, size_t cols, size_t shape[2]);
/* Bytes of a part; 0: there is none. */
size_t dtype_part_bytes(enum dtype d, enum codes_part p, size_t rows, size_t cols);

/* Bytes that a product reads of a matrix at least: values or codes, and a scale of each row or
 * block. (The scales of scales, less than a thousandth of that, are left out.) */
double dtype_bytes(enum dtype d, size_t rows, size_t cols);

/* Bytes of a value of caches and activations: F32 or BF16. */
static inline size_t dtype_value_bytes(enum dtype d)
{
    return d == DTYPE_F32 ? 4 : 2;
}

#ifdef __cplusplus
}
#endif

#endif
