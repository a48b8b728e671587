/* attention_step.cuh - the steps of one block of the tiled kernel (attention_tile.cuh). A block
 * finds the keys that it must read and copies them; for each tile of keys it computes scores, mask,
 * softmax and values.
 *
 * A warp holds a tile of 16 rows and 8 columns in its registers, in the layout of the matrix
 * instruction: lane l holds rows g = l / 4 and g + 8, at columns 2 (l % 4) and 2 (l % 4) + 1. */
#pragma once

#include "kernels/cuda/attention/attention_plan.h"
#include "kernels/cuda/device.cuh"

enum { TILE_THREADS = TILE_WARPS * WARP, COPY_ROWS = TILE_KEYS / TILE_WARPS };

/* The base of a row (struct tile_sums) may be this much below the row's largest c s, where c is
 * tile_job.scale and s a score. With 8 the sum of 2^31 keys stays finite, and y is almost never
 * rescaled after the first key tile. */
#define BASE_LAG 8.0f

/* Arguments of a launch. */
struct tile_job {
    struct attn a;
    float scale; /* c of attention_tile.cuh */
    int tiles, splits;
    float *part;       /* attention_plan.h, "parts" */
    unsigned *arrived; /* [sequences, key heads]: blocks that left a part (attention_join.cuh) */
};

/* The shape of a kernel. E_: head dim. M_: row tiles of a warp. WARPS_M: number of groups of warps;
 * each group has queries of its own, and its warps divide the keys of each tile. STAGES_: key tiles
 * that shared memory holds at once. FULL_: attention_plan.full. */
template <int E_, int M_, int WARPS_M, int STAGES_, bool FULL_ = false> struct tile_shape {
    static constexpr int E = E_, M = M_, STAGES = STAGES_;
    static constexpr bool FULL = FULL_;
    static constexpr int WARPS_N = TILE_WARPS / WARPS_M;
    static constexpr int QUERIES = TILE_ROWS * M * WARPS_M;
    static constexpr int KEYS = TILE_KEYS / WARPS_N; /* keys of a warp */
    static constexpr int COLS = E / 8;               /* column tiles of y */
    static constexpr int TILE = TILE_KEYS * E;       /* values of a stage */
    /* 1: all warps share keys and there are two stages, so one barrier a key tile is enough. */
    static constexpr bool PAIRED = WARPS_N == 1 && STAGES == 2;
};

/* The work of one block, in shared memory. */
struct tile_side {
    const int32_t *slots, *slot_pos; /* the sequence's lists of slots and positions */
    int32_t row_begin, n_slots;
    int32_t least, most; /* the least and the largest of the last positions that the rows see */
    int first, count;    /* queries of the block: the first one, and their number */
    int begin, end;      /* key tiles begin .. end - 1 */
    int split, used, kh, group;
    int joins;           /* 1: this block ends last among the splits of its list, and combines the
                          * parts */
    bool all;            /* MASK_FULL: slot_pos is not read */
};

/* The key tiles that a warp still has to compute. Bit i of `seen` and `whole` stands for tile
 * window + i. A FULL kernel needs no bits: it computes all tiles from window on. */
struct tile_walk {
    int window, end, n_slots;
    unsigned seen;  /* tiles of which some query sees some key */
    unsigned whole; /* tiles of which every query sees every key */
};

/* The running sums of rows g and g + 8 of each row tile. A key with score s has the weight 2^(c s -
 * base). `sum` is the sum of the weights of this lane's keys, y the sum of weights times values.
 * The base of a row is the largest c s of an earlier key tile (tile_raise), or -inf before the
 * first key. */
template <class S> struct tile_sums {
    float y[S::M][S::COLS][4];
    float base[S::M][2], sum[S::M][2];
};

DEVICE int lane_id(void)
{
    return (int)(threadIdx.x % WARP);
}

DEVICE int warp_id(void)
{
    return (int)(threadIdx.x / WARP);
}

template <class S> DEVICE int warp_first_query(void)
{
    return warp_id() / S::WARPS_N * TILE_ROWS * S::M;
}

template <class S> DEVICE int warp_first_key(void)
{
    return warp_id() % S::WARPS_N * S::KEYS;
}

/* The query of the block that this lane holds as row `half` of row tile m. */
template <class S> DEVICE int lane_query(int tile, int half)
{
    return warp_first_query<S>() + tile * TILE_ROWS + half * 8 + lane_id() / 4;
}

