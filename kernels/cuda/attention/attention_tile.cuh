/* attention_tile.cuh - attention on the matrix units. A block computes one tile of queries
 * (attention_plan.h):
 *
 *     for each key tile that a query of the block may see:
 *         s = q k^T              16 queries x 8 keys an instruction
 *         base = c max s         c = log2(e) / sqrt(E); only where it rises by more than BASE_LAG:
 *                                y and sum are then multiplied by 2^(old - base)
 *         p = 2^(c s - base)     sum += p
 *         y += bf16(p) v
 *
 * The four warps of a block work in one of two ways. With many queries each warp has its own
 * queries, all warps share the keys of the tile, and __syncthreads orders the copies. With few
 * queries each warp has all queries and its own quarter of every key tile, which only this warp
 * copies and reads. So __syncwarp is enough, and four chains of copies are in flight instead of
 * one; the sums of the warps are merged in order at the end.
 *
 * Keys and values of the next tiles are copied (copy_async) while one tile is computed. The groups
 * of copies are closed in the order k0 v0 k1 v1 ..., and 2 (stages - 1) may be open at each of the
 * two waits of a step. A buffer is filled again only behind the barrier that follows its last read.
 * If warps share keys and there are two stages (PAIRED), they wait only once a step, for both
 * copies of the tile.
 *
 * Numerics. Scores and sums are fp32. Exponentials have base 2, because 2^x is one machine
 * instruction and c is part of a fused multiply-add. Probabilities are rounded to bf16 for the
 * second product, as in the models' own kernels; the sum takes the unrounded probabilities, so that
 * roundings average out. Probabilities are at most 2^BASE_LAG; a base that lags does not change
 * their relative precision. A base of -inf (no key seen yet) counts as 0 in the exponent, because
 * -inf - -inf would be NaN. Hidden keys have p = 0 exactly. NaN is never lost: the maximum skips
 * it, the sum does not.
 *
 * Source: Milakov & Gimelshein 2018, algorithm 3; Dao 2023 (FlashAttention-2), algorithm 1. */
#pragma once

#include "kernels/cuda/attention/attention_join.cuh"
#include "kernels/cuda/attention/attention_step.cuh"
#include "kernels/cuda/device/runtime.h"

/* ---- the result ---- */

/* Merges the sums of warps that share queries. Each warp merges N of the column tiles of y over all
 * warps, and all maxima and sums. room, rows: shared memory of the keys and values, and of the
 * queries. */
template <class S, int N>
DEVICE void tile_merge(float (&y)[S::M][N][4], struct tile_sums<S> &sums, float4 *room,
                       float2 *rows)
{
    int lane = lane_id(), warp = warp_id();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::M * S::COLS; i++) {
        const float *z = sums.y[i / S::COLS][i % S::COLS];
        room[(warp * S::M * S::COLS + i) * WARP + lane] = make_float4(z[0], z[1], z[2], z[3]);
    }
#pragma unroll
    for (int i = 0; i < S::M * 2; i++)
        if (lane % 4 == 0)
            rows[warp * S::QUERIES + lane_query<S>(i / 2, i % 2)] =
                make_float2(sums.base[i / 2][i % 2], sums.sum[i / 2][i % 2]);
    __syncthreads();
#pragma unroll
    for (int at_tile = 0; at_tile < S::M; at_tile++) {
        float weight[2][S::WARPS_N];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float2 *row = rows + lane_query<S>(at_tile, half);
            float most = -INFINITY, sum = 0;
            for (int w = 0; w < S::WARPS_N; w++)
                most = fmaxf(most, row[w * S::QUERIES].x);
            float base = most == -INFINITY ? 0.0f : most;
#pragma unroll
            for (int w = 0; w < S::WARPS_N; w++) {
                weight[half][w] = exp2_flush(row[w * S::QUERIES].x - base);
                sum += weight[half][w] * row[w * S::QUERIES].y;
            }
            sums.base[at_tile][half] = most;
            sums.sum[at_tile][half] = sum;
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            int tile = at_tile * S::COLS + warp * N + n;
            float *z = y[at_tile][n];
            z[0] = z[1] = z[2] = z[3] = 0;
#pragma unroll
            for (int w = 0; w < S::WARPS_N; w++) {
                float4 part = room[(w * S::M * S::COLS + tile) * WARP + lane];
                z[0] += weight[0][w] * part.x;
                z[1] += weight[0][w] * part.y;
                z[2] += weight[1][w] * part.z;
                z[3] += weight[1][w] * part.w;
            }
        }
    }
}

/* Writes two column tiles of one row as bf16: neighbouring lanes swap halves, so that each lane
 * writes 8 bytes and a quad 32 bytes in a row. */
