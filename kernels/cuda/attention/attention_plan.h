/* attention_plan.h - how attention is cut into blocks: sizes, splits and addresses, for host and
 * device.
 *
 * G = H/K query heads share a key head. The queries of a key head are the rows of a sequence times
 * these G heads: query i is row i / G, head i % G of the group. So keys and values are read once
 * for the whole group. A block takes a tile of queries of one sequence and key head, and walks over
 * the sequence's list of slots in tiles of TILE_KEYS.
 *
 * If the tiles of queries are too few for the device, the list of slots is split over blocks. Split
 * s takes the key tiles from split_begin(s) up to split_begin(s + 1), and leaves a part (maximum,
 * sum, y) of each query in `work`; parts are combined in order. The host sets the largest number of
 * splits from the bounds in struct attn, because a recorded pass is replayed with other lengths; a
 * sequence uses split_count() of them. So the bits of a row depend on the plan and its own list. */
#pragma once

#include "kernels/ops.h"
#include "lib/base/host_device.h"

enum {
    TILE_KEYS = 64,     /* keys of one step of a block */
    TILE_WARPS = 4,     /* warps of a block */
    TILE_ROWS = 16,     /* queries of one matrix instruction */
    TILE_CHUNK = 8,     /* bf16 values of one 16-byte copy */
    TILE_E_MAX = 128,   /* largest head dim of the tiled kernel */
    SIDE_VALUES = 64,   /* space of a struct tile_side, in bf16 values */
    SPLIT_TILES = 5,    /* a list of fewer tiles is not split: combining parts would cost more than
                         * reading it */
    SPLIT_JOINED = 2,   /* SPLIT_TILES if the last block combines the parts */
    RESIDENT_ROWS = 256 /* most queries in all blocks resident on one multiprocessor */
};

struct attention_plan {
    int padded;  /* head dim of the kernel: 64 or 128 */
    int queries; /* queries of a block: 16, 32, 64 or 128 */
    int stages;  /* key tiles in flight */
    int tiles;   /* most tiles of queries in a sequence */
    int splits;  /* most splits of a list of slots */
    bool full;   /* every row sees every key, and heads need no padding */
};

HOST_DEVICE size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* ---- visibility ---- */

/* The last position that a row at `pos` may see. */
HOST_DEVICE int32_t mask_last(enum mask mask, size_t mask_block, int32_t pos)
{
    if (mask == MASK_FULL)
        return INT32_MAX;
    if (mask == MASK_CAUSAL)
        return pos;
    int32_t block = (int32_t)mask_block;
    return (pos / block + 1) * block - 1;
}

/* The position before the first one that a row may see; last: the last position that it may see. */
HOST_DEVICE int32_t mask_before(size_t window, int32_t last)
{
    return window ? last - (int32_t)window : INT32_MIN;
}

/* The index of query i of key head kh in q and y, counted in heads (times E: in values). It divides
 * 32-bit numbers, because a division of 64 bits takes a hundred instructions. */
HOST_DEVICE size_t query_head(size_t row_begin, size_t i, size_t kh, size_t heads, size_t group)
{
    uint32_t row = (uint32_t)i / (uint32_t)group, member = (uint32_t)i % (uint32_t)group;
    return (row_begin + row) * heads + kh * group + member;
}

/* ---- splits ---- */

/* The fewest key tiles of a split. With so many, writing and reading the part (8 bytes a value and
 * query) costs at most half of reading the keys and values. */
HOST_DEVICE int split_least(int queries)
{
    return queries / TILE_ROWS;
}

/* 1 if the block that leaves its part last combines the parts. With more queries a kernel combines
 * them, because one block would take long. */
HOST_DEVICE bool split_joins(int queries)
{
    return queries == TILE_ROWS;
}

/* The number of splits for a list of n slots; at least one, so that rows without keys get zeros. */
HOST_DEVICE int split_count(int32_t n, int splits, int queries)
{
    int tiles = (int)ceil_div((size_t)n, TILE_KEYS), most = tiles / split_least(queries);
    most = most < splits ? most : splits;
    return tiles < (split_joins(queries) ? SPLIT_JOINED : SPLIT_TILES) || most < 1 ? 1 : most;
}

/* The first key tile of split s of `used` splits; s = used gives the end of the list. */
HOST_DEVICE int split_begin(int32_t n, int used, int s)
{
    return (int)(ceil_div((size_t)n, TILE_KEYS) * (size_t)s / (size_t)used);
}

/* ---- shared memory of the tiled kernel ---- */

