/* wide.h - many rows of x by weights that are widened in registers (wide.cu). This file has only
 * index arithmetic and choices, and host tests reach all of it.
 *
 * A tile is 128 rows of weights by `tokens` rows of x; its K is cut into units. All units of all
 * tiles lie in one line, tile after tile, and each block takes an equal piece of it. So every
 * multiprocessor has the same work, whatever the shape (Osama et al. 2023, "Stream-K",
 * arXiv 2301.03598). A block leaves the sums of its part of a tile in memory; the block that comes
 * last adds the parts in order of K. */
#pragma once

#include "kernels/cuda/weights/tiling.h"

/* Rows of weights in a tile; values of K in a stage and in a unit; stages in shared memory. */
enum { WIDE_ROWS = 128, WIDE_STAGE = 64, WIDE_UNIT = 256, WIDE_RING = 5, WIDE_THREADS = 256 };
enum { WIDE_TOKENS = 256, WIDE_TOKENS_FEW = 128 }; /* rows of x in a tile */
enum { WIDE_MOST = 2048 }; /* rows of x in a call; more repay widening all weights in memory */

struct wide_plan {
    uint32_t tokens;  /* rows of x in a tile */
    uint32_t runs;    /* tiles along T; tile i has rows of x of run i % runs */
    uint32_t units;   /* of K in a tile; the last one may reach beyond K */
    uint32_t all;     /* of all tiles */
    uint32_t blocks;
};

/* 1 if the kernel reads weights of such a job. */
HOST_DEVICE int wide_takes(enum dtype dtype, uint32_t K)
{
    return format_row(dtype).lane && K % 128 == 0;
}

/* For T rows of x by `tiles` tiles of 16 rows of weights. */
HOST_DEVICE struct wide_plan wide_plan_of(uint32_t T, uint32_t K, uint32_t tiles, uint32_t sms)
{
    struct wide_plan p;
    p.tokens = T <= WIDE_TOKENS_FEW ? WIDE_TOKENS_FEW : WIDE_TOKENS;
    p.runs = plan_up(T, p.tokens);
    p.units = plan_up(K, WIDE_UNIT);
    p.all = plan_up(tiles, WIDE_ROWS / TILE_ROWS) * p.runs * p.units;
    p.blocks = plan_least(p.all, sms);
    return p;
}

HOST_DEVICE struct wide_plan wide_plan(const struct product_job *j, uint32_t sms)
{
    return wide_plan_of(j->T, j->K, job_tiles(j), sms);
}

/* The first unit of block c; of block p.blocks: the number of all units. */
HOST_DEVICE uint32_t wide_first(const struct wide_plan *p, uint32_t c)
{
    return (uint32_t)((uint64_t)c * p->all / p->blocks);
}

/* The block that has a unit. */
HOST_DEVICE uint32_t wide_owner(const struct wide_plan *p, uint32_t unit)
{
    return (uint32_t)((((uint64_t)unit + 1) * p->blocks - 1) / p->all);
}

/* x as wide.cu reads it, the image: for each run and each 16 values of K as the matrix units take
 * them, tokens / 8 times 2 squares of 8 rows by 8 values. Beyond T and K it is zero. */
HOST_DEVICE size_t wide_image_bytes(const struct wide_plan *p)
{
    return (size_t)p->runs * p->tokens * p->units * WIDE_UNIT * 2;
}

/* Each block leaves up to two parts, of its first and of its last tile. */
HOST_DEVICE size_t wide_part_values(const struct wide_plan *p)
{
    return (size_t)WIDE_ROWS * p->tokens;
}

HOST_DEVICE size_t wide_work(const struct wide_plan *p)
{
    return layout_up(wide_image_bytes(p), 256) +
           2 * (size_t)p->blocks * wide_part_values(p) * sizeof(float);
}

/* The most bytes for any job of T rows and N outputs. */
HOST_DEVICE size_t wide_work_most(enum dtype dtype, size_t T, size_t K, size_t N, uint32_t sms)
{
    uint32_t rows = (uint32_t)(T < WIDE_MOST ? T : (size_t)WIDE_MOST);
    uint32_t tiles = (uint32_t)(N / HALF + MATRICES); /* of 8 rows, as in heads of any width */
    const struct wide_plan p = wide_plan_of(rows, (uint32_t)K, tiles, sms);
    return wide_takes(dtype, (uint32_t)K) ? wide_work(&p) : 0;
}
