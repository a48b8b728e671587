/* attention_plan.h - how attention is cut into blocks: sizes, splits and addresses, on both sides.
 *
 * The rows of a sequence, times the G = H/K query heads that share a key head, are the queries of
 * that key head: query i is row i / G, head i % G of the group. So keys and values are read once
 * for the whole group. A block takes a tile of queries of one sequence and key head, and walks over
 * the sequence's list of slots in tiles of TILE_KEYS.
 *
 * Where tiles of queries alone would leave the device idle, the list is split: split s of n takes
 * the key tiles split_begin(s) .. split_begin(s + 1), and leaves a part (maximum, sum, y) of each
 * query in `work`; parts are combined in their order. The host decides how many splits there may
 * be from the bounds in struct attn, since a recorded pass is replayed with other lengths; a
 * sequence uses split_count() of them. So a row's bits depend on the plan and its own list.
 */
#ifndef KERNELS_CUDA_ATTENTION_ATTENTION_PLAN_H
#define KERNELS_CUDA_ATTENTION_ATTENTION_PLAN_H

#include "kernels/ops.h"
#include "lib/base/device.h"

enum {
    TILE_KEYS = 64,     /* of one step of a block */
    TILE_WARPS = 4,     /* of a block */
    TILE_ROWS = 16,     /* queries of one matrix instruction */
    TILE_CHUNK = 8,     /* bf16 values of one 16-byte copy */
    TILE_E_MAX = 128,   /* largest head dim of the tiled kernel */
    SIDE_VALUES = 64,   /* room of a struct tile_side, in bf16 values */
    SPLIT_TILES = 5,    /* shorter lists are read sooner than parts are combined */
    RESIDENT_ROWS = 256 /* queries that the blocks resident on one multiprocessor hold, at most */
};

struct attention_plan {
    int padded;  /* head dim of the kernel: 64 or 128 */
    int queries; /* of a block: 16, 32, 64 or 128 */
    int stages;  /* key tiles under way */
    int tiles;   /* tiles of queries that a sequence may have */
    int splits;  /* of a list of slots, at most */
};

HOST_DEVICE size_t ceil_div(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* ---- who may see what ---- */

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

/* The position before the first that it may see, `last` being the last one. */
HOST_DEVICE int32_t mask_before(size_t window, int32_t last)
{
    return window ? last - (int32_t)window : INT32_MIN;
}

/* Where query i of key head kh begins in q and y, in heads: times E for values. */
HOST_DEVICE size_t query_head(size_t row_begin, size_t i, size_t kh, size_t heads, size_t group)
{
    return (row_begin + i / group) * heads + kh * group + i % group;
}

/* ---- splits ---- */

/* Fewest key tiles of a split: writing and reading its part (8 bytes a value and query) then costs
 * at most half of what reading its keys and values costs. */
HOST_DEVICE int split_least(int queries)
{
    return queries / TILE_ROWS;
}

/* Splits in use for a list of n slots; at least one, so that rows without keys get their zeros. */
HOST_DEVICE int split_count(int32_t n, int splits, int queries)
{
    int tiles = (int)ceil_div((size_t)n, TILE_KEYS), most = tiles / split_least(queries);
    most = most < splits ? most : splits;
    return tiles < SPLIT_TILES || most < 1 ? 1 : most;
}

/* The first key tile of split s of `used`, and for s = used the end. */
HOST_DEVICE int split_begin(int32_t n, int used, int s)
{
    return (int)(ceil_div((size_t)n, TILE_KEYS) * (size_t)s / (size_t)used);
}

/* ---- shared memory of the tiled kernel ---- */

/* Where chunk c of row r lies in a tile of rows of `padded` values, in values. Chunks are permuted
 * within a row so that the same chunk of eight rows in sequence lies in eight different groups of
 * banks: matrix loads and copies are then free of conflicts. */
HOST_DEVICE int tile_at(int r, int c, int padded)
{
    return r * padded + (c ^ (r % 8)) * TILE_CHUNK;
}

/* From place tile_at(r, c) to that of chunk c + n of the same row, where c and n share no bit. One
 * instruction with n a constant, and no table of places in registers. */
HOST_DEVICE int tile_right(int place, int n)
{
    return place ^ n * TILE_CHUNK;
}

/* To that of row r + n, where r % 8 and n % 8 share no bit. */
HOST_DEVICE int tile_down(int place, int n, int padded)
{
    return (place ^ n % 8 * TILE_CHUNK) + n * padded;
}

/* In values from the start: queries at 0, then the stages of keys, those of values, the last
 * position that each query sees, and the block's struct tile_side. When the walk is over, warps
 * that shared queries exchange their sums where keys and values were, and maxima and sums where the
 * queries were. */
struct tile_shared {
    int keys, values, last, side, end;
};
HOST_DEVICE struct tile_shared tile_shared_of(int padded, int queries, int stages)
{
    struct tile_shared s;
    s.keys = queries * padded;
    s.values = s.keys + stages * TILE_KEYS * padded;
    s.last = s.values + stages * TILE_KEYS * padded;
    s.side = s.last + 2 * queries;
    s.end = s.side + SIDE_VALUES;
    return s;
}

/* ---- the plan ---- */

/* Blocks that one multiprocessor shall hold: the compiler gives each the registers that this
 * leaves. */
#define TILE_RESIDENT(queries) ((queries) == 16 || (queries) == 64 ? 3 : 2)

/* One stage where two would leave room for one block only. */
HOST_DEVICE int tile_stages(int padded, int queries, size_t shared_max)
{
    if (padded == 64 || queries <= 32)
        return 2;
    size_t two = 2 * (size_t)tile_shared_of(padded, queries, 2).end;
    return queries == 128 && 2 * two <= shared_max ? 2 : 1;
}

HOST_DEVICE struct attention_plan attention_plan_of(size_t max_rows, size_t n_seqs,
                                                    size_t max_slots, size_t heads,
                                                    size_t kv_heads, size_t head_dim, int sms,
                                                    size_t shared_max)
{
    size_t most = max_rows * (heads / kv_heads), sides = n_seqs * kv_heads;
    struct attention_plan p;
    p.padded = head_dim <= 64 ? 64 : 128;
    p.queries = most <= 16 ? 16 : most <= 32 ? 32
                : ceil_div(most, 128) * sides >= (size_t)sms ? 128 : 64;
    p.stages = tile_stages(p.padded, p.queries, shared_max);
    p.tiles = (int)ceil_div(most, (size_t)p.queries);
    size_t splits = (size_t)(sms * TILE_RESIDENT(p.queries)) / (sides * (size_t)p.tiles);
    p.splits = split_count((int32_t)max_slots, (int)splits, p.queries);
    return p;
}

/* ---- parts ---- */

/* Queries times splits of any pass of at most T rows and max_slots slots: the blocks of a split
 * pass are all resident. */
HOST_DEVICE size_t parts_most(size_t T, size_t max_slots, size_t heads, int sms)
{
    size_t lists = T * heads * ceil_div(max_slots, TILE_KEYS);
    size_t resident = (size_t)sms * RESIDENT_ROWS;
    return lists < resident ? lists : resident;
}

/* work = y[splits, T*H, E], then (maximum, sum)[splits, T*H], all fp32; maxima in units of log 2.
 * Entry of query_head q in split s: */
HOST_DEVICE size_t part_at(size_t s, size_t q, size_t T, size_t heads)
{
    return s * T * heads + q;
}

/* Floats before the maxima. */
HOST_DEVICE size_t part_sums(size_t splits, size_t T, size_t heads, size_t head_dim)
{
    return splits * T * heads * head_dim;
}

#endif
