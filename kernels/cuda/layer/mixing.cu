/* mixing.cu - the operations around time mixing on the device (kernels/mixing.h). Each operation is
 * one kernel; the shift reads a row once for all its mixtures. A warp sums over a head. */
#include "kernels/mixing.h"

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"

enum { THREADS = 256, HEAD_WARPS = THREADS / WARP };

/* Thread (d, seq) owns column d of the sequence. It goes row by row and keeps the value of the row
 * before in a register. */
static __global__ void __launch_bounds__(THREADS) shift_columns(struct shift shift)
{
    let_next_start();
    wait_for_inputs();
    const struct attn_seq sequence = shift.seqs[blockIdx.y];
    const size_t column = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= shift.D)
        return;
    float *last = shift.last ? shift.last + (size_t)shift.at[blockIdx.y] * shift.D + column : NULL;
    float old = last ? *last : 0.0f;
    for (size_t row = (size_t)sequence.row_begin, end = row + (size_t)sequence.rows; row < end;
         row++) {
        const float x = shift.x[row * shift.D + column];
        for (size_t i = 0; i < shift.n; i++) {
            const float m = shift.share[i][column] +
                            (shift.more[i] ? shift.more[i][row * shift.D + column] : 0.0f);
            shift.to[i][row * shift.D + column] = fmaf(old - x, m, x);
        }
        old = x;
    }
    if (last && shift.keep)
        *last = old;
}

DEVICE float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* Thread i owns value i. */
static __global__ void __launch_bounds__(THREADS) squash_values(struct squash squash)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= squash.T * squash.n)
        return;
    const float x = squash.x[i] + (squash.base ? squash.base[i % squash.n] : 0.0f);
    squash.x[i] = squash.by == SQUASH_TANH       ? tanhf(x)
                  : squash.by == SQUASH_LOGISTIC ? logistic(x)
                  : squash.by == SQUASH_DECAY6   ? -expf(x)
                                                 : -SQUASH_SLOWEST * logistic(x);
}

/* The index of the first value of this warp's head in all rows, which have n values; n if there is
 * no such head. */
DEVICE size_t head_here(size_t n, size_t E)
{
    const size_t head = (size_t)blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    return head * E < n ? head * E : n;
}

/* Warp w of block i owns head HEAD_WARPS i + w of the rows' heads. */
static __global__ void __launch_bounds__(THREADS) removal_heads(struct removal removal)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = removal.head_dim, HE = removal.heads * E, at = head_here(removal.T * HE, E),
                 column = at % HE;
    if (at == removal.T * HE)
        return;
    float squares = 0;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float up = removal.k[at + e] * removal.scale[column + e];
        squares = fmaf(up, up, squares);
    }
    const float inverse = 1.0f / fmaxf(sqrtf(warp_sum(squares)), REMOVAL_LEAST);
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float k = removal.k[at + e], value = removal.v[at + e], rate = removal.rate[at + e];
        const float kappa = k * removal.scale[column + e] * inverse;
        removal.a[at + e] = -kappa;
        removal.b[at + e] = kappa * rate;
        removal.to_k[at + e] = k * fmaf(rate - 1.0f, removal.key_rate[column + e], 1.0f);
        removal.to_v[at + e] = removal.first ? fmaf(removal.first[at + e] - value,
                                                    removal.share[at + e], value)
                                             : value;
    }
}

/* Warp w of block i owns head HEAD_WARPS i + w of the rows' heads. */
static __global__ void __launch_bounds__(THREADS) out_heads(struct heads_out heads)
{
    let_next_start();
    wait_for_inputs();
    const size_t E = heads.head_dim, HE = heads.heads * E, at = head_here(heads.T * HE, E),
                 column = at % HE;
    if (at == heads.T * HE)
        return;
    const bool adds = heads.weight != NULL;
    float sum = 0, squares = 0, bonus = 0;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        sum += heads.o[at + e];
        if (adds)
            bonus = fmaf(heads.r[at + e] * heads.k[at + e], heads.weight[column + e], bonus);
    }
    const float mean = warp_sum(sum) / (float)E;
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float far = heads.o[at + e] - mean;
        squares = fmaf(far, far, squares);
    }
    const float scale = 1.0f / sqrtf(warp_sum(squares) / (float)E + (float)HEADS_EPS);
    bonus = warp_sum(bonus);
    for (size_t e = threadIdx.x % WARP; e < E; e += WARP) {
        const float gate = heads.gate[at + e];
        float y = fmaf((heads.o[at + e] - mean) * scale, heads.gain[column + e],
                       heads.bias[column + e]);
        if (adds)
            y = fmaf(bonus, heads.v[at + e], y);
        heads.y[at + e] = y * (adds ? gate : gate * logistic(gate));
    }
}

void cuda_shift(struct backend *backend, const struct shift *shift)
{
    launch(backend, shift_columns, dim3(blocks_of(shift->D, THREADS), (unsigned)shift->n_seqs),
           dim3(THREADS), 0, *shift);
}

void cuda_squash(struct backend *backend, const struct squash *squash)
{
    launch(backend, squash_values, dim3(blocks_of(squash->T * squash->n, THREADS)), dim3(THREADS),
           0, *squash);
}

void cuda_removal(struct backend *backend, const struct removal *removal)
{
    launch(backend, removal_heads, dim3(blocks_of(removal->T * removal->heads, HEAD_WARPS)),
           dim3(THREADS), 0, *removal);
}

void cuda_heads_out(struct backend *backend, const struct heads_out *heads)
{
    launch(backend, out_heads, dim3(blocks_of(heads->T * heads->heads, HEAD_WARPS)), dim3(THREADS),
           0, *heads);
}
