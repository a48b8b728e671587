/* attention_exact.cu - attention in fp32, for any head dim and any format of activations and cache.
 * It uses plain products and expf in a fixed order. It serves to compare with the other back ends,
 * and for shapes that the matrix units do not take.
 *
 * A block walks over its sequence's list in chunks of 32 keys, which it loads into shared memory as
 * floats. A lane has one key while scores are computed, and columns of y while values are summed.
 * Chunks count from the start of the list, and a chunk that a query does not see adds exact zeros,
 * so the bits of a row depend only on the row and its list. Sums of probabilities are fp32 within a
 * chunk and double across chunks. */
#include <assert.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/device/runtime.h"

enum { EXACT_WARPS = 4, EXACT_QUERIES = 4, EXACT_BLOCK = EXACT_WARPS * EXACT_QUERIES };

/* Shared memory of a block, as offsets in floats: queries, keys, values, probabilities. Rows of
 * keys have an odd length, so that lanes that read one column of 32 rows use 32 banks. */
struct exact_shared {
    size_t row, keys, values, probabilities, end;
};
HOST_DEVICE struct exact_shared exact_shared_of(size_t E)
{
    struct exact_shared shared;
    shared.row = E + 1 - E % 2;
    shared.keys = EXACT_BLOCK * E;
    shared.values = shared.keys + WARP * shared.row;
    shared.probabilities = shared.values + WARP * E;
    shared.end = shared.probabilities + EXACT_BLOCK * WARP;
    return shared;
}

DEVICE float cached(const void *cache, enum dtype dtype, size_t i)
{
    return dtype == DTYPE_F32 ? ((const float *)cache)[i]
                              : bf16_float(((const uint16_t *)cache)[i]);
}

/* Loads 32 keys (or values) of key head kh, from key `first` of the list on, as rows of floats;
 * zeros beyond the end of the list. Warp w loads rows w, w + 4, ... */
DEVICE void exact_fetch(float *to, size_t row, const void *cache, const struct attn *attention,
                        const struct attn_seq *sequence, size_t kh, int first)
{
    size_t E = attention->head_dim;
    for (unsigned k = threadIdx.x / WARP; k < WARP; k += EXACT_WARPS) {
        bool real = first + (int)k < sequence->n_slots;
        size_t slot = real ? (size_t)attention->slots[sequence->slot_begin + first + (int)k] : 0;
        for (size_t e = threadIdx.x % WARP; e < E; e += WARP)
            to[k * row + e] = real ? cached(cache, attention->kv.dtype,
                                            (slot * attention->kv_heads + kh) * E + e)
                                   : 0.0f;
    }
}

/* Computes the probabilities of one query over a chunk; `score` is that of this lane's key. Updates
 * max and sum, and returns the factor by which y must be multiplied. */
DEVICE float exact_softmax(float *p, float score, float *max, double *sum)
{
    float most = fmaxf(*max, warp_max(score));
    float base = most == -INFINITY ? 0.0f : most, keep = expf(*max - base);
    *p = expf(score - base);
    *sum = *sum * (double)keep + (double)warp_sum(*p);
    *max = most;
    return keep;
}

/* Block (kh, tile, sequence) owns y of 16 queries of a key head. A warp owns four of these queries,
 * lane l their VALUES columns l, l + 32, ... */