/* Orders copies and reads of the warps that share key tiles. */
template <class S> DEVICE void tile_barrier(void)
{
    if (S::WARPS_N == 1)
        __syncthreads();
    else
        __syncwarp();
}

/* ---- queries and keys of a block ---- */

DEVICE int32_t row_last(const struct tile_job *j, const struct tile_side *side, int query)
{
    int row = side->row_begin + (side->first + query) / side->group;
    return mask_last(j->a.mask, j->a.mask_block, j->a.pos[row]);
}

/* The least and the largest last position that the rows of queries first .. first + count - 1 see.
 * All lanes of one warp call it. */
DEVICE void find_limits(const struct tile_job *j, int row_begin, int first, int count, int group,
                        int32_t *least, int32_t *most)
{
    for (int i = lane_id() * group; i < count + group - 1; i += WARP * group) {
        int row = row_begin + (first + min(i, count - 1)) / group;
        int32_t last = mask_last(j->a.mask, j->a.mask_block, j->a.pos[row]);
        *least = min(*least, last);
        *most = max(*most, last);
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        *least = min(*least, __shfl_xor_sync(EVERY_LANE, *least, step));
        *most = max(*most, __shfl_xor_sync(EVERY_LANE, *most, step));
    }
}

/* Fills *side, which lies in shared memory because registers are short. Returns false if the block
 * has nothing to do; this happens because the grid has the size of the host's upper bounds. The
 * last tiles of queries come first, because with a causal mask they take longest. */
template <class S> DEVICE bool tile_side_of(struct tile_side *side, const struct tile_job *j)
{
    struct attn_seq sequence = j->a.seqs[blockIdx.z];
    int group = (int)(j->a.heads / j->a.kv_heads), split = (int)blockIdx.y % j->splits;
    int first = (j->tiles - 1 - (int)blockIdx.y / j->splits) * S::QUERIES;
    int count = min(sequence.rows * group - first, S::QUERIES);
    int used = split_count(sequence.n_slots, j->splits, S::QUERIES);
    if (count <= 0 || split >= used)
        return false;
    if (warp_id() == 0) {
        int32_t least = INT32_MAX, most = INT32_MIN;
        if (!S::FULL)
            find_limits(j, sequence.row_begin, first, count, group, &least, &most);
        if (lane_id() == 0)
            *side = {j->a.slots + sequence.slot_begin,
                     j->a.slot_pos + sequence.slot_begin,
                     sequence.row_begin,
                     sequence.n_slots,
                     least,
                     most,
                     first,
                     count,
                     split_begin(sequence.n_slots, used, split),
                     split_begin(sequence.n_slots, used, split + 1),
                     split,
                     used,
                     (int)blockIdx.x,
                     group,
                     0,
                     j->a.mask == MASK_FULL};
    }
    __syncthreads();
    return true;
}

/* Fills seen and whole for the next 32 key tiles, from the keys of this warp. Warps that share keys
 * compute equal sets. */
template <class S> DEVICE void tile_look(struct tile_walk *walk, const struct tile_side *side)
{
    int n = min(walk->end - walk->window, WARP), lane = lane_id();
    walk->whole = 0;
#pragma unroll 4
    for (int i = 0; i < n; i++) {
        bool some = false, every = true;
        for (int k = 0; k < S::KEYS; k += WARP) {
            int key = (walk->window + i) * TILE_KEYS + warp_first_key<S>() + k + lane % S::KEYS;
            bool real = key < walk->n_slots;
            int32_t pos = real && !side->all ? __ldg(side->slot_pos + key) : INT32_MIN;
            some |= real && pos <= side->most;
            every &= real && pos <= side->least;
        }
        walk->seen |= (unsigned)(__any_sync(EVERY_LANE, some) != 0) << i;
        walk->whole |= (unsigned)(__all_sync(EVERY_LANE, every) != 0) << i;
    }
}

/* The next key tile to compute. Returns 2 * tile, or 2 * tile + 1 if every query sees every key of
 * the tile, or -1 if no tile is left. */
template <class S> DEVICE int tile_next(struct tile_walk *walk, const struct tile_side *side)
{
    if constexpr (S::FULL) {
        int tile = walk->window++;
        return tile < walk->end ? tile * 2 + (int)((tile + 1) * TILE_KEYS <= walk->n_slots) : -1;
    } else {
        while (!walk->seen) {
            if (walk->end - walk->window <= WARP)
                return -1;
            walk->window += WARP;
            tile_look<S>(walk, side);
        }
        int i = __ffs((int)walk->seen) - 1;
        walk->seen &= walk->seen - 1;
        return (walk->window + i) * 2 + (int)(walk->whole >> i & 1);
    }
}

