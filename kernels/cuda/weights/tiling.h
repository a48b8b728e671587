/* tiling.h - describes products as jobs, whose outputs are cut into tiles, and spreads the tiles
 * over a device. This file has only index arithmetic and choices, so that host tests reach all of
 * it.
 *
 * A tile is 16 rows of weights, as the matrix units take them, in two halves of 8 rows. A lane of a
 * kernel holds row i of both halves. So the rows i of both halves are rows that one output needs
 * together: the gate row and the up row of one value, or the rows j and j + E/2 of a head, which
 * RoPE rotates as a pair. In other jobs the second half has the next 8 rows. Tiles are numbered
 * over all matrices of a job. Every row of every matrix is in exactly one tile. */
#pragma once

#include "kernels/cuda/weights/formats.h"
#include "kernels/cuda/weights/layout.h"

enum { HALF = 8, TILE_ROWS = 16, MATRICES = PRODUCTS_MAX };

enum job_kind {
    JOB_ROWS,   /* y = products, or y += products */
    JOB_FLOATS, /* y = products, in fp32, not rounded */
    JOB_GATED,  /* y = silu(gate) * up: matrices gate, up */
    JOB_QKV     /* y = rope(q), cache = rope(k), cache = v: matrices q, k, v */
};

/* Rows begin .. begin + rows - 1 of a matrix in memory (layout.h). */
struct operand {
    const uint8_t *code, *absmax;
    const float *scale, *offset;
    uint32_t begin, rows;
    uint32_t column; /* column of its first row in the sums of the job */
};

/* The products of a call: n matrices, and the place of the outputs of each: y[i] with row stride
 * ldy[i]. */
struct product_job {
    enum dtype dtype;
    enum job_kind kind;
    uint32_t T, K, n;
    uint32_t stride;  /* bytes between the starts of two rows of a matrix */
    uint32_t columns; /* outputs of all matrices together */
    struct operand w[MATRICES];
    uint32_t tile_end[MATRICES]; /* number of tiles up to the end of each section. A section is a
                                  * matrix; in JOB_GATED both matrices are one section */
    void *y[MATRICES];
    uint32_t ldy[MATRICES];
    int add[MATRICES];
    const float *table; /* JOB_QKV: as in struct qkv */
    const int32_t *slot;
    uint32_t head_dim;
    int cache_f32;
};

/* The 16 rows of one tile. */
struct weight_tile {
    uint32_t section;
    uint32_t matrix[2], row[2], count[2]; /* [half] rows row .. row + count - 1 of a matrix, count
                                           * 0..8 */
};

/* n / by, rounded up. */
HOST_DEVICE uint32_t plan_up(uint32_t n, uint32_t by)
{
    return (n + by - 1) / by;
}

HOST_DEVICE uint32_t plan_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The number of rows in the half of a tile that starts at row `at` of `rows`. */
HOST_DEVICE uint32_t tile_count(uint32_t rows, uint32_t at)
{
    return at >= rows ? 0 : plan_least(rows - at, HALF);
}

/* The number of tiles of section i. */
HOST_DEVICE uint32_t section_tiles(const struct product_job *j, uint32_t i)
{
    uint32_t rows = j->w[i].rows;
    if (j->kind == JOB_GATED)
        return i ? 0 : plan_up(rows, HALF);
    if (j->kind == JOB_QKV && i < 2)
        return rows / j->head_dim * plan_up(j->head_dim / 2, HALF);
    return plan_up(rows, TILE_ROWS);
}

/* Computes sections and columns from kind, n, K and the rows. */
HOST_DEVICE void job_settle(struct product_job *j)
{
    uint32_t tiles = 0, columns = 0;
    for (uint32_t i = 0; i < MATRICES; i++) {
        tiles += i < j->n ? section_tiles(j, i) : 0;
        j->tile_end[i] = tiles;
        j->w[i].column = columns;
        columns += i < j->n ? j->w[i].rows : 0;
    }
    j->columns = columns;
}

HOST_DEVICE uint32_t job_tiles(const struct product_job *j)
{
    return j->tile_end[MATRICES - 1];
}

