/* attention_back.cu - the gradients of attention (struct attn_back of train.h), in fp32. With P =
 * softmax(S), S = q k^T / sqrt(E), dP = dy v^T:
 *
 *   dS = P (dP - rowsum(P dP)) / sqrt(E),  dq = dS k,  dk = dS^T q,  dv = P^T dy
 *
 * P is never stored but computed again, a tile at a time, from two numbers a query: the maximum of
 * its scores, and the inverse of the sum of their exponentials. In the first kernel a block owns
 * queries: it computes these numbers, rowsum(P dP) and dq. In the second kernel a block owns keys:
 * it sums dk and dv over the queries in ascending order. So every output has one owner and one
 * order. Keys that no query of a tile sees are skipped. Rows in shared memory have an odd length,
 * so that one column of 32 rows lies in 32 banks. Source: Dao et al. 2022 (arXiv 2205.14135),
 * appendix B. */
#include <assert.h>
#include <math.h>

#include "kernels/cuda/attention/attention_plan.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/train.h"

enum { KEYS = WARP, ROW_WARPS = 4, ROW_EACH = 4, ROW_QUERIES = ROW_WARPS * ROW_EACH };
enum { KEY_WARPS = 8, KEY_EACH = KEYS / KEY_WARPS, KEY_QUERIES = 32 };
enum { ROW_THREADS = ROW_WARPS * WARP, KEY_THREADS = KEY_WARPS * WARP };

/* Numbers of a query that the second kernel reads: maximum of scores, inverse of the sum, rowsum(P
 * dP). */
struct stats {
    float most, inverse, pull;
};

struct back_job {
    struct attn_back a;
    struct stats *stats; /* [R * H] */
    float scale;
};

/* The odd row length for heads of E values. */
HOST_DEVICE size_t odd(size_t E)
{
    return E + 1 - E % 2;
}

/* A row at `pos` sees keys first..last - 1 of n. */
DEVICE int sees_first(const struct attn_back &back, int32_t pos)
{
    return back.causal && back.window ? max(0, pos - (int32_t)back.window + 1) : 0;
}

DEVICE int sees_last(const struct attn_back &back, int32_t pos, int n)
{
    return back.causal ? min(n, pos + 1) : n;
}

/* Loads KEYS keys (or values) of key head kh, from key `first` of the sequence on, as rows of
 * odd(E) floats; zeros beyond the last key. */
template <int WARPS>
DEVICE void fetch_keys(float *to, const float *from, const struct attn_back &back,
                       const struct attn_seq &sequence, size_t kh, int first)
{
    const size_t E = back.head_dim, row = odd(E);
    for (int k = (int)(threadIdx.x / WARP); k < KEYS; k += WARPS)
        for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
            const size_t key = (size_t)(sequence.slot_begin + first + k);
            to[(size_t)k * row + e] =
                first + k < sequence.n_slots ? from[(key * back.kv_heads + kh) * E + e] : 0.0f;
        }
}

/* Computes s = q k and dP of N queries (rows of E floats at `query` and `dy`) with this lane's key
 * and value. */
template <int N>
DEVICE void score(float s[N], float d[N], const float *query, const float *dy, const float *key,
                  const float *value, size_t E)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        s[i] = d[i] = 0;
    for (size_t e = 0; e < E; e++) {
        const float k = key[e], v = value[e];
#pragma unroll
        for (int i = 0; i < N; i++) {
            s[i] = fmaf(query[(size_t)i * E + e], k, s[i]);
            d[i] = fmaf(dy[(size_t)i * E + e], v, d[i]);
        }
    }
}

/* ---- queries ---- */

struct row_shared {
    size_t dy, keys, values, ds, end; /* offsets in floats, from the queries on */
};
HOST_DEVICE struct row_shared row_shared_of(size_t E)
{
    struct row_shared shared;
    shared.dy = ROW_QUERIES * E;
    shared.keys = 2 * shared.dy;
    shared.values = shared.keys + KEYS * odd(E);
    shared.ds = shared.values + KEYS * odd(E);
    shared.end = shared.ds + ROW_QUERIES * KEYS;
    return shared;
}

