/* formats.h - the numbers of a format that kernels/cuda needs besides its row in dtype_info[]. Each
 * format has a row here; in a kernel for one format these numbers are constants. A streamed format
 * is one whose weights stream.cuh reads; its arithmetic is in format_NAME.cuh. */
#pragma once

#include <stdint.h>

#include "kernels/dtype.h"
#include "lib/base/host_device.h"

/* Most rows of x that skinny.cu takes in one launch. */
enum { SKINNY_ROWS = 64 };
/* Bytes of the tables of block formats in shared memory (format_blocks.cuh): 256 words for each
 * lane and 256 for all. */
enum { LEVELS_SHARED = 256 * 33 * 4 };

/* The order of 16-byte words of x in shared memory (x_place in tiling.h). */
enum x_order { X_STRAIGHT, X_PAIRS, X_HALVES };

struct format_row {
    uint32_t chunk;      /* values in 64 bytes of a row; 0: only f32_product.cu reads it */
    uint32_t x_bytes;    /* bytes of a value of x: 4 fp32, 2 bf16, 1 codes; 0: kernels/cuda lacks
                          * this format */
    enum x_order order;
    uint32_t tables;     /* bytes of shared memory for tables */
    uint32_t few;        /* most rows of x that go to gemv.cu, if they fit */
    uint32_t resident;   /* most blocks of gemv.cu on an SM (registers are the limit) */
    uint32_t widened;    /* bytes of a widened value for the library; 0: it reads the stored
                          * values */
    uint32_t above;      /* more rows of x than this go to the library (slices.h) */
    uint32_t lane;       /* values of a row in the 16 bytes that a lane of wide.cu reads; 0: wide.cu
                          * does not read this format */
    uint32_t capability; /* required compute capability times 10; 0: any */
};

/*      format       chunk x order      tables         few res. widened above        lane cap. */
#define EXACT_FORMATS(ROW)                                                                      \
    ROW(F32,         0,   4, X_STRAIGHT, 0,             0,  0, 0, 8,               0,  0)       \
    ROW(BF16_F32,    0,   4, X_STRAIGHT, 0,             0,  0, 4, 32,              0,  0)       \
    ROW(F16,         0,   4, X_STRAIGHT, 0,             0,  0, 0, UINT32_MAX,      0,  0)
#define STREAMED_FORMATS(ROW)                                                                   \
    ROW(BF16,        32,  2, X_STRAIGHT, 0,             0,  3, 0, SKINNY_ROWS,     0,  0)       \
    ROW(INT8,        64,  1, X_STRAIGHT, 0,             4,  3, 0, SKINNY_ROWS,     0,  0)       \
    ROW(INT8_VECTOR, 64,  1, X_STRAIGHT, 0,             4,  3, 0, SKINNY_ROWS,     0,  0)       \
    ROW(FP8,         64,  2, X_PAIRS,    0,             0,  3, 2, 2 * SKINNY_ROWS, 16, 89)      \
    ROW(NF4,         128, 2, X_HALVES,   LEVELS_SHARED, 8,  2, 2, 2 * SKINNY_ROWS, 32, 0)       \
    ROW(NF4_F32,     128, 2, X_HALVES,   LEVELS_SHARED, 8,  2, 2, 2 * SKINNY_ROWS, 32, 0)       \
    ROW(FP4,         128, 2, X_HALVES,   LEVELS_SHARED, 8,  2, 2, 2 * SKINNY_ROWS, 32, 0)
#define HOST_FORMATS(ROW) /* formats of CPUs only: cuda_refuses() rejects them */               \
    ROW(Q4,          0,   0, X_STRAIGHT, 0,             0,  0, 0, 0,               0,  0)
/* Column few. INT8 has 4, because every block of gemv.cu codes all rows of x; from five rows on it
 * is estimated to be faster to code the rows once in one kernel and to multiply in two more. BF16
 * and FP8 have 0, because skinny.cu is faster from one row on, and few.cu does its work for up to
 * eight rows. 128 tokens of LLaMA 3 8B in bf16 take 597 ms on an H200 by skinny.cu (commit
 * 6bf35445), and 615 ms by gemv.cu; with 8 prompts 638 and 711 ms. In NF4 they take 351 ms by
 * skinny.cu, and 336 ms by gemv.cu. few.cu was not measured. */
/* Column res.: with three blocks on an SM, block formats would spill registers to memory. Column
 * above: F16 never goes to the library, because F16 and f32_product.cu serve to compare with the
 * CPU. */

#ifdef __cplusplus
#define FORMAT_FUNCTION HOST_DEVICE constexpr
#else
#define FORMAT_FUNCTION HOST_DEVICE
#endif

FORMAT_FUNCTION struct format_row format_row(enum dtype dtype)
{
    struct format_row row = {0, 0, X_STRAIGHT, 0, 0, 0, 0, 0, 0, 0};
#define FORMAT_ROW(id, ...)                                                                        \
    case DTYPE_##id: {                                                                             \
        const struct format_row own = {__VA_ARGS__};                                               \
        row = own;                                                                                 \
    } break;
    switch (dtype) {
        EXACT_FORMATS(FORMAT_ROW)
        STREAMED_FORMATS(FORMAT_ROW)
        HOST_FORMATS(FORMAT_ROW)
    case DTYPES: break;
    }
#undef FORMAT_ROW
    return row;
}

/* 1 if x is coded (int8) for products with weights of this format. */
FORMAT_FUNCTION int x_coded(enum dtype dtype)
{
    return format_row(dtype).x_bytes == 1;
}