/* ---- copies ---- */

/* The addresses of a lane, which copies one chunk of 16 bytes of each row. Its chunk of a key is at
 * k + slot * stride; the chunk of the value is `to_v` bytes behind. */
struct tile_lane {
    uintptr_t k, to_v;
    uint32_t stride;
    int row;   /* the lane's first row of a key tile; beyond every list for a chunk of padding */
    int place; /* place of that row in a stage (tile_at()) */
};

template <class S>
DEVICE struct tile_lane tile_lane_of(const struct tile_job *j, const struct tile_side *side)
{
    constexpr int CHUNKS = S::E / TILE_CHUNK;
    int row = warp_id() * COPY_ROWS + lane_id() / CHUNKS, c = lane_id() % CHUNKS;
    int E = (int)j->a.head_dim;
    bool padding = !S::FULL && c * TILE_CHUNK >= E;
    size_t first = (size_t)((side->kh * E + (padding ? 0 : c * TILE_CHUNK)) * 2);
    return {(uintptr_t)j->a.kv.k + first, (uintptr_t)j->a.kv.v - (uintptr_t)j->a.kv.k,
            (uint32_t)(j->a.kv_heads * j->a.head_dim * 2), padding ? INT32_MAX / 2 : row,
            tile_at(row, c, S::E)};
}

/* Returns the slot of row lane % 16 of the 16 rows of a key tile that this warp copies. next: a
 * result of tile_next(). */
DEVICE int32_t tile_slot(const struct tile_walk *walk, const struct tile_side *side, int next)
{
    int key = next / 2 * TILE_KEYS + warp_id() * COPY_ROWS + lane_id() % COPY_ROWS;
    return next >= 0 && key < walk->n_slots ? __ldg(side->slots + key) : 0;
}

/* Copies 16 rows of keys (away = 0) or of values (away = lane->to_v). Keys beyond the list and the
 * padding of the head become zeros: their probabilities are 0, but 0 times the old contents could
 * be NaN. There is no branch, so that copies and products of a key tile overlap. */
template <class S>
DEVICE void tile_copy(uint16_t *to, uintptr_t away, const struct tile_lane *lane,
                      const struct tile_walk *walk, int next, int32_t kept)
{
    constexpr int CHUNKS = S::E / TILE_CHUNK, ROWS = WARP / CHUNKS;
    int left = next < 0 ? 0 : walk->n_slots - next / 2 * TILE_KEYS - lane->row;
#pragma unroll
    for (int i = 0; i < COPY_ROWS / ROWS; i++) {
        uint32_t slot = (uint32_t)__shfl_sync(EVERY_LANE, kept, i * ROWS + lane_id() / CHUNKS);
        copy_async(to + tile_down(lane->place, i * ROWS, S::E),
                   (const void *)(lane->k + (size_t)slot * lane->stride + away), i * ROWS < left);
    }
    copy_async_close();
}

/* Copies the queries of the block to shared memory. Thread t copies chunk t % CHUNKS of every
 * ROWS-th row. */
template <class S>
DEVICE void tile_copy_queries(uint16_t *to, const struct tile_job *j, const struct tile_side *side)
{
    constexpr int CHUNKS = S::E / TILE_CHUNK, ROWS = TILE_THREADS / CHUNKS;
    const int E = (int)j->a.head_dim, c = (int)threadIdx.x % CHUNKS, count = side->count;
    const size_t row_begin = (size_t)side->row_begin, kh = (size_t)side->kh, heads = j->a.heads;
    const uint32_t group = (uint32_t)side->group, first = (uint32_t)side->first;
    const uint16_t *q = (const uint16_t *)j->a.q + c * TILE_CHUNK;
#pragma unroll 4
    for (int row = (int)threadIdx.x / CHUNKS; row < S::QUERIES; row += ROWS) {
        bool valid = row < count && c * TILE_CHUNK < E;
        size_t head = query_head(row_begin, first + (uint32_t)row, kh, heads, group);
        copy_async(to + tile_at(row, c, S::E), q + (valid ? head * (size_t)E : 0), valid);
    }
    copy_async_close();
}