/* Block (kh, tile, sequence) owns dq and the stats of 16 queries of a key head; a warp owns four of
 * these queries. A lane has one key while scores are computed, and the VALUES columns lane,
 * lane + 32, ... of dq while these are summed. The block reads the keys twice: first for the stats,
 * then for dq. */
template <int VALUES>
static __global__ void __launch_bounds__(ROW_THREADS) rows_back(struct back_job j)
{
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    const struct attn_back &back = j.a;
    const struct attn_seq sequence = back.seqs[blockIdx.z];
    const size_t E = back.head_dim, kh = blockIdx.x, group = back.heads / back.kv_heads;
    const int first = (int)blockIdx.y * ROW_QUERIES, queries = sequence.rows * (int)group;
    const int lane = (int)(threadIdx.x % WARP), warp = (int)(threadIdx.x / WARP) * ROW_EACH;
    if (first >= queries)
        return;
    const struct row_shared at = row_shared_of(E);
    const float *q = shared + (size_t)warp * E, *dy = q + at.dy;
    float *ds = shared + at.ds + warp * KEYS;
    size_t head[ROW_EACH];
    int low[ROW_EACH], high[ROW_EACH];
    float most[ROW_EACH], dq[ROW_EACH][VALUES] = {};
    double sum[ROW_EACH] = {}, pull[ROW_EACH] = {};
#pragma unroll
    for (int i = 0; i < ROW_EACH; i++) {
        const int query = min(first + warp + i, queries - 1);
        head[i] = query_head((size_t)sequence.row_begin, (size_t)query, kh, back.heads, group);
        low[i] = sees_first(back, back.pos[head[i] / back.heads]);
        high[i] = sees_last(back, back.pos[head[i] / back.heads], sequence.n_slots);
        most[i] = -INFINITY;
        for (size_t e = (size_t)lane; e < E; e += WARP) {
            shared[(size_t)(warp + i) * E + e] = back.q[head[i] * E + e];
            shared[at.dy + (size_t)(warp + i) * E + e] = back.dy[head[i] * E + e];
        }
    }
    const int last = min(first + ROW_QUERIES, queries) - 1;
    const int begin = sees_first(back, back.pos[sequence.row_begin + first / (int)group]) / KEYS *
                      KEYS;
    const int end = sees_last(back, back.pos[sequence.row_begin + last / (int)group],
                              sequence.n_slots);
    for (int turn = 0; turn < 2; turn++) {
        for (int chunk = begin; chunk < end; chunk += KEYS) {
            __syncthreads();
            fetch_keys<ROW_WARPS>(shared + at.keys, back.k, back, sequence, kh, chunk);
            fetch_keys<ROW_WARPS>(shared + at.values, back.v, back, sequence, kh, chunk);
            __syncthreads();
            float x[ROW_EACH], d[ROW_EACH];
            const size_t mine = (size_t)lane * odd(E);
            score<ROW_EACH>(x, d, q, dy, shared + at.keys + mine, shared + at.values + mine, E);
#pragma unroll
            for (int i = 0; i < ROW_EACH; i++) {
                const bool seen = chunk + lane >= low[i] && chunk + lane < high[i];
                x[i] = seen ? x[i] * j.scale : -INFINITY;
                if (turn) {
                    const float p = expf(x[i] - most[i]) * (float)sum[i];
                    ds[i * KEYS + lane] = p * (d[i] - (float)pull[i]) * j.scale;
                    continue;
                }
                const float top = fmaxf(most[i], warp_max(x[i]));
                const float base = top == -INFINITY ? 0.0f : top;
                const float keep = expf(most[i] - base), p = expf(x[i] - base);
                sum[i] = sum[i] * (double)keep + (double)warp_sum(p);
                pull[i] = pull[i] * (double)keep + (double)warp_sum(p * d[i]);
                most[i] = top;
            }
            __syncwarp();
            for (int k = 0; turn && k < KEYS; k++)
#pragma unroll
                for (int v = 0; v < VALUES; v++) {
                    const size_t e = (size_t)(lane + v * WARP);
                    const float key = shared[at.keys + (size_t)k * odd(E) + (e < E ? e : 0)];
#pragma unroll
                    for (int i = 0; i < ROW_EACH; i++)
                        dq[i][v] = fmaf(ds[i * KEYS + k], key, dq[i][v]);
                }
        }
#pragma unroll
        for (int i = 0; !turn && i < ROW_EACH; i++) { /* turns sums into the factors of P */
            sum[i] = sum[i] > 0 ? 1 / sum[i] : 0;
            pull[i] *= sum[i];
            most[i] = most[i] == -INFINITY ? 0.0f : most[i];
        }
    }
#pragma unroll
    for (int i = 0; i < ROW_EACH; i++) {
        if (first + warp + i >= queries)
            continue;
        if (lane == 0)
            j.stats[head[i]] = {most[i], (float)sum[i], (float)pull[i]};
#pragma unroll
        for (int v = 0; v < VALUES; v++)
            if (lane + v * WARP < (int)E)
                back.dq[head[i] * E + (size_t)(lane + v * WARP)] = dq[i][v];
    }
}

