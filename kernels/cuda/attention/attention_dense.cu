/* attention_dense.cu - attention with all scores in memory, for attn.dense heads at a time:
 *
 *     work[h, t, s] = q k^T     then   work = softmax(work)     then   y = work v
 *
 * Each step is a kernel whose results go through the memory of the device. The file exists to
 * measure how much memory attention.cu saves, which never stores more than a tile of scores. With
 * bf16 activations products run on the matrix units, and scores and probabilities are stored in
 * fp32; with fp32 activations everything is fp32. */
#include <assert.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/device/runtime.h"

enum {
    DENSE_TILE = 64,             /* rows and columns of a block's outputs */
    DENSE_WARPS = 4,             /* warps of a block; each computes 16 of the rows */
    DENSE_K = 32,                /* values summed between two barriers */
    DENSE_STRIDE = DENSE_K + 8   /* length of a row in shared memory */
};

struct dense_job {
    struct attn a;
    float *scores; /* [heads, T, max_slots] */
    size_t first, heads; /* heads first .. first + heads - 1 are computed now */
    float scale;
};

/* ---- products ---- */

/* Adds the products over DENSE_K values to four outputs of 16 rows by 8 columns: (g, 2q), (g,
 * 2q + 1), (g + 8, 2q) and (g + 8, 2q + 1), where lane = 4g + q. */