DEVICE void put_pair(uint16_t *y, int col, int E, const float *z, const float *next, float inverse,
                     bool valid)
{
    int odd = lane_id() % 2;
    uint32_t even_word = bf16_pair(z[0] * inverse, z[1] * inverse);
    uint32_t odd_word = bf16_pair(next[0] * inverse, next[1] * inverse);
    uint32_t got = __shfl_xor_sync(EVERY_LANE, odd ? even_word : odd_word, 1);
    col += odd * 8 + lane_id() % 4 / 2 * 4;
    if (valid && col < E)
        *(uint2 *)(y + col) = odd ? make_uint2(got, odd_word) : make_uint2(even_word, got);
}

/* Writes N column tiles, from column tile `tile` on, of the warp's rows: to y, or to the part of a
 * split. */
template <class S, int N>
DEVICE void tile_put(const struct tile_job *j, const struct tile_side *side,
                     const float (&y)[S::M][N][4], const struct tile_sums<S> &tile_sums, int tile)
{
    int E = (int)j->a.head_dim, column = lane_id() % 4 * 2;
    float *sums = j->part + part_sums((size_t)j->splits, j->a.T, j->a.heads, j->a.head_dim);
#pragma unroll
    for (int i = 0; i < S::M * 2; i++) {
        int at_tile = i / 2, half = i % 2, query = lane_query<S>(at_tile, half);
        bool valid = query < side->count;
        float sum = tile_sums.sum[at_tile][half], inverse = sum == 0 ? 0.0f : 1.0f / sum;
        size_t head = query_head((size_t)side->row_begin, (size_t)(side->first + query),
                                 (size_t)side->kh, j->a.heads, (size_t)side->group);
        if (side->used == 1) {
            uint16_t *row = (uint16_t *)j->a.y + head * (size_t)E;
#pragma unroll
            for (int n = 0; n < N; n += 2)
                put_pair(row, (tile + n) * 8, E, y[at_tile][n] + 2 * half,
                         y[at_tile][n + 1] + 2 * half, inverse, valid);
        } else if (valid) {
            size_t at = part_at((size_t)side->split, head, j->a.T, j->a.heads);
            float *row = j->part + at * (size_t)E;
#pragma unroll
            for (int n = 0; n < N; n++)
                if ((tile + n) * 8 < E)
                    *(float2 *)(row + (tile + n) * 8 + column) =
                        make_float2(y[at_tile][n][2 * half], y[at_tile][n][2 * half + 1]);
            if (tile == 0 && column == 0)
                *(float2 *)(sums + 2 * at) = make_float2(tile_sums.base[at_tile][half], sum);
        }
    }
}

/* The block that ends last among the splits of a list combines the parts. */
DEVICE void tile_join(const struct tile_job *j, struct tile_side *side)
{
    unsigned *arrived = j->arrived + blockIdx.z * gridDim.x + blockIdx.x;
    if (side->used == 1 || !last_to_arrive(arrived, side->used, &side->joins))
        return;
    for (int i = warp_id(); i < side->count; i += TILE_WARPS)
        combine_query(j, query_head((size_t)side->row_begin, (size_t)(side->first + i),
                                    (size_t)side->kh, j->a.heads, (size_t)side->group), side->used);
}

/* ---- the kernel ---- */

template <class S>
DEVICE void tile_begin(struct tile_sums<S> &sums, int32_t *last, const struct tile_job *j,
                       const struct tile_side *side)
{
    for (int i = (int)threadIdx.x; i < (S::FULL ? 0 : S::QUERIES); i += TILE_THREADS)
        last[i] = row_last(j, side, min(i, side->count - 1));
#pragma unroll
    for (int tile = 0; tile < S::M; tile++) {
        sums.base[tile][0] = sums.base[tile][1] = -INFINITY;
        sums.sum[tile][0] = sums.sum[tile][1] = 0;
#pragma unroll
        for (int n = 0; n < S::COLS; n++)
            sums.y[tile][n][0] = sums.y[tile][n][1] = sums.y[tile][n][2] = sums.y[tile][n][3] = 0;
    }
}

/* Adds the sums of the four lanes that hold a row. */
template <class S> DEVICE void tile_end(struct tile_sums<S> &sums)
{
#pragma unroll
    for (int i = 0; i < S::M * 2; i++) {
        float *sum = &sums.sum[i / 2][i % 2];
        *sum += __shfl_xor_sync(EVERY_LANE, *sum, 1);
        *sum += __shfl_xor_sync(EVERY_LANE, *sum, 2);
    }
}

/* Block (kh, tile and split, sequence) owns y, or a part, of its tile of queries. A warp owns all
 * columns of its own queries or, if warps share queries, a quarter of the columns. */
