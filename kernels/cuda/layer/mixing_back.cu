/* mixing_back.cu - gradients of the operations around time mixing on the device (kernels/mixing.h).
 * It has only gradients of rows, no gradients of a layer's own vectors, which are sums over all
 * rows. The forward kernels are in mixing.cu; threads and warps own the values that they own
 * there. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/mixing.h"

enum { THREADS = 256, HEAD_WARPS = THREADS / WARP };

/* ---- the shift of tokens ---- */

struct shift_job {
    struct shift of;
    float *d[MIXING_LANES], *dx;
};

/* Thread (d, seq) owns column d of the sequence, row by row. The gradient of a row is complete, and
 * is written, when the row behind it is done. */
static __global__ void __launch_bounds__(THREADS) shift_columns_back(struct shift_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct attn_seq sequence = j.of.seqs[blockIdx.y];
    const size_t column = (size_t)blockIdx.x * THREADS + threadIdx.x, D = j.of.D;
    if (column >= D)
        return;
    const size_t first = (size_t)sequence.row_begin, end = first + (size_t)sequence.rows;
    float old = 0, before = 0; /* x of the row before, and its gradient so far */
    for (size_t row = first; row < end; row++) {
        const float x = j.of.x[row * D + column];
        float own = j.dx[row * D + column];
        for (size_t i = 0; i < j.of.n; i++) {
            const float gate = j.d[i][row * D + column];
            const float m = j.of.share[i][column] +
                            (j.of.more[i] ? j.of.more[i][row * D + column] : 0.0f);
            own = fmaf(gate, 1.0f - m, own);
            before = fmaf(gate, m, before);
            if (j.of.more[i])
                j.d[i][row * D + column] = gate * (old - x);
        }
        if (row > first)
            j.dx[(row - 1) * D + column] = before;
        before = own;
        old = x;
    }
    if (end > first)
        j.dx[(end - 1) * D + column] = before;
}

void cuda_shift_back(struct backend *backend, const struct shift_back *back)
{
    const struct shift *shift = back->of;
    struct shift_job j = {*shift, {}, back->dx};
    for (size_t i = 0; i < shift->n; i++) {
        assert(!back->dshare[i]);
        j.d[i] = back->d[i];
    }
    launch(backend, shift_columns_back, dim3(blocks_of(shift->D, THREADS), (unsigned)shift->n_seqs),
           dim3(THREADS), 0, j);
}

/* ---- functions of low-rank parts ---- */

/* Thread i owns value i. */
static __global__ void __launch_bounds__(THREADS) squash_values_back(struct squash_back back)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= back.T * back.n)
        return;
    const float y = back.y[i];
    back.d[i] *= back.by == SQUASH_TANH       ? 1.0f - y * y
                 : back.by == SQUASH_LOGISTIC ? y * (1.0f - y)
                 : back.by == SQUASH_DECAY6   ? y
                                              : y * (1.0f + y / SQUASH_SLOWEST);
}

void cuda_squash_back(struct backend *backend, const struct squash_back *back)
{
    assert(!back->dbase);
    launch(backend, squash_values_back, dim3(blocks_of(back->T * back->n, THREADS)), dim3(THREADS),
           0, *back);
}

/* ---- heads ---- */

/* The index of the first value of this warp's head in all rows, which have n values; n if there is
 * no such head. */
DEVICE size_t head_here(size_t n, size_t E)
{
    const size_t head = (size_t)blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    return head * E < n ? head * E : n;
}

struct out_job {
    struct heads_out of;
    float *dy, *d_o, *dgate;
};

/* Warp w of block i owns head HEAD_WARPS i + w of the heads of all rows. y = n f(g), n = gain x +
 * bias + c v, x = (o - mean) scale; f(g) is g with a bonus c v, else silu(g). With dn = dy f(g) and
 * dx = gain dn: do = scale (dx - mean(dx) - x mean(dx x)). */