/* ---- keys ---- */

struct key_shared {
    size_t values, q, dy, p, ds, end; /* offsets in floats, from the keys on */
};
HOST_DEVICE struct key_shared key_shared_of(size_t E)
{
    struct key_shared shared;
    shared.values = KEYS * odd(E);
    shared.q = 2 * shared.values;
    shared.dy = shared.q + KEY_QUERIES * E;
    shared.p = shared.dy + KEY_QUERIES * E;
    shared.ds = shared.p + KEY_QUERIES * KEYS;
    shared.end = shared.ds + KEY_QUERIES * KEYS;
    return shared;
}

/* Loads KEY_QUERIES queries of the key head, from query `first` on, as rows of E floats; zeros
 * beyond the last query. */
DEVICE void fetch_queries(float *query, float *dy, const struct attn_back &back,
                          const struct attn_seq &sequence, size_t kh, int first, int queries)
{
    const size_t E = back.head_dim, group = back.heads / back.kv_heads;
    for (int i = (int)(threadIdx.x / WARP); i < KEY_QUERIES; i += KEY_WARPS) {
        const bool real = first + i < queries;
        const size_t head = query_head((size_t)sequence.row_begin, (size_t)(real ? first + i : 0),
                                       kh, back.heads, group);
        for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
            query[(size_t)i * E + e] = real ? back.q[head * E + e] : 0.0f;
            dy[(size_t)i * E + e] = real ? back.dy[head * E + e] : 0.0f;
        }
    }
}

/* Writes P and dS of the four queries of this warp, from query `first` on, with this lane's key. */
DEVICE void probabilities(float *p, float *ds, const struct back_job &j,
                          const struct attn_seq &sequence, size_t kh, int first, int queries,
                          int key, const float x[KEY_EACH], const float d[KEY_EACH])
{
    const struct attn_back &back = j.a;
    const size_t group = back.heads / back.kv_heads;
#pragma unroll
    for (int i = 0; i < KEY_EACH; i++) {
        const bool real = first + i < queries;
        const size_t head = query_head((size_t)sequence.row_begin, (size_t)(real ? first + i : 0),
                                       kh, back.heads, group);
        const struct stats stats = j.stats[head];
        const int32_t pos = back.pos[head / back.heads];
        const bool seen = real && key >= sees_first(back, pos) &&
                          key < sees_last(back, pos, sequence.n_slots);
        const float own = seen ? expf(x[i] * j.scale - stats.most) * stats.inverse : 0.0f;
        p[i * KEYS] = own;
        ds[i * KEYS] = own * (d[i] - stats.pull) * j.scale;
    }
}

/* Block (kh, tile, sequence) owns dk and dv of 32 keys, and takes 32 queries at a time. A warp
 * first computes the scores of four of the queries, with one key a lane. Then it sums for four of
 * the keys, and a lane sums the VALUES columns lane, lane + 32, ... */
