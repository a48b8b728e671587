/* cpu_format.h - the interface of a number format on the CPU: how weights and activations lie in
 * memory, and the function (tile) that multiplies them.
 *
 * A weight matrix W[N, K] is cut in panels of PANEL outputs; a panel is one block of bytes that a
 * tile reads as one stream. Activations x[T, K] are packed in blocks of at most TILE_ROWS
 * rows. (A format may have blocks of ROWS_MOST rows, to decode a panel once for several tiles.) The
 * tile multiplies one block by one panel:
 *
 *                 K                        PANEL = 2 registers
 *          block ┌───────┐          panel ┌──────┐
 *      TILE_ROWS │ ..... │ x            K │      │  =  out [rows, PANEL], kept in registers
 *                └───────┘                └──────┘
 *
 * K is any number >= 1; formats pad it. Every output has one accumulator (or a fixed set), and the
 * order of its sum depends only on K, never on the rows beside it. */
#pragma once

#include "kernels/cpu/level.h"
#include "kernels/ops.h"

/* Weights of later tiles, which a tile prefetches while it works, evenly spread over its steps. A
 * prefetch is a hint, so any address is allowed. */
struct ahead {
    const char *at;
    size_t bytes;
};

enum { ROWS_MOST = 48 };

struct format {
    size_t (*panel_bytes)(size_t K); /* multiple of 64 */
    size_t (*block_bytes)(size_t K); /* bytes of a packed block of TILE_ROWS rows, or of rows_most
                                      * rows if that is less; multiple of 64 */
    /* Packs outputs first .. first + count - 1 of the matrix (count <= PANEL); the rest of the
     * panel is zeros. scratch: PANEL * K floats. scratch, panels and blocks are 64-byte aligned. */
    void (*pack_panel)(void *panel, const struct mat_source *source, size_t first, size_t count,
                       float *scratch);
    /* Packs 1..rows_most rows of x, ldx floats apart. `tile` must get the same `rows`. */
    void (*pack_rows)(void *block, const float *x, size_t ldx, size_t rows, size_t K);
    /* out[rows, PANEL] (64-byte aligned) = the products of a block. */
    void (*tile)(float *out, const void *block, size_t rows, const void *panel, size_t K,
                 struct ahead next);
    /* out[K] = the values of output j of a panel, for embeddings. */
    void (*row)(float *out, const void *panel, size_t j, size_t K);
    size_t distance; /* best prefetch distance in bytes beyond the data of the current panel, with
                      * one block */
    size_t rows_most; /* most rows of a block: TILE_ROWS, fewer (q4), or ROWS_MOST */
};

extern const struct format CPU(format_f32), CPU(format_bf16), CPU(format_bf16_f32);
extern const struct format CPU(format_int8), CPU(format_int8_vector), CPU(format_f16);
/* Formats of blocks: 16 levels with absmax as codes (NF4), 16 levels with absmax in fp32 (NF4_F32,
 * FP4), and integers (Q4). */
extern const struct format CPU(format_blocks_coded), CPU(format_blocks), CPU(format_q4);

/* The index of word k of the first row in a block [K/LINE][rows][LINE] of 32-bit words; each
 * further row is LINE words behind. The lines of all rows lie side by side, so packing writes whole
 * cache lines and a tile reads one stream. */
INLINE size_t line_at(size_t k, size_t rows) { return k / LINE * LINE * rows + k % LINE; }

/* Calls KERNEL(n) with the constant n equal to `rows` (1..TILE_ROWS), so that sums stay in
 * registers. */
#define ROWS_CASE(n, KERNEL)                                                                       \
    case n:                                                                                        \
        if (n <= TILE_ROWS)                                                                        \
            KERNEL(n);                                                                             \
        break;
#define WITH_ROWS(rows, KERNEL)                                                                    \
    switch (rows) {                                                                                \
        ROWS_CASE(1, KERNEL)                                                                       \
        ROWS_CASE(2, KERNEL)                                                                       \
        ROWS_CASE(3, KERNEL)                                                                       \
        ROWS_CASE(4, KERNEL)                                                                       \
        ROWS_CASE(5, KERNEL)                                                                       \
        ROWS_CASE(6, KERNEL)                                                                       \
        ROWS_CASE(7, KERNEL)                                                                       \
        ROWS_CASE(8, KERNEL)                                                                       \
        ROWS_CASE(9, KERNEL)                                                                       \
        ROWS_CASE(10, KERNEL)                                                                      \
        ROWS_CASE(11, KERNEL)                                                                      \
        ROWS_CASE(12, KERNEL)                                                                      \
    }

/* ---- int8 and q4 ----
 *
 * One instruction of a level takes INT8_ROWS rows. Where it takes two, a register holds the sums of
 * two rows and of half as many outputs: sum[i] and sum[i + 1] of an even row i are its low and its
 * high outputs, for both rows. A panel then has INT8_ROWS registers of codes for LANES outputs. */

/* Rows that a tile multiplies: the last pair may lack a row. A block has room for it. */
INLINE int held(int rows) { return (int)up((size_t)rows, INT8_ROWS); }

/* Changes the sums of single rows into those of pairs, or back. */
INLINE void pair_sums(const int rows, veci sum[][2])
{
    for (int i = 0; INT8_ROWS == 2 && i < rows; i += 2)
        for (int half = 0; half < 2; half++) {
            vecw even = (vecw)sum[i][half], odd = (vecw)sum[i + 1][half];
            sum[i][half] = (veci)(vecw){even[0], odd[0]};
            sum[i + 1][half] = (veci)(vecw){even[1], odd[1]};
        }
}

/* ---- functions of formats that products on AMX tiles use too (amx_tiles.h) ---- */

/* Packs x rounded to bf16 as a block of pairs of format_bf16, [K/2/LINE][rows][LINE], for any
 * number of rows. */
void CPU(pack_pairs)(void *block, const float *x, size_t ldx, size_t rows, size_t K);

/* INT8, for a row of activations. int8_scale() returns the scale without outliers; *outliers is set
 * to 1 if there is an outlier, else not changed. int8_codes() writes the codes of n values. limit:
 * quant_outlier(). */
float CPU(int8_scale)(const float *x, size_t K, float limit, int *outliers);
void CPU(int8_codes)(int8_t *code, const float *x, size_t n, float scale, float limit);
/* int8_outliers() lists the columns in which one of up to 32 rows has an outlier, ascending, and
 * returns their number. list has room for K columns. */
struct outlier {
    uint32_t k, rows; /* bit i: row i has an outlier in column k */
};
size_t CPU(int8_outliers)(struct outlier *list, const float *x, size_t ldx, size_t rows, size_t K,
                          float limit);
/* out[rows, PANEL] += x_k w'_k for the outliers of a list, k ascending. */
void CPU(int8_add)(float *out, const struct outlier *list, size_t n, const float *x, size_t ldx,
                   const void *panel);

/* Blocks of 16 levels. blocks_widen() writes the levels, rounded to bf16, of values k .. k + n - 1
 * of a panel as pairs of format_bf16, [n/2][PANEL]; k and n are multiples of 8. blocks_absmax():
 * out[n, PANEL] = absmax of blocks first .. first + n - 1. */
void CPU(blocks_widen)(uint32_t *pairs, const void *panel, size_t k, size_t n, size_t K);
void CPU(blocks_absmax)(float *out, const void *panel, size_t first, size_t n, size_t K);

/* The format of a dtype; NULL: the CPU back end has none. */
const struct format *CPU(format_of)(enum dtype dtype);