template <class A, int VALUES>
__global__ void __launch_bounds__(EXACT_WARPS *WARP)
    attend_exact(struct attn attention, float scale)
{
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = attention.seqs[blockIdx.z];
    size_t E = attention.head_dim, kh = blockIdx.x, group = attention.heads / attention.kv_heads;
    int first = (int)blockIdx.y * EXACT_BLOCK, queries = sequence.rows * (int)group;
    if (first >= queries)
        return;
    int lane = (int)(threadIdx.x % WARP), warp = (int)(threadIdx.x / WARP);
    struct exact_shared at = exact_shared_of(E);
    float *q = shared + (size_t)(warp * EXACT_QUERIES) * E, *values = shared + at.values;
    float *p = shared + at.probabilities + warp * EXACT_QUERIES * WARP;
    float y[EXACT_QUERIES][VALUES], top[EXACT_QUERIES];
    double sum[EXACT_QUERIES];
    size_t head[EXACT_QUERIES];
    int32_t last[EXACT_QUERIES], before[EXACT_QUERIES], most = INT32_MIN;
    bool real[EXACT_QUERIES];
#pragma unroll
    for (int i = 0; i < EXACT_QUERIES; i++) {
        int query = first + warp * EXACT_QUERIES + i;
        real[i] = query < queries;
        head[i] = query_head((size_t)sequence.row_begin, (size_t)min(query, queries - 1), kh,
                             attention.heads, group);
        last[i] = mask_last(attention.mask, attention.mask_block,
                            attention.pos[head[i] / attention.heads]);
        before[i] = mask_before(attention.window, last[i]);
        top[i] = -INFINITY;
        sum[i] = 0;
        for (size_t e = (size_t)lane; e < E; e += WARP)
            q[(size_t)i * E + e] = act_float(((const A *)attention.q)[head[i] * E + e]);
#pragma unroll
        for (int v = 0; v < VALUES; v++)
            y[i][v] = 0;
    }
    for (int i = 0; i < EXACT_BLOCK; i++) {
        int row = sequence.row_begin + min(first + i, queries - 1) / (int)group;
        most = max(most, mask_last(attention.mask, attention.mask_block, attention.pos[row]));
    }
    for (int chunk = 0; chunk < sequence.n_slots; chunk += WARP) {
        bool listed = chunk + lane < sequence.n_slots;
        int32_t pos = listed ? attention.slot_pos[sequence.slot_begin + chunk + lane] : INT32_MAX;
        if (!__any_sync(EVERY_LANE, listed && pos <= most))
            continue;
        __syncthreads();
        exact_fetch(shared + at.keys, at.row, attention.kv.k, &attention, &sequence, kh, chunk);
        exact_fetch(values, E, attention.kv.v, &attention, &sequence, kh, chunk);
        __syncthreads();
        float score[EXACT_QUERIES] = {0};
        const float *key = shared + at.keys + (size_t)lane * at.row;
        for (size_t e = 0; e < E; e++)
#pragma unroll
            for (int i = 0; i < EXACT_QUERIES; i++)
                score[i] = fmaf(q[(size_t)i * E + e], key[e], score[i]);
#pragma unroll
        for (int i = 0; i < EXACT_QUERIES; i++) {
            bool seen = listed && pos <= last[i] && pos > before[i];
            float x = seen ? score[i] * scale : -INFINITY;
            float keep = exact_softmax(&p[i * WARP + lane], x, &top[i], &sum[i]);
#pragma unroll
            for (int v = 0; v < VALUES; v++)
                y[i][v] *= keep;
        }
        __syncwarp();
        for (int k = 0; k < WARP; k++)
#pragma unroll
            for (int v = 0; v < VALUES; v++) {
                size_t e = (size_t)(lane + v * WARP);
                float value = values[(size_t)k * E + (e < E ? e : 0)];
#pragma unroll
                for (int i = 0; i < EXACT_QUERIES; i++)
                    y[i][v] = fmaf(p[i * WARP + k], value, y[i][v]);
            }
    }
#pragma unroll
    for (int i = 0; i < EXACT_QUERIES; i++) {
        float inverse = sum[i] == 0 ? 0.0f : (float)(1 / sum[i]);
#pragma unroll
        for (int v = 0; v < VALUES; v++)
            if (real[i] && lane + v * WARP < (int)E)
                act_put((A *)attention.y + head[i] * E + (size_t)(lane + v * WARP),
                        y[i][v] * inverse);
    }
}

template <class A> static void exact_launch(struct backend *backend, const struct attn *attention)
{
    size_t E = attention->head_dim,
           queries = attention->max_rows * (attention->heads / attention->kv_heads);
    void (*kernel)(struct attn, float) = E <= 32    ? attend_exact<A, 1>
                                         : E <= 64  ? attend_exact<A, 2>
                                         : E <= 128 ? attend_exact<A, 4>
                                                    : attend_exact<A, 8>;
    dim3 grid((unsigned)attention->kv_heads, (unsigned)ceil_div(queries, EXACT_BLOCK),
              (unsigned)attention->n_seqs);
    assert(E <= 256 && grid.y < 65536 && grid.z < 65536);
    launch(backend, kernel, grid, dim3(EXACT_WARPS * WARP), exact_shared_of(E).end * sizeof(float),
           *attention, (float)(1 / sqrt((double)E)));
}

void attention_exact(struct backend *backend, const struct attn *attention)
{
    if (backend->act == DTYPE_F32)
        exact_launch<float>(backend, attention);
    else
        exact_launch<uint16_t>(backend, attention);
}