static __global__ void __launch_bounds__(THREADS) out_heads_back(struct out_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct heads_out &heads = j.of;
    const size_t E = heads.head_dim, HE = heads.heads * E, at = head_here(heads.T * HE, E),
                 column = at % HE;
    const unsigned lane = threadIdx.x % WARP;
    if (at == heads.T * HE)
        return;
    const bool adds = heads.weight != NULL;
    float sum = 0, squares = 0, bonus = 0, pull = 0, dot = 0;
    for (size_t e = lane; e < E; e += WARP) {
        sum += heads.o[at + e];
        if (adds)
            bonus = fmaf(heads.r[at + e] * heads.k[at + e], heads.weight[column + e], bonus);
    }
    const float mean = warp_sum(sum) / (float)E;
    for (size_t e = lane; e < E; e += WARP) {
        const float far = heads.o[at + e] - mean;
        squares = fmaf(far, far, squares);
    }
    const float scale = 1.0f / sqrtf(warp_sum(squares) / (float)E + (float)HEADS_EPS);
    bonus = warp_sum(bonus);
    for (size_t e = lane; e < E; e += WARP) {
        const float x = (heads.o[at + e] - mean) * scale, gate = heads.gate[at + e],
                    dy = j.dy[at + e];
        float n = fmaf(x, heads.gain[column + e], heads.bias[column + e]);
        if (adds)
            n = fmaf(bonus, heads.v[at + e], n);
        const float s = adds ? 1.0f : 1.0f / (1.0f + expf(-gate)),
                    dn = dy * (adds ? gate : gate * s);
        j.dgate[at + e] = dy * n * (adds ? 1.0f : s * (1.0f + gate * (1.0f - s)));
        j.dy[at + e] = dn;
        pull += dn * heads.gain[column + e];
        dot = fmaf(dn * heads.gain[column + e], x, dot);
    }
    pull = warp_sum(pull) / (float)E;
    dot = warp_sum(dot) / (float)E;
    for (size_t e = lane; e < E; e += WARP) { /* each lane reads the values of dy that it wrote */
        const float x = (heads.o[at + e] - mean) * scale;
        j.d_o[at + e] = scale * (j.dy[at + e] * heads.gain[column + e] - pull - x * dot);
    }
}

void cuda_heads_out_back(struct backend *backend, const struct heads_out_back *back)
{
    const struct out_job j = {*back->of, back->dy, back->d_o, back->dgate};
    assert(!back->dgain && !back->dbias);
    launch(backend, out_heads_back, dim3(blocks_of(j.of.T * j.of.heads, HEAD_WARPS)), dim3(THREADS),
           0, j);
}

struct removal_job {
    struct removal of;
    struct removal_back a;
};

/* Warp w of block i owns head HEAD_WARPS i + w of the heads of all rows. It computes the gradients
 * of the bonus c v, c = sum r k weight, then those of a, b, to_k and to_v, with kappa = u / |u|, u
 * = k scale (formulas: kernels/ref/ref_mixing-back.c). */
static __global__ void __launch_bounds__(THREADS) removal_heads_back(struct removal_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct removal &removal = j.of;
    const struct removal_back &back = j.a;
    const size_t E = removal.head_dim, HE = removal.heads * E, at = head_here(removal.T * HE, E),
                 column = at % HE;
    const unsigned lane = threadIdx.x % WARP;
    if (at == removal.T * HE)
        return;
    float c = 0, dc = 0, squares = 0, dot = 0;
    for (size_t e = lane; e < E; e += WARP) {
        const float up = removal.k[at + e] * removal.scale[column + e];
        c = fmaf(back.r[at + e] * back.k[at + e], back.weight[column + e], c);
        dc = fmaf(back.dn[at + e], back.v[at + e], dc);
        squares = fmaf(up, up, squares);
        dot = fmaf(up, fmaf(back.db[at + e], removal.rate[at + e], -back.da[at + e]), dot);
    }
    c = warp_sum(c);
    dc = warp_sum(dc);
    const float inverse = 1.0f / fmaxf(sqrtf(warp_sum(squares)), REMOVAL_LEAST);
    dot = warp_sum(dot) * inverse;
    for (size_t e = lane; e < E; e += WARP) {
        const size_t i = at + e;
        const float k = removal.k[i], rate = removal.rate[i], scale = removal.scale[column + e];
        const float by = removal.key_rate[column + e], weight = back.weight[column + e];
        const float kappa = k * scale * inverse, dkappa = fmaf(back.db[i], rate, -back.da[i]);
        const float du = (dkappa - kappa * dot) * inverse;
        const float dk = back.dk[i] + dc * back.r[i] * weight, dv = fmaf(back.dn[i], c, back.dv[i]);
        back.dr[i] += dc * back.k[i] * weight;
        back.drate[i] = back.db[i] * kappa + dk * k * by;
        back.dk[i] = du * scale + dk * fmaf(rate - 1.0f, by, 1.0f);
        if (removal.first) {
            back.dshare[i] = dv * (removal.first[i] - removal.v[i]);
            back.dfirst[i] += dv * removal.share[i];
            back.dv[i] = dv * (1.0f - removal.share[i]);
        } else {
            back.dv[i] = dv + (back.dfirst ? back.dfirst[i] : 0.0f);
        }
    }
}

void cuda_removal_back(struct backend *backend, const struct removal_back *back)
{
    const struct removal_job j = {*back->of, *back};
    assert(!back->dscale && !back->dkey_rate && !back->dweight);
    launch(backend, removal_heads_back, dim3(blocks_of(j.of.T * j.of.heads, HEAD_WARPS)),
           dim3(THREADS), 0, j);
}