HOST_DEVICE struct weight_tile tile_at(const struct product_job *j, uint32_t i)
{
    struct weight_tile tile;
    tile.section = i < j->tile_end[0] ? 0 : i < j->tile_end[1] ? 1 : 2;
    i -= tile.section ? j->tile_end[tile.section - 1] : 0;
    tile.matrix[0] = tile.matrix[1] = tile.section;
    if (j->kind == JOB_GATED) {
        tile.matrix[1] = 1;
        tile.row[0] = tile.row[1] = i * HALF;
        tile.count[0] = tile.count[1] = tile_count(j->w[0].rows, i * HALF);
    } else if (j->kind == JOB_QKV && tile.section < 2) {
        uint32_t half = j->head_dim / 2, per_head = plan_up(half, HALF);
        uint32_t in_head = i % per_head * HALF;
        tile.row[0] = i / per_head * j->head_dim + in_head;
        tile.row[1] = tile.row[0] + half;
        tile.count[0] = tile.count[1] = tile_count(half, in_head);
    } else {
        tile.row[0] = i * TILE_ROWS;
        tile.row[1] = tile.row[0] + HALF;
        tile.count[0] = tile_count(j->w[tile.section].rows, tile.row[0]);
        tile.count[1] = tile_count(j->w[tile.section].rows, tile.row[1]);
    }
    return tile;
}

/* ---- rows of weights, cut along K ----
 *
 * Four lanes together read 64 bytes of a row at a time (a chunk), and have four chunks (a group) in
 * flight. */

enum { CHUNK = 64, RING = 4, GROUP = CHUNK * RING };

/* The number of values in a chunk. */
HOST_DEVICE uint32_t chunk_values(enum dtype dtype)
{
    return format_row(dtype).chunk;
}

/* The place in shared memory of 16-byte word `u` (8 bf16; INT8: 16 codes) of a row of x. The order
 * is such that a lane reads the x for its weights in 16-byte words, and the four lanes of a row
 * read 64 consecutive bytes. */
HOST_DEVICE uint32_t x_place(enum dtype dtype, uint32_t u)
{
    if (format_row(dtype).order == X_PAIRS) /* of 8 words, lane q has 2q, 2q + 1 */
        return (u & ~7u) + (u & 1) * 4 + (u & 7) / 2;
    if (format_row(dtype).order == X_HALVES) { /* of 8 words, lanes 0, 2, 1, 3 have the pairs 2i,
                                                * 2i + 1 for i = 0, 1, 2, 3 */
        uint32_t piece = (u & 7) / 2;
        return (u & ~7u) + (u & 1) * 4 + (piece & 1) * 2 + piece / 2;
    }
    return u;
}

/* Bytes of x for one group of weights. */
HOST_DEVICE uint32_t group_x_bytes(enum dtype dtype)
{
    return RING * chunk_values(dtype) * format_row(dtype).x_bytes;
}

/* Groups of a row. */
HOST_DEVICE uint32_t job_groups(enum dtype dtype, uint32_t K)
{
    return plan_up(K, RING * chunk_values(dtype));
}

/* The distance of two rows of x in shared memory in bytes: an odd multiple of 64, so that the lanes
 * of two rows use different banks. */
HOST_DEVICE uint32_t x_stride(enum dtype dtype, uint32_t groups)
{
    return groups * group_x_bytes(dtype) + CHUNK;
}

/* The outlier marks of a row (kernels/cuda/product/encode_row.cuh), in 32-bit words: the k of the
 * first MARKS_LISTED outliers, ascending; then the number of all outliers; from MARKS_BITS on a bit
 * for each k. 8B models with random weights have about 50 outliers in a row of the input of `down`.
 * The parts are multiples of 16 bytes. */
enum { MARKS_LISTED = 248, MARKS_BITS = MARKS_LISTED + 4 };
/* Number of the first outliers of a row whose codes gemv.cu copies to shared memory. */
enum { NEAR = 64 };
HOST_DEVICE uint32_t marks_words(uint32_t K)
{
    return MARKS_BITS + plan_up(K, 128) * 4;
}

/* ---- gemv.cu: few rows; a block computes whole tiles, its warps divide K ---- */

enum { GEMV_ROWS = 8, GEMV_WARPS = 8 }; /* upper limits; format_row.few is the limit of a format */

/* Offsets in the shared memory of gemv.cu, in bytes. */
struct gemv_room {
    uint32_t table, x, coded, step, marks, near, sums, scratch, bytes;
};
HOST_DEVICE struct gemv_room gemv_room(enum dtype dtype, uint32_t T, uint32_t K, uint32_t warps)
{
    struct gemv_room room;
    uint32_t stride = x_stride(dtype, job_groups(dtype, K)), coded = (uint32_t)x_coded(dtype);
    room.table = 0;
    room.x = format_row(dtype).tables;
    room.coded = room.x + T * stride; /* INT8: also x in bf16 */
    room.step = room.coded + (coded ? T * plan_up(K, 8) * 16 : 0);
    room.marks = room.step + (coded ? GEMV_ROWS * 4 : 0);
    room.near = room.marks + (coded ? T * marks_words(K) * 4 : 0);
    room.sums = room.near + (coded ? 2 * T * NEAR * TILE_ROWS : 0); /* two buffers, as for the
                                                                     * sums */
    room.scratch = room.sums + 2 * warps * TILE_ROWS * GEMV_ROWS * 4; /* two buffers, used in
                                                                       * turn */
    room.bytes = room.scratch + 2 * GEMV_WARPS * 4;
    return room;
}