DEVICE void dense_step(float sum[4], const float *x, const float *w)
{
    int g = lane_id() / 4, q = lane_id() % 4;
    for (int k = 0; k < DENSE_K; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = fmaf(x[(g + i / 2 * 8) * DENSE_STRIDE + k],
                          w[(2 * q + i % 2) * DENSE_STRIDE + k], sum[i]);
}

DEVICE void dense_step(float sum[4], const uint16_t *x, const uint16_t *w)
{
    int g = lane_id() / 4, q = lane_id() % 4;
    const uint16_t *low = x + g * DENSE_STRIDE + 2 * q, *high = low + 8 * DENSE_STRIDE;
    const uint16_t *column = w + g * DENSE_STRIDE + 2 * q;
#pragma unroll
    for (int k = 0; k < DENSE_K; k += 16) {
        const uint32_t a[4] = {*(const uint32_t *)(low + k), *(const uint32_t *)(high + k),
                               *(const uint32_t *)(low + k + 8), *(const uint32_t *)(high + k + 8)};
        const uint32_t b[2] = {*(const uint32_t *)(column + k),
                               *(const uint32_t *)(column + k + 8)};
        multiply_bf16(sum, a, b);
    }
}

DEVICE float *dense_row(const struct dense_job *j, size_t head, size_t row)
{
    return j->scores + (head * j->a.T + row) * j->a.max_slots;
}

/* Value e of key head kh of the key at index `at` of a list. */
DEVICE float dense_cached(const struct dense_job *j, const struct attn_seq *sequence,
                          const void *cache, size_t kh, int at, int e)
{
    size_t slot = (size_t)j->a.slots[sequence->slot_begin + at];
    size_t i = (slot * j->a.kv_heads + kh) * j->a.head_dim + (size_t)e;
    return j->a.kv.dtype == DTYPE_F32 ? ((const float *)cache)[i]
                                      : bf16_float(((const uint16_t *)cache)[i]);
}

/* Block (column tile, row tile, sequence and head) owns 64 x 64 outputs: scores or, if VALUES,
 * values of y. */
template <class A, bool VALUES>
__global__ void __launch_bounds__(DENSE_WARPS *WARP) dense_product(struct dense_job j)
{
    SHARED(A, x);
    let_next_start();
    wait_for_inputs();
    A *w = x + DENSE_TILE * DENSE_STRIDE;
    struct attn_seq sequence = j.a.seqs[blockIdx.z / j.heads];
    size_t at = blockIdx.z % j.heads, head = j.first + at, kh = head / (j.a.heads / j.a.kv_heads);
    int E = (int)j.a.head_dim, row0 = (int)blockIdx.y * DENSE_TILE;
    int column0 = (int)blockIdx.x * DENSE_TILE, columns = VALUES ? E : sequence.n_slots;
    int K = VALUES ? sequence.n_slots : E;
    if (row0 >= sequence.rows || column0 >= columns)
        return;
    float sum[DENSE_TILE / 8][4] = {};
    for (int k0 = 0; k0 < K; k0 += DENSE_K) {
        __syncthreads();
        for (int i = (int)threadIdx.x; i < DENSE_TILE * DENSE_K; i += DENSE_WARPS * WARP) {
            int r = i / DENSE_K, k = i % DENSE_K;
            float value = 0;
            if (row0 + r < sequence.rows && k0 + k < K) {
                size_t row = (size_t)(sequence.row_begin + row0 + r);
                value = VALUES ? dense_row(&j, at, row)[k0 + k]
                               : act_float(((const A *)j.a.q)[(row * j.a.heads + head) * (size_t)E +
                                                              (size_t)(k0 + k)]);
            }
            act_put(&x[r * DENSE_STRIDE + k], value);
            r = VALUES ? i % DENSE_TILE : r; /* neighbouring threads read neighbouring values */
            k = VALUES ? i / DENSE_TILE : k;
            value = 0;
            if (column0 + r < columns && k0 + k < K)
                value = VALUES ? dense_cached(&j, &sequence, j.a.kv.v, kh, k0 + k, column0 + r)
                               : dense_cached(&j, &sequence, j.a.kv.k, kh, column0 + r, k0 + k);
            act_put(&w[r * DENSE_STRIDE + k], value);
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < DENSE_TILE / 8; n++)
            dense_step(sum[n], x + warp_id() * 16 * DENSE_STRIDE, w + n * 8 * DENSE_STRIDE);
    }
#pragma unroll
    for (int n = 0; n < DENSE_TILE / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int r = row0 + warp_id() * 16 + lane_id() / 4 + i / 2 * 8;
            int column = column0 + n * 8 + lane_id() % 4 * 2 + i % 2;
            if (r >= sequence.rows || column >= columns)
                continue;
            size_t row = (size_t)(sequence.row_begin + r);
            if (VALUES)
                act_put((A *)j.a.y + (row * j.a.heads + head) * (size_t)E + (size_t)column,
                        sum[n][i]);
            else
                dense_row(&j, at, row)[column] = sum[n][i];
        }
}

/* ---- probabilities ---- */

/* Warp w of block (i, head, sequence) owns row i * DENSE_WARPS + w of the sequence. The
 * probabilities of a row that sees no key are zeros. */
static __global__ void __launch_bounds__(DENSE_WARPS *WARP) dense_softmax(struct dense_job j)
{
    let_next_start();
    wait_for_inputs();
    struct attn_seq sequence = j.a.seqs[blockIdx.z];
    int r = (int)blockIdx.x * DENSE_WARPS + warp_id();
    if (r >= sequence.rows)
        return;
    size_t row = (size_t)(sequence.row_begin + r);
    float *p = dense_row(&j, blockIdx.y, row), max = -INFINITY, sum = 0;
    int32_t last = mask_last(j.a.mask, j.a.mask_block, j.a.pos[row]);
    int32_t before = mask_before(j.a.window, last);
    for (int k = lane_id(); k < sequence.n_slots; k += WARP) {
        int32_t pos = j.a.slot_pos[sequence.slot_begin + k];
        p[k] = pos <= last && pos > before ? p[k] * j.scale : -INFINITY;
        max = fmaxf(max, p[k]);
    }
    max = warp_max(max);
    float base = max == -INFINITY ? 0.0f : max;
    for (int k = lane_id(); k < sequence.n_slots; k += WARP) {
        p[k] = expf(p[k] - base);
        sum += p[k];
    }
    sum = warp_sum(sum);
    float inverse = sum == 0 ? 0.0f : 1.0f / sum;
    for (int k = lane_id(); k < sequence.n_slots; k += WARP)
        p[k] *= inverse;
}

/* ---- the operation ---- */

template <class A> static void dense_turn(struct backend *backend, const struct dense_job *j)
{
    const struct attn *attention = &j->a;
    const size_t shared = 2 * DENSE_TILE * DENSE_STRIDE * sizeof(A);
    unsigned rows = (unsigned)ceil_div(attention->max_rows, DENSE_TILE);
    unsigned lists = (unsigned)(attention->n_seqs * j->heads);
    assert(rows < 65536 && lists < 65536 && j->heads < 65536 && attention->n_seqs < 65536);
    launch(backend, dense_product<A, false>,
           dim3((unsigned)ceil_div(attention->max_slots, DENSE_TILE), rows, lists),
           dim3(DENSE_WARPS * WARP), shared, *j);
    launch(backend, dense_softmax,
           dim3((unsigned)ceil_div(attention->max_rows, DENSE_WARPS), (unsigned)j->heads,
                (unsigned)attention->n_seqs),
           dim3(DENSE_WARPS * WARP), 0, *j);
    launch(backend, dense_product<A, true>,
           dim3((unsigned)ceil_div(attention->head_dim, DENSE_TILE), rows, lists),
           dim3(DENSE_WARPS * WARP), shared, *j);
}

void attention_dense(struct backend *backend, const struct attn *attention, void *work)
{
    struct dense_job j = {*attention, (float *)work, 0, 0,
                          (float)(1 / sqrt((double)attention->head_dim))};
    for (; j.first < attention->heads; j.first += j.heads) {
        j.heads = attention->heads - j.first < attention->dense ? attention->heads - j.first
                                                                : attention->dense;
        backend->act == DTYPE_F32 ? dense_turn<float>(backend, &j)
                                  : dense_turn<uint16_t>(backend, &j);
    }
}

size_t attention_dense_work(size_t T, size_t max_slots, size_t dense)
{
    return dense * T * max_slots * sizeof(float);
}