template <class S>
__global__ void __launch_bounds__(TILE_THREADS, TILE_RESIDENT(S::QUERIES))
    attend_tiles(struct tile_job j)
{
    SHARED(uint16_t, q);
    let_next_start();
    wait_for_inputs();
    static_assert(sizeof(struct tile_side) <= SIDE_VALUES * sizeof(uint16_t), "SIDE_VALUES");
    const struct tile_shared at = tile_shared_of(S::E, S::QUERIES, S::STAGES);
    uint16_t *keys = q + at.keys, *values = q + at.values;
    int32_t *last = (int32_t *)(q + at.last);
    struct tile_side *side = (struct tile_side *)(q + at.side);
    if (!tile_side_of<S>(side, &j))
        return;
    struct tile_walk walk = {S::FULL ? side->begin : side->begin - WARP, side->end, side->n_slots,
                             0, 0};
    const struct tile_lane lane = tile_lane_of<S>(&j, side);
    int next[S::STAGES];
    int32_t slot[S::STAGES];
    tile_copy_queries<S>(q, &j, side);
#pragma unroll
    for (int i = 0; i < S::STAGES; i++) {
        next[i] = tile_next<S>(&walk, side);
        slot[i] = tile_slot(&walk, side, next[i]);
    }
#pragma unroll
    for (int i = 0; i < (S::PAIRED ? 1 : S::STAGES); i++) {
        tile_copy<S>(keys + i * S::TILE, 0, &lane, &walk, next[i], slot[i]);
        if (S::PAIRED || i + 1 < S::STAGES)
            tile_copy<S>(values + i * S::TILE, lane.to_v, &lane, &walk, next[i], slot[i]);
    }
    struct tile_sums<S> sums;
    tile_begin<S>(sums, last, &j, side);
    copy_async_wait<S::PAIRED ? 2 : 2 * S::STAGES - 1>();
    __syncthreads();
    struct tile_queries<S> held;
    if constexpr (S::M == 1)
#pragma unroll
        for (int i = 0; i < S::E / 16; i++)
            load_queries<S>(held.kept[i], q, 0, i);
    /* Warps without queries compute too, so that there is no branch and copies and products
     * overlap. */
    for (int i = 0; next[0] >= 0; i++) {
        float s[S::M][S::KEYS / 8][4];
        int stage = i % S::STAGES, end = S::STAGES - 1, free = (i + end) % S::STAGES;
        copy_async_wait<S::PAIRED ? 0 : 2 * S::STAGES - 2>();
        tile_barrier<S>();
        if (!S::PAIRED)
            tile_copy<S>(values + free * S::TILE, lane.to_v, &lane, &walk, next[end], slot[end]);
        int after = tile_next<S>(&walk, side);
        int32_t after_slot = tile_slot(&walk, side, after);
        uint32_t hidden[S::M] = {0};
        if (!S::FULL && next[0] % 2 == 0)
            tile_find_hidden<S>(hidden, side, next[0] / 2, last);
        tile_scores<S>(s, q, held, keys + stage * S::TILE);
        if (next[0] % 2 == 0)
            S::FULL ? tile_hide_tail<S>(s, &walk, next[0] / 2) : tile_hide<S>(s, hidden);
        tile_raise<S>(sums, s, j.scale);
        if (S::PAIRED) {
            tile_copy<S>(keys + free * S::TILE, 0, &lane, &walk, next[end], slot[end]);
            tile_copy<S>(values + free * S::TILE, lane.to_v, &lane, &walk, next[end], slot[end]);
        } else {
            copy_async_wait<2 * S::STAGES - 2>();
            tile_barrier<S>();
            tile_copy<S>(keys + stage * S::TILE, 0, &lane, &walk, after, after_slot);
        }
        tile_values<S>(sums, s, j.scale, values + stage * S::TILE);
#pragma unroll
        for (int k = 0; k + 1 < S::STAGES; k++) {
            next[k] = next[k + 1];
            slot[k] = slot[k + 1];
        }
        next[S::STAGES - 1] = after;
        slot[S::STAGES - 1] = after_slot;
    }
    copy_async_wait<0>();
    tile_end<S>(sums);
    if constexpr (S::WARPS_N == 1) {
        tile_put<S, S::COLS>(&j, side, sums.y, sums, 0);
    } else {
        float y[S::M][S::COLS / S::WARPS_N][4];
        tile_merge<S, S::COLS / S::WARPS_N>(y, sums, (float4 *)keys, (float2 *)q);
        tile_put<S, S::COLS / S::WARPS_N>(&j, side, y, sums, warp_id() * (S::COLS / S::WARPS_N));
    }
    if (split_joins(S::QUERIES))
        tile_join(&j, side);
}

template <class S>
void tile_launch(struct backend *backend, const struct tile_job *j,
                 const struct attention_plan *plan)
{
    dim3 grid((unsigned)j->a.kv_heads, (unsigned)(plan->tiles * plan->splits),
              (unsigned)j->a.n_seqs);
    size_t shared = (size_t)tile_shared_of(S::E, S::QUERIES, S::STAGES).end;
    /* The speed of many rows depends on the blocks per SM (H100, 1024 rows: 72 us with SHARED_ALL,
     * 114 us with SHARED_PART). The speed of few rows depends on the arrival of keys. */
    launch_in(backend, S::WARPS_N == 1 ? SHARED_ALL : SHARED_PART, attend_tiles<S>, grid,
              dim3(TILE_THREADS), shared * sizeof(uint16_t), *j);
}