struct gemv_plan {
    uint32_t blocks, warps;
    uint32_t groups;
    int fits; /* 0: use another kernel */
};

/* The time of n equal pieces of work on `slots` slots, in rounds. Two thirds of the slots have
 * enough loads in flight for the full memory rate. So a last round that is not full costs its share
 * of the slots, but at least 0.67. */
HOST_DEVICE float plan_rounds(uint32_t n, uint32_t slots)
{
    uint32_t rest = n % slots;
    float part = (float)rest / (float)slots;
    return (float)(n / slots) + (rest == 0 ? 0 : part > 0.67f ? part : 0.67f);
}

HOST_DEVICE uint32_t gemv_warps(uint32_t groups)
{
    uint32_t best = GEMV_WARPS;
    for (uint32_t w = GEMV_WARPS; w >= 4; w--)
        if (plan_up(groups, w) * w < plan_up(groups, best) * best)
            best = w;
    return best;
}

HOST_DEVICE struct gemv_plan gemv_plan(const struct product_job *j, uint32_t sms, size_t shared_max)
{
    struct gemv_plan plan;
    plan.groups = job_groups(j->dtype, j->K);
    plan.warps = gemv_warps(plan.groups);
    size_t need = (size_t)j->T * x_stride(j->dtype, plan.groups) * 4; /* size_t, so that it cannot
                                                                       * overflow */
    uint32_t bytes = j->T <= format_row(j->dtype).few && need < (1u << 24)
                         ? gemv_room(j->dtype, j->T, j->K, plan.warps).bytes
                         : 1u << 24;
    uint32_t most = (uint32_t)((shared_max + 1024) / (bytes + 1024)); /* blocks on one SM */
    uint32_t tiles = job_tiles(j), best = 2;
    uint32_t limit = format_row(j->dtype).resident;
    plan.fits = most >= 2;
    for (uint32_t per = 3; per <= plan_least(most, limit); per++)
        if (plan_rounds(tiles, per * sms) * (float)per <
            plan_rounds(tiles, best * sms) * (float)best)
            best = per;
    plan.blocks = plan_least(tiles, best * sms);
    return plan;
}

/* ---- skinny.cu, few.cu: some rows; a warp computes a tile over a part of K ---- */

/* FEW_SHARED: bytes of shared memory that few.cu needs beside tables and slab. */
enum { SKINNY_WARPS = 16, SPLITS_MOST = 16, SLAB_MOST = 136 << 10, FEW_SHARED = 512 };
#define SUMS_MOST ((size_t)32 << 20)

struct skinny_plan {
    uint32_t rows;   /* limit of T in a launch: 8, 16, 32 or 64 */
    uint32_t splits; /* parts of K */
    uint32_t groups; /* groups in a part; the last part has the rest */
    uint32_t crews;  /* blocks that share the tiles of one part */
    uint32_t shared;
};

/* The number of groups of K for which `rows` rows of x fit into shared memory; 0: not even one. */
HOST_DEVICE uint32_t skinny_slab(enum dtype dtype, uint32_t rows, size_t shared_max)
{
    size_t room = shared_max - format_row(dtype).tables - FEW_SHARED;
    room = (room < SLAB_MOST ? room : (size_t)SLAB_MOST) / rows;
    return room < CHUNK ? 0 : (uint32_t)((room - CHUNK) / group_x_bytes(dtype));
}

/* The relative time of a plan: rounds, plus the cost of the sums, which are written and read again
 * (in the L2 cache, at about half the cost of weights). */
HOST_DEVICE float skinny_cost(const struct product_job *j, uint32_t T, uint32_t tiles, uint32_t sms,
                              uint32_t groups, uint32_t splits)
{
    uint32_t crews = sms / splits ? sms / splits : 1;
    float rounds = plan_rounds(tiles, crews * SKINNY_WARPS) * (float)groups;
    float full = (float)tiles * (float)job_groups(j->dtype, j->K) / (float)(sms * SKINNY_WARPS);
    float sums = (float)splits * (float)T * 4 / (float)j->stride;
    return rounds / full + sums;
}

/* The most parts of K for which the sums of T rows fit into SUMS_MOST, but at least `least`. */
HOST_DEVICE uint32_t skinny_splits_most(uint32_t T, uint32_t columns, uint32_t least)
{
    size_t room = SUMS_MOST / ((size_t)T * columns * 4);
    uint32_t most = room < SPLITS_MOST ? (uint32_t)room : (uint32_t)SPLITS_MOST;
    return most > least ? most : least;
}