/* ---- one key tile ---- */

/* The queries of a warp in registers, if it has one row tile. With two row tiles the queries would
 * leave too few registers for y, so load_queries() reads them from shared memory at each step. */
template <class S> struct tile_queries {
    uint32_t kept[S::M == 1 ? S::E / 16 : 1][4];
};

/* Loads columns 16 step .. 16 step + 15 of row tile `tile`. */
template <class S> DEVICE void load_queries(uint32_t r[4], const uint16_t *q, int tile, int step)
{
    int row = warp_first_query<S>() + tile * TILE_ROWS + lane_id() % 16;
    load_matrices(r, q + tile_right(tile_at(row, lane_id() / 16, S::E), step * 2));
}

template <class S>
DEVICE void tile_scores(float (&s)[S::M][S::KEYS / 8][4], const uint16_t *q,
                        const struct tile_queries<S> &held, const uint16_t *keys)
{
    int lane = lane_id(), row = warp_first_key<S>() + lane % 8 + lane / 16 * 8;
    int place = tile_at(row, lane / 8 % 2, S::E);
#pragma unroll
    for (int tile = 0; tile < S::M; tile++)
#pragma unroll
        for (int n = 0; n < S::KEYS / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s[tile][n][i] = 0;
#pragma unroll
    for (int step = 0; step < S::E / 16; step++) {
        uint32_t a[S::M][4], b[4];
#pragma unroll
        for (int tile = 0; tile < S::M; tile++)
            if constexpr (S::M > 1)
                load_queries<S>(a[tile], q, tile, step);
#pragma unroll
        for (int n = 0; n < S::KEYS / 8; n += 2) {
            load_matrices(b, keys + tile_right(place, step * 2) + n * 8 * S::E);
#pragma unroll
            for (int tile = 0; tile < S::M; tile++) {
                const uint32_t *x = S::M > 1 ? a[tile] : held.kept[S::M > 1 ? 0 : step];
                multiply_bf16(s[tile][n], x, b);
                multiply_bf16(s[tile][n + 1], x, b + 2);
            }
        }
    }
}

/* Finds the keys of a tile that a query must not see: keys hidden by the mask or beyond the list.
 * Bit 2 i of hidden[m] is set for key column i of row g, bit 2 i + 1 for row g + 8. It runs before
 * the scores are computed, while registers are free for the positions. */
template <class S>
DEVICE void tile_find_hidden(uint32_t (&hidden)[S::M], const struct tile_side *side, int tile,
                             const int32_t *last)
{
    int key = tile * TILE_KEYS + warp_first_key<S>() + lane_id() % 4 * 2;
#pragma unroll
    for (int at_tile = 0; at_tile < S::M; at_tile++) {
        int32_t first = last[lane_query<S>(at_tile, 0)], second = last[lane_query<S>(at_tile, 1)];
        hidden[at_tile] = 0;
#pragma unroll 4
        for (int i = 0; i < S::KEYS / 4; i++) {
            int k = key + i / 2 * 8 + i % 2;
            bool real = k < side->n_slots;
            int32_t pos = real && !side->all ? __ldg(side->slot_pos + k) : INT32_MIN;
            hidden[at_tile] |= (uint32_t)(!real || pos > first) << 2 * i;
            hidden[at_tile] |= (uint32_t)(!real || pos > second) << (2 * i + 1);
        }
    }
}

/* Sets the scores to -inf that tile_find_hidden() has marked. */
template <class S>
DEVICE void tile_hide(float (&s)[S::M][S::KEYS / 8][4], const uint32_t (&hidden)[S::M])
{
#pragma unroll
    for (int tile = 0; tile < S::M; tile++)
#pragma unroll
        for (int i = 0; i < S::KEYS / 2; i++)
            if (hidden[tile] >> i & 1)
                s[tile][i / 4][i % 2 * 2 + i / 2 % 2] = -INFINITY;
}

/* Sets the scores of keys beyond the list to -inf. A full mask hides no other keys. */
template <class S>
DEVICE void tile_hide_tail(float (&s)[S::M][S::KEYS / 8][4], const struct tile_walk *walk, int tile)
{
    int left = walk->n_slots - tile * TILE_KEYS - warp_first_key<S>() - lane_id() % 4 * 2;
#pragma unroll
    for (int at_tile = 0; at_tile < S::M; at_tile++)
#pragma unroll
        for (int i = 0; i < S::KEYS / 2; i++)
            if (i / 4 * 8 + i % 2 >= left)
                s[at_tile][i / 4][i % 4] = -INFINITY;
}

/* Raises the base of each row whose largest c s is more than BASE_LAG above it, and rescales the
 * sum and y of the row. Four lanes hold a row and agree on its maximum. Rows that keep their base
 * are multiplied by 1, which is exact: so the bits of a row do not depend on other rows. */
template <class S>
DEVICE void tile_raise(struct tile_sums<S> &sums, const float (&s)[S::M][S::KEYS / 8][4],
                       float scale)
{
    float most[S::M * 2];
    bool far = false;
#pragma unroll
    for (int i = 0; i < S::M * 2; i++) {
        int tile = i / 2, half = i % 2;
        most[i] = fmaxf(s[tile][0][2 * half], s[tile][0][2 * half + 1]);
#pragma unroll
        for (int n = 1; n < S::KEYS / 8; n++)
            most[i] = fmaxf(most[i], fmaxf(s[tile][n][2 * half], s[tile][n][2 * half + 1]));
        far |= fmaf(most[i], scale, -sums.base[tile][half]) > BASE_LAG;
    }
    if (!__any_sync(EVERY_LANE, far))
        return;
#pragma unroll
    for (int i = 0; i < S::M * 2; i++) {
        int tile = i / 2, half = i % 2;
        float old = sums.base[tile][half], keep = 1;
        most[i] = fmaxf(most[i], __shfl_xor_sync(EVERY_LANE, most[i], 1));
        most[i] = fmaxf(most[i], __shfl_xor_sync(EVERY_LANE, most[i], 2));
        if (fmaf(most[i], scale, -old) > BASE_LAG) {
            sums.base[tile][half] = most[i] * scale;
            keep = exp2_flush(old - sums.base[tile][half]);
        }
        sums.sum[tile][half] *= keep;
#pragma unroll
        for (int n = 0; n < S::COLS; n++) {
            sums.y[tile][n][2 * half] *= keep;
            sums.y[tile][n][2 * half + 1] *= keep;
        }
    }
}

/* Turns 16 columns of scores into probabilities, in the layout of the left factor of a product, and
 * adds them to the sums. bases[]: the bases of the rows, with 0 in place of -inf. */
template <class S>
DEVICE void tile_softmax(uint32_t (&p)[S::M][4], struct tile_sums<S> &sums,
                         const float (&s)[S::M][S::KEYS / 8][4], const float (&bases)[S::M][2],
                         float scale, int step)
{
#pragma unroll
    for (int i = 0; i < S::M * 4; i++) {
        int tile = i / 4, half = i % 2;
        const float *pair = s[tile][step * 2 + i % 4 / 2] + 2 * half;
        float low = exp2_flush(fmaf(pair[0], scale, -bases[tile][half]));
        float high = exp2_flush(fmaf(pair[1], scale, -bases[tile][half]));
        p[tile][i % 4] = bf16_pair(low, high);
        sums.sum[tile][half] += low + high;
    }
}

/* y += p v, where p are the probabilities of scores s. It takes 16 keys at a time, so that
 * exponentials and products overlap and the registers of used scores become free. */
template <class S>
DEVICE void tile_values(struct tile_sums<S> &sums, const float (&s)[S::M][S::KEYS / 8][4],
                        float scale, const uint16_t *values)
{
    int place = tile_at(warp_first_key<S>() + lane_id() % 16, lane_id() / 16, S::E);
    float bases[S::M][2];
#pragma unroll
    for (int i = 0; i < S::M * 2; i++)
        bases[i / 2][i % 2] = sums.base[i / 2][i % 2] == -INFINITY ? 0.0f : sums.base[i / 2][i % 2];
#pragma unroll
    for (int step = 0; step < S::KEYS / 16; step++) {
        uint32_t p[S::M][4], b[4];
        tile_softmax<S>(p, sums, s, bases, scale, step);
#pragma unroll
        for (int n = 0; n < S::COLS; n += 2) {
            load_matrices_turned(b, values + tile_right(place, n) + step * 16 * S::E);
#pragma unroll
            for (int tile = 0; tile < S::M; tile++) {
                multiply_bf16(sums.y[tile][n], p[tile], b);
                multiply_bf16(sums.y[tile][n + 1], p[tile], b + 2);
            }
        }
    }
}
