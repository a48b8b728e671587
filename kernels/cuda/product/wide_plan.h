/* wide_plan.h - how wide.cu cuts a product of some hundred rows. This file has only index
 * arithmetic and choices, so that host tests reach all of it.
 *
 * In a tile each block of a cluster multiplies 128 rows of weights by `tokens` rows of x; each
 * block copies its part of x to the shared memory of all blocks of the cluster. The K of a tile is
 * cut into units. All units of all tiles lie in one line, tile after tile, and each cluster takes
 * an equal piece of it. So every multiprocessor has the same work, whatever the shape (Osama et al.
 * 2023, "Stream-K", arXiv 2301.03598). A cluster leaves the sums of its part of a tile in memory;
 * finish.cu adds the parts in order of K. */
#pragma once

#include "kernels/cuda/weights/tiling.h"

/* WIDE_ROWS: rows of weights of a block in a tile. WIDE_STAGE, WIDE_UNIT: values of K in a stage
 * and in a unit. WIDE_RING: stages in shared memory. */
enum { WIDE_ROWS = 128, WIDE_STAGE = 64, WIDE_UNIT = 256, WIDE_RING = 5 };
enum { WIDE_WARPS = 8, WIDE_THREADS = 384 }; /* warps that multiply; all threads of a block */
/* Limits of the rows of x in a call. With fewer rows skinny.cu is faster. With more rows it is
 * faster to widen all weights in memory: on an H200 an 8B model in FP8 takes 18.0 ms for 356 rows
 * with wide.cu and 17.3 ms with the library; for 256 rows it takes 11.9 ms and 14.1 ms. */
enum { WIDE_LEAST = SKINNY_ROWS + 1, WIDE_MOST = 256 };

struct wide_plan {
    uint32_t tokens;  /* rows of x in a tile: 128, 192 or 256 */
    uint32_t units;   /* units of K in a tile; the last unit may reach beyond K */
    uint32_t all;     /* units of all tiles */
    uint32_t clusters; /* number of clusters, which share the units */
    uint32_t cluster;  /* blocks of a cluster: 1 or 2 */
};

/* 1 if the kernel takes T rows of x by weights of this format and K. */
HOST_DEVICE int wide_takes(enum dtype dtype, size_t T, size_t K)
{
    return format_row(dtype).lane && K % 128 == 0 && T >= WIDE_LEAST && T <= WIDE_MOST;
}

/* The plan for T rows of x and `tiles` tiles of 16 rows of weights (tiling.h). */
HOST_DEVICE struct wide_plan wide_plan_of(uint32_t T, uint32_t K, uint32_t tiles, uint32_t sms,
                                          uint32_t cluster)
{
    struct wide_plan plan;
    plan.tokens = T <= 128 ? 128 : T <= 192 ? 192 : WIDE_MOST;
    plan.units = plan_up(K, WIDE_UNIT);
    plan.cluster = cluster;
    plan.all = plan_up(tiles, cluster * WIDE_ROWS / TILE_ROWS) * plan.units;
    plan.clusters = plan_least(plan.all, cluster < sms ? sms / cluster : 1);
    return plan;
}

HOST_DEVICE struct wide_plan wide_plan(const struct product_job *j, uint32_t sms, uint32_t cluster)
{
    return wide_plan_of(j->T, j->K, job_tiles(j), sms, cluster);
}

/* The first unit of cluster c; for c = plan->clusters the number of all units. */
HOST_DEVICE uint32_t wide_first(const struct wide_plan *plan, uint32_t c)
{
    return (uint32_t)((uint64_t)c * plan->all / plan->clusters);
}

/* The cluster that computes a unit. */
HOST_DEVICE uint32_t wide_owner(const struct wide_plan *plan, uint32_t unit)
{
    return (uint32_t)((((uint64_t)unit + 1) * plan->clusters - 1) / plan->all);
}

/* Bytes of the image, the form of x that wide.cu reads: for each 16 values of K, tokens / 8 times 2
 * squares of 8 rows by 8 values, as the matrix units take them. Values beyond T and K are zeros. */
HOST_DEVICE size_t wide_image_bytes(const struct wide_plan *plan)
{
    return (size_t)plan->tokens * plan->units * WIDE_UNIT * 2;
}

/* wide_parts() is the number of parts of the sums of a tile, wide_parts_most() the most of any
 * tile. */
HOST_DEVICE uint32_t wide_parts(const struct wide_plan *plan, uint32_t tile)
{
    return wide_owner(plan, (tile + 1) * plan->units - 1) - wide_owner(plan, tile * plan->units) +
           1;
}

HOST_DEVICE uint32_t wide_parts_most(const struct wide_plan *plan)
{
    return plan_least(plan->units, (plan->units - 1) / (plan->all / plan->clusters) + 2);
}

/* Bytes of work: the image, then sums[part][T][columns]. */
HOST_DEVICE size_t wide_work(const struct wide_plan *plan, size_t T, size_t columns)
{
    return layout_up(wide_image_bytes(plan), 256) +
           wide_parts_most(plan) * T * columns * sizeof(float);
}

/* Bytes of work for up to T rows of any jobs with N outputs in all. A job with fewer outputs may
 * have more parts, so parts times outputs is bounded, by 2 (sms * 128 + N) and by N times the
 * units. cluster 0: wide.cu does not run on this device. */
HOST_DEVICE size_t wide_work_most(enum dtype dtype, size_t T, size_t K, size_t N, uint32_t sms,
                                  uint32_t cluster)
{
    T = T < WIDE_MOST ? T : (size_t)WIDE_MOST;
    if (!cluster || !wide_takes(dtype, T, K))
        return 0;
    const struct wide_plan plan = wide_plan_of((uint32_t)T, (uint32_t)K, 1, sms, cluster);
    const size_t some = 2 * ((size_t)sms * WIDE_ROWS + N), all = plan.units * N;
    return layout_up(wide_image_bytes(&plan), 256) + T * (some < all ? some : all) * sizeof(float);
}
