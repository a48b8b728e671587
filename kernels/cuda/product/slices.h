/* slices.h - cuts products of many rows of x with weights that the library cannot read (FP8,
 * blocks, BF16_F32). This file has only index arithmetic and choices, so that host tests reach all
 * of it.
 *
 *     for each slice of W:       widened once, into work
 *         for each run of rows:  the library's sums into work, then finished
 *
 * A widened value is bf16 (BF16_F32: a float). For FP8 it is the value of the code, which bf16
 * holds exactly; the scale is applied to the sum. For blocks it is w' of kernels/quant.h, rounded
 * to bf16. */
#pragma once

#include <stddef.h>

#include "kernels/cuda/weights/tiling.h"

/* A slice of W is one product of the library. It is so large that its tiles of outputs keep every
 * multiprocessor at work. Smaller slices would stay in the L2 cache, which saves a third of the
 * traffic, but with 256 rows a slice of 40 MB has only 22 tiles for 132 multiprocessors. Slices
 * along K would not have more tiles. test-slices.c tests the tiles of 8B models. The sums of a run
 * take at most SUMS_MOST bytes (tiling.h), its normalized rows at most NORMED_MOST bytes. */
enum { SLICE_BYTES = 128 << 20, NORMED_MOST = 64 << 20 };
/* RUN_ROWS: number of rows for which slices are sized; more would make slices narrow. RUN_LIMIT:
 * most rows of a run, because of the limit of a grid. PIECE_GRAIN: pieces that are large enough are
 * whole tiles of the library's kernels. */
enum { RUN_ROWS = 8192, RUN_LIMIT = 32768, PIECE_GRAIN = 128 };

/* A block of the library's kernels is assumed to compute a tile of LIBRARY_TILE x LIBRARY_TILE
 * outputs. If a product has too few tiles, up to LIBRARY_PARTS parts of K are tried too
 * (gemm.cu). */
enum { LIBRARY_TILE = 128, LIBRARY_PARTS = 4 };

/* 1 if such weights are widened for the library. */
HOST_DEVICE int widens(enum dtype dtype)
{
    return format_row(dtype).widened != 0;
}

/* widen.cu: to[rows, K] = the widened values of the rows of *operand. K is a multiple of 8. */
void widen(const struct backend *backend, void *to, const struct product_job *j,
           const struct operand *operand);

/* Bytes of a widened value, and of a value of x that it is multiplied with. */
HOST_DEVICE uint32_t widened_value(enum dtype dtype)
{
    return format_row(dtype).widened;
}

/* More rows of x than this go to the library, unless wide.cu takes them. Estimated for an H200
 * (4.3 TB/s of memory, 5 TB/s from the L2 cache, 29 TB/s shared memory in all, 700 TFLOP/s of
 * bf16 by the library), in ps per value of W:
 *     skinny.cu     for each 64 rows: 64 rows of x meet 16 of W in shared memory, 8 bytes a value,
 *                   and NF4 looks up 2 more: 0.28 to 0.34, which hides its 0.5 or 1 byte of memory
 *     the library   once: 0.5 or 1 byte read, 2 written and 2 read again, 0.9 to 1.0; T rows are
 *                   0.003 T, which hides the second reading from T = 130 on
 * So two launches of skinny.cu (128 rows) are cheaper than the library: 0.6 and 0.7 compared with
 * 0.9. Four launches are not: 1.1 and 1.4 compared with 1.2. Three are equal, and the library's
 * cost for each row falls with more rows. With BF16_F32 f32_product.cu reads W again for every four
 * rows. F32 needs no widening. */
HOST_DEVICE uint32_t library_above(enum dtype dtype)
{
    return format_row(dtype).above;
}

/* The size of the pieces into which n items are cut: at most `most`, all of about one size, so that
 * no piece is small, and whole grains. */
HOST_DEVICE uint32_t piece_of(uint32_t n, uint32_t most, uint32_t grain)
{
    if (n <= most)
        return n;
    return plan_least(plan_up(plan_up(n, plan_up(n, most)), grain) * grain, most);
}

/* Rows of a matrix that must stay together: whole heads of q and k. */
HOST_DEVICE uint32_t slice_unit(const struct product_job *j)
{
    return j->kind == JOB_QKV ? j->head_dim : (uint32_t)TILE_ROWS;
}