HOST_DEVICE struct skinny_plan skinny_plan(const struct product_job *j, uint32_t sms,
                                           size_t shared_max)
{
    struct skinny_plan plan;
    uint32_t all = job_groups(j->dtype, j->K), slab;
    plan.rows = j->T <= 8 ? 8 : j->T <= 16 ? 16 : j->T <= 32 ? 32 : 64;
    while ((slab = skinny_slab(j->dtype, plan.rows, shared_max)) == 0 ||
           (plan.rows > 8 &&
            (size_t)plan_up(all, slab) * plan.rows * j->columns * 4 > 2 * SUMS_MOST))
        plan.rows /= 2;
    uint32_t T = plan_least(j->T, plan.rows), least = plan_up(all, slab);
    uint32_t most = skinny_splits_most(T, j->columns, least), tiles = job_tiles(j);
    float best = 0;
    plan.groups = plan.splits = 0;
    for (uint32_t groups = plan_least(slab, all); groups >= 1; groups--) {
        uint32_t splits = plan_up(all, groups);
        float cost = skinny_cost(j, T, tiles, sms, groups, splits);
        if (splits <= most && (plan.groups == 0 || cost < best)) {
            best = cost;
            plan.groups = groups;
            plan.splits = splits;
        }
    }
    plan.crews = sms / plan.splits ? sms / plan.splits : 1;
    plan.crews = plan_least(plan.crews, tiles);
    plan.shared = format_row(j->dtype).tables + plan.rows * x_stride(j->dtype, plan.groups);
    return plan;
}

/* The most bytes that the sums of any skinny plan for up to T rows take. */
HOST_DEVICE size_t skinny_sums(enum dtype dtype, size_t T, size_t K, size_t columns,
                               size_t shared_max)
{
    uint32_t all = job_groups(dtype, (uint32_t)K), splits = plan_least(all, SPLITS_MOST);
    size_t row = columns * 4, most = splits * T * row < SUMS_MOST ? splits * T * row : SUMS_MOST;
    for (uint32_t rows = 8; rows <= SKINNY_ROWS && (rows == 8 || rows / 2 < T); rows *= 2) {
        uint32_t slab = skinny_slab(dtype, rows, shared_max);
        size_t bytes = slab ? plan_up(all, slab) * (T < rows ? T : rows) * row : 0;
        if (bytes > most && (rows == 8 || bytes <= 2 * SUMS_MOST))
            most = bytes;
    }
    return most;
}

/* ---- parts of jobs ---- */

/* Bytes of a value of y[i]. */
HOST_DEVICE uint32_t job_value_bytes(const struct product_job *j, uint32_t i)
{
    if (j->kind == JOB_FLOATS || format_row(j->dtype).x_bytes == 4)
        return j->kind == JOB_QKV && i > 0 && !j->cache_f32 ? 2 : 4;
    return j->kind == JOB_QKV && i > 0 && j->cache_f32 ? 4 : 2;
}

/* The job for rows first .. first + count - 1 of x only. */
HOST_DEVICE struct product_job job_rows(const struct product_job *j, uint32_t first, uint32_t count)
{
    struct product_job job = *j;
    job.T = count;
    for (uint32_t i = 0; i < MATRICES; i++)
        if (job.y[i] && (j->kind != JOB_QKV || i == 0 || !j->slot))
            job.y[i] = (uint8_t *)job.y[i] + (size_t)first * job.ldy[i] * job_value_bytes(j, i);
    job.table = j->table ? j->table + (size_t)first * j->head_dim : j->table;
    job.slot = j->slot ? j->slot + first : j->slot;
    return job;
}

/* The job for rows first .. first + count - 1 of matrix i only (JOB_GATED: of both matrices). For q
 * and k the rows must be whole heads. */
HOST_DEVICE struct product_job job_slice(const struct product_job *j, uint32_t i, uint32_t first,
                                         uint32_t count)
{
    struct product_job job = *j;
    for (uint32_t tile = 0; tile < j->n; tile++) {
        int taken = tile == i || j->kind == JOB_GATED;
        job.w[tile].begin += taken ? first : 0;
        job.w[tile].rows = taken ? count : 0;
    }
    job.y[i] = (uint8_t *)job.y[i] + (size_t)first * job_value_bytes(j, i);
    job_settle(&job);
    return job;
}

/* Limits of the rows of x that are computed at a time. WORK_MOST keeps copies of rows below 128 MB.
 * With a limit of 64 MB, gate and up of an 8B model would take 1152 rows at a time, for which the
 * library leaves a fifth of a large card idle; 2048 rows fill the card. */
enum { WORK_MOST = 128 << 20, ROWS_MOST = 2048 };