/* The index in values of chunk c of row r in a tile with rows of `padded` values. Chunks are
 * permuted within a row, so that chunk c of eight consecutive rows lies in eight different groups
 * of banks: matrix loads and copies then have no bank conflicts. */
HOST_DEVICE int tile_at(int r, int c, int padded)
{
    return r * padded + (c ^ (r % 8)) * TILE_CHUNK;
}

/* From place = tile_at(r, c) to the place of chunk c + n of row r, if c and n share no bit. It is
 * one instruction for a constant n, and needs no table of places in registers. */
HOST_DEVICE int tile_right(int place, int n)
{
    return place ^ n * TILE_CHUNK;
}

/* From place = tile_at(r, c) to the place of chunk c of row r + n, if r % 8 and n % 8 share no
 * bit. */
HOST_DEVICE int tile_down(int place, int n, int padded)
{
    return (place ^ n % 8 * TILE_CHUNK) + n * padded;
}

/* Offsets in values: queries at 0, then the stages of keys, the stages of values, the last position
 * that each query sees, and the block's struct tile_side. After the walk, warps that share queries
 * exchange y in the place of keys and values, and maxima and sums in the place of the queries. */
struct tile_shared {
    int keys, values, last, side, end;
};
HOST_DEVICE struct tile_shared tile_shared_of(int padded, int queries, int stages)
{
    struct tile_shared shared;
    shared.keys = queries * padded;
    shared.values = shared.keys + stages * TILE_KEYS * padded;
    shared.last = shared.values + stages * TILE_KEYS * padded;
    shared.side = shared.last + 2 * queries;
    shared.end = shared.side + SIDE_VALUES;
    return shared;
}

/* ---- the plan ---- */

/* Number of blocks that shall be resident on one multiprocessor; the compiler limits registers
 * accordingly. */
#define TILE_RESIDENT(queries) ((queries) == 16 || (queries) == 64 ? 3 : 2)

/* The number of stages: one if two stages would leave room for only one block on a
 * multiprocessor. */
HOST_DEVICE int tile_stages(int padded, int queries, size_t shared_max)
{
    if (padded == 64 || queries <= 32)
        return 2;
    size_t two = 2 * (size_t)tile_shared_of(padded, queries, 2).end;
    return queries == 128 && 2 * two <= shared_max ? 2 : 1;
}

HOST_DEVICE struct attention_plan attention_plan_of(size_t max_rows, size_t n_seqs,
                                                    size_t max_slots, size_t heads,
                                                    size_t kv_heads, size_t head_dim,
                                                    enum mask mask, int sms, size_t shared_max)
{
    size_t most = max_rows * (heads / kv_heads), sides = n_seqs * kv_heads;
    struct attention_plan plan;
    plan.padded = head_dim <= 64 ? 64 : 128;
    plan.queries = most <= 16 ? 16 : most <= 32 ? 32
                   : ceil_div(most, 128) * sides >= (size_t)sms ? 128 : 64;
    plan.stages = tile_stages(plan.padded, plan.queries, shared_max);
    plan.tiles = (int)ceil_div(most, (size_t)plan.queries);
    size_t splits = (size_t)(sms * TILE_RESIDENT(plan.queries)) / (sides * (size_t)plan.tiles);
    plan.splits = split_count((int32_t)max_slots, (int)splits, plan.queries);
    plan.full = mask == MASK_FULL && head_dim == (size_t)plan.padded;
    return plan;
}

/* ---- parts ---- */

/* The most queries times splits of any pass with at most T rows and max_slots slots. It is bounded
 * because all blocks of a split pass are resident. */
HOST_DEVICE size_t parts_most(size_t T, size_t max_slots, size_t heads, int sms)
{
    size_t lists = T * heads * ceil_div(max_slots, TILE_KEYS);
    size_t resident = (size_t)sms * RESIDENT_ROWS;
    return lists < resident ? lists : resident;
}

/* The most lists (one for each sequence and key head) in a pass that splits lists, because at least
 * two blocks of each list are resident. */
HOST_DEVICE size_t split_lists_most(int sms)
{
    return (size_t)(sms * TILE_RESIDENT(TILE_ROWS) / 2);
}

/* work holds y[splits, T*H, E], then (maximum, sum)[splits, T*H], all fp32; maxima are base-2
 * logarithms. part_at() is the index of query_head() q in a split. */
HOST_DEVICE size_t part_at(size_t split, size_t q, size_t T, size_t heads)
{
    return split * T * heads + q;
}

/* The number of floats in work before the maxima and sums. */
HOST_DEVICE size_t part_sums(size_t splits, size_t T, size_t heads, size_t head_dim)
{
    return splits * T * heads * head_dim;
}
