/* mixing.cu - the operations around time mixing on the device (kernels/mixing.h). Each is one
 * kernel that reads a row once for all its mixtures. A warp sums over a head. */
#include "kernels/mixing.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"

enum { THREADS = 256, HEAD_WARPS = THREADS / WARP };

/* Thread d of block (i, seq) owns column d of the sequence, row by row, with the row before in a
 * register. */
static __global__ void __launch_bounds__(THREADS) shift_columns(struct shift a)
{
    let_next_start();
    wait_for_inputs();
    const struct attn_seq s = a.seqs[blockIdx.y];
    const size_t d = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (d >= a.D)
        return;
    float *last = a.last ? a.last + (size_t)a.at[blockIdx.y] * a.D + d : NULL;
    float old = last ? *last : 0.0f;
    for (size_t t = (size_t)s.row_begin, end = t + (size_t)s.rows; t < end; t++) {
        const float x = a.x[t * a.D + d];
        for (size_t i = 0; i < a.n; i++) {
            const float m = a.share[i][d] + (a.more[i] ? a.more[i][t * a.D + d] : 0.0f);
            a.to[i][t * a.D + d] = fmaf(old - x, m, x);
        }
        old = x;
    }
    if (last && a.keep)
        *last = old;
}

DEVICE float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Thread i owns value i. */
static __global__ void __launch_bounds__(THREADS) squash_values(struct squash a)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= a.T * a.n)
        return;
    const float x = a.x[i] + (a.base ? a.base[i % a.n] : 0.0f);
    a.x[i] = a.by == SQUASH_TANH       ? tanhf(x)
             : a.by == SQUASH_LOGISTIC ? logistic(x)
             : a.by == SQUASH_DECAY6   ? -expf(x)
                                       : -SQUASH_SLOWEST * logistic(x);
}

/* The first value of this warp's head in a row; n behind the last head. */
DEVICE size_t head_here(size_t n, size_t E)
{
    const size_t head = (size_t)blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    return head * E < n ? head * E : n;
}

/* Warp w of block i owns head HEAD_WARPS i + w of the rows' heads. */
static __global__ void __launch_bounds__(THREADS) removal_heads(struct removal a)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = a.head_dim, HE = a.heads * E, at = head_here(a.T * HE, E), column = at % HE;
    if (at == a.T * HE)
        return;
    float squares = 0;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float u = a.k[at + e] * a.scale[column + e];
        squares = fmaf(u, u, squares);
    }
    const float inverse = 1.0f / fmaxf(sqrtf(warp_sum(squares)), REMOVAL_LEAST);
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float k = a.k[at + e], v = a.v[at + e], rate = a.rate[at + e];
        const float kappa = k * a.scale[column + e] * inverse;
        a.a[at + e] = -kappa;
        a.b[at + e] = kappa * rate;
        a.to_k[at + e] = k * fmaf(rate - 1.0f, a.key_rate[column + e], 1.0f);
        a.to_v[at + e] = a.first ? fmaf(a.first[at + e] - v, a.share[at + e], v) : v;
    }
}

/* Warp w of block i owns head HEAD_WARPS i + w of the rows' heads. */
static __global__ void __launch_bounds__(THREADS) out_heads(struct heads_out a)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = a.head_dim, HE = a.heads * E, at = head_here(a.T * HE, E), column = at % HE;
    if (at == a.T * HE)
        return;
    const bool adds = a.weight != NULL;
    float sum = 0, squares = 0, bonus = 0;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        sum += a.o[at + e];
        if (adds)
            bonus = fmaf(a.r[at + e] * a.k[at + e], a.weight[column + e], bonus);
    }
    const float mean = warp_sum(sum) / (float)E;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float far = a.o[at + e] - mean;
        squares = fmaf(far, far, squares);
    }
    const float scale = 1.0f / sqrtf(warp_sum(squares) / (float)E + (float)HEADS_EPS);
    bonus = warp_sum(bonus);
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float g = a.gate[at + e];
        float y = fmaf((a.o[at + e] - mean) * scale, a.gain[column + e], a.bias[column + e]);
        if (adds)
            y = fmaf(bonus, a.v[at + e], y);
        a.y[at + e] = y * (adds ? g : g * logistic(g));
    }
}

void cuda_shift(struct backend *b, const struct shift *a)
{
    launch(b, shift_columns, dim3(blocks_of(a->D, THREADS), (unsigned)a->n_seqs), dim3(THREADS), 0,
           *a);
}

void cuda_squash(struct backend *b, const struct squash *a)
{
    launch(b, squash_values, dim3(blocks_of(a->T * a->n, THREADS)), dim3(THREADS), 0, *a);
}

void cuda_removal(struct backend *b, const struct removal *a)
{
    launch(b, removal_heads, dim3(blocks_of(a->T * a->heads, HEAD_WARPS)), dim3(THREADS), 0, *a);
}

void cuda_heads_out(struct backend *b, const struct heads_out *a)
{
    launch(b, out_heads, dim3(blocks_of(a->T * a->heads, HEAD_WARPS)), dim3(THREADS), 0, *a);
}