template <int VALUES>
static __global__ void __launch_bounds__(KEY_THREADS) keys_back(struct back_job j)
{
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    const struct attn_back &back = j.a;
    const struct attn_seq sequence = back.seqs[blockIdx.z];
    const size_t E = back.head_dim, kh = blockIdx.x, group = back.heads / back.kv_heads;
    const int key = (int)blockIdx.y * KEYS, queries = sequence.rows * (int)group;
    const int lane = (int)(threadIdx.x % WARP), warp = (int)(threadIdx.x / WARP) * KEY_EACH;
    if (key >= sequence.n_slots)
        return;
    const struct key_shared at = key_shared_of(E);
    const size_t mine = (size_t)lane * odd(E), own = (size_t)warp * E;
    float dk[KEY_EACH][VALUES] = {}, dv[KEY_EACH][VALUES] = {};
    fetch_keys<KEY_WARPS>(shared, back.k, back, sequence, kh, key);
    fetch_keys<KEY_WARPS>(shared + at.values, back.v, back, sequence, kh, key);
    for (int first = 0; first < queries; first += KEY_QUERIES) {
        const int last = min(first + KEY_QUERIES, queries) - 1;
        const int begin = sees_first(back, back.pos[sequence.row_begin + first / (int)group]);
        const int end = sees_last(back, back.pos[sequence.row_begin + last / (int)group],
                                  sequence.n_slots);
        if (end <= key || begin >= key + KEYS)
            continue; /* no query of the tile sees these keys */
        __syncthreads();
        fetch_queries(shared + at.q, shared + at.dy, back, sequence, kh, first, queries);
        __syncthreads();
        float x[KEY_EACH], d[KEY_EACH];
        score<KEY_EACH>(x, d, shared + at.q + own, shared + at.dy + own, shared + mine,
                        shared + at.values + mine, E);
        probabilities(shared + at.p + warp * KEYS + lane, shared + at.ds + warp * KEYS + lane, j,
                      sequence, kh, first + warp, queries, key + lane, x, d);
        __syncthreads();
        for (int i = 0; i < KEY_QUERIES; i++)
#pragma unroll
            for (int v = 0; v < VALUES; v++) {
                const size_t e = (size_t)(lane + v * WARP);
                const size_t column = (size_t)i * E + (e < E ? e : 0);
                const float q = shared[at.q + column], dy = shared[at.dy + column];
#pragma unroll
                for (int k = 0; k < KEY_EACH; k++) {
                    dk[k][v] = fmaf(shared[at.ds + i * KEYS + warp + k], q, dk[k][v]);
                    dv[k][v] = fmaf(shared[at.p + i * KEYS + warp + k], dy, dv[k][v]);
                }
            }
    }
#pragma unroll
    for (int k = 0; k < KEY_EACH; k++)
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const size_t e = (size_t)(lane + v * WARP);
            const size_t to = (size_t)(sequence.slot_begin + key + warp + k);
            if (key + warp + k >= sequence.n_slots || e >= E)
                continue;
            back.dk[(to * back.kv_heads + kh) * E + e] = dk[k][v];
            back.dv[(to * back.kv_heads + kh) * E + e] = dv[k][v];
        }
}

/* ---- the operation ---- */

void cuda_attention_back(struct backend *backend, const struct attn_back *back, float *work)
{
    struct range here("attention_back");
    const size_t E = back->head_dim, group = back->heads / back->kv_heads;
    const struct back_job j = {*back, (struct stats *)work, (float)(1 / sqrt((double)E))};
    const dim3 rows((unsigned)back->kv_heads, blocks_of(back->max_slots * group, ROW_QUERIES),
                    (unsigned)back->n_seqs);
    const dim3 keys((unsigned)back->kv_heads, blocks_of(back->max_slots, KEYS),
                    (unsigned)back->n_seqs);
    assert(E <= ATTENTION_BACK_CUDA_MOST && rows.y < 65536 && back->n_seqs < 65536);
    launch(backend, E <= 32 ? rows_back<1> : E <= 64 ? rows_back<2> : rows_back<4>, rows,
           dim3(ROW_THREADS), row_shared_of(E).end * sizeof(float), j);
    launch(backend, E <= 32 ? keys_back<1> : E <= 64 ? keys_back<2> : keys_back<4>, keys,
           dim3(KEY_THREADS), key_shared_of(E).end * sizeof(float), j);
}

size_t cuda_attention_back_work(const struct backend *backend, size_t rows, size_t len,
                                size_t heads, size_t head_dim)
{
    (void)backend, (void)len, (void)head_dim;
    return rows * heads * sizeof(struct stats) / sizeof(float);
}