/* The number of matrices that share a slice. */
HOST_DEVICE uint32_t slice_matrices(const struct product_job *j)
{
    return j->kind == JOB_GATED ? 2 : 1;
}

/* 1 if at least one unit of W fits in a slice. */
HOST_DEVICE int slices_fit(const struct product_job *j)
{
    size_t row = (size_t)j->K * widened_value(j->dtype);
    return slice_matrices(j) * slice_unit(j) * row <= SLICE_BYTES;
}

/* The number of rows of matrix i in a slice; for JOB_GATED of each of both matrices. */
HOST_DEVICE uint32_t slice_rows(const struct product_job *j, uint32_t i)
{
    size_t copies = SLICE_BYTES / ((size_t)j->K * widened_value(j->dtype));
    size_t sums = SUMS_MOST / 4 / plan_least(j->T, RUN_ROWS);
    uint32_t unit = slice_unit(j), grain = plan_up(PIECE_GRAIN, unit) * unit;
    uint32_t most = (uint32_t)((copies < sums ? copies : sums) / slice_matrices(j));
    grain = most < grain ? unit : grain;
    most = most < unit ? unit : most / grain * grain;
    return piece_of(j->w[i].rows, most, grain);
}

/* 1 if all matrices of a job are one slice, and its rows one run. */
HOST_DEVICE int slice_whole(const struct product_job *j)
{
    size_t row = (size_t)j->K * widened_value(j->dtype), rows = plan_least(j->T, RUN_ROWS);
    return j->columns * row <= SLICE_BYTES && rows * j->columns * 4 <= SUMS_MOST;
}

/* The number of rows of x in a run: their sums with the slice fit into SUMS_MOST. */
HOST_DEVICE uint32_t run_rows(const struct product_job *slice)
{
    size_t room = SUMS_MOST / 4 / slice->columns;
    uint32_t most = room < RUN_LIMIT ? (uint32_t)room : (uint32_t)RUN_LIMIT;
    if (slice->T > most && most > PIECE_GRAIN)
        most = most / PIECE_GRAIN * PIECE_GRAIN;
    return piece_of(slice->T, most, PIECE_GRAIN);
}

/* Bytes of work for a slice of N rows of W, in all matrices, and the sums of T rows of x. */
HOST_DEVICE size_t slice_work(enum dtype dtype, size_t T, size_t K, size_t N)
{
    size_t widened = N * K * widened_value(dtype), sums = T * N * 4;
    return layout_up(widened < SLICE_BYTES ? widened : (size_t)SLICE_BYTES, 256) +
           (sums < SUMS_MOST ? sums : SUMS_MOST);
}

/* ---- weights that the library reads as they are ---- */

/* Bytes from matrix i to the next one. */
HOST_DEVICE ptrdiff_t step_to_next(const struct product_job *j, uint32_t i)
{
    const struct operand *operand = &j->w[i], *next = &j->w[i + 1];
    return next->code - operand->code +
           ((ptrdiff_t)next->begin - operand->begin) * (ptrdiff_t)j->stride;
}

/* 1 if gate and up, or q, k and v, have equal sizes and equal distances in memory: they are one
 * call of the library, as a batch. */
HOST_DEVICE int is_batch(const struct product_job *j)
{
    int is = j->kind == JOB_GATED || j->kind == JOB_QKV;
    for (uint32_t i = 0; i + 1 < j->n; i++)
        is &= j->w[i].rows == j->w[i + 1].rows && step_to_next(j, i) == step_to_next(j, 0);
    return is;
}

/* ---- blocks: eight values at a time ---- */

enum { BLOCKS_UNIT = 8 };

/* The place in a matrix of unit u of the values from `first` on (a multiple of a block): the index
 * of its first byte of codes, of its block, and of the scale of the block's absmax. */
struct blocks_place {
    size_t code, block, super;
};
HOST_DEVICE struct blocks_place blocks_place(size_t first, size_t u)
{
    size_t value = first + u * BLOCKS_UNIT;
    struct blocks_place place = {value / 2, value / QUANT_BLOCK, value / QUANT_BLOCK / QUANT_SUPER};
    return place;
}

/* The code of value i of a unit. word: the four bytes of codes of the unit; the first code of a
 * byte is in the high half. */
HOST_DEVICE uint32_t blocks_code(uint32_t word, uint32_t i)
{
    return word >> (i / 2 * 8 + (i % 2 ? 0 : 4)) & 15;
}
