/* mixing_back.cu - gradients of the operations around time mixing on the device (kernels/mixing.h):
 * only gradients of rows. Gradients of a layer's own vectors, which are sums over all rows, are not
 * here. The forward kernels are in mixing.cu; outputs have the same owners as there. */
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

/* Thread d of block (i, seq) owns column d of the sequence, row by row. A row's gradient is
 * complete, and written, when the row behind it is done. */
static __global__ void __launch_bounds__(THREADS) shift_columns_back(struct shift_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct attn_seq s = j.of.seqs[blockIdx.y];
    const size_t d = (size_t)blockIdx.x * THREADS + threadIdx.x, D = j.of.D;
    if (d >= D)
        return;
    const size_t first = (size_t)s.row_begin, end = first + (size_t)s.rows;
    float old = 0, before = 0; /* x of the row before, and its gradient so far */
    for (size_t t = first; t < end; t++) {
        const float x = j.of.x[t * D + d];
        float own = j.dx[t * D + d];
        for (size_t i = 0; i < j.of.n; i++) {
            const float g = j.d[i][t * D + d];
            const float m = j.of.share[i][d] + (j.of.more[i] ? j.of.more[i][t * D + d] : 0.0f);
            own = fmaf(g, 1.0f - m, own);
            before = fmaf(g, m, before);
            if (j.of.more[i])
                j.d[i][t * D + d] = g * (old - x);
        }
        if (t > first)
            j.dx[(t - 1) * D + d] = before;
        before = own;
        old = x;
    }
    if (end > first)
        j.dx[(end - 1) * D + d] = before;
}

void cuda_shift_back(struct backend *b, const struct shift_back *a)
{
    const struct shift *f = a->of;
    struct shift_job j = {*f, {}, a->dx};
    for (size_t i = 0; i < f->n; i++) {
        assert(!a->dshare[i]);
        j.d[i] = a->d[i];
    }
    launch(b, shift_columns_back, dim3(blocks_of(f->D, THREADS), (unsigned)f->n_seqs),
           dim3(THREADS), 0, j);
}

/* ---- functions of low-rank parts ---- */

/* Thread i owns value i. */
static __global__ void __launch_bounds__(THREADS) squash_values_back(struct squash_back a)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= a.T * a.n)
        return;
    const float y = a.y[i];
    a.d[i] *= a.by == SQUASH_TANH       ? 1.0f - y * y
              : a.by == SQUASH_LOGISTIC ? y * (1.0f - y)
              : a.by == SQUASH_DECAY6   ? y
                                        : y * (1.0f + y / SQUASH_SLOWEST);
}

void cuda_squash_back(struct backend *b, const struct squash_back *a)
{
    assert(!a->dbase);
    launch(b, squash_values_back, dim3(blocks_of(a->T * a->n, THREADS)), dim3(THREADS), 0, *a);
}

/* ---- heads ---- */

/* The first value of this warp's head in a row; n behind the last head. */
DEVICE size_t head_here(size_t n, size_t E)
{
    const size_t head = (size_t)blockIdx.x * HEAD_WARPS + threadIdx.x / WARP;
    return head * E < n ? head * E : n;
}

struct out_job {
    struct heads_out of;
    float *dy, *d_o, *dgate;
};

/* Warp w of block i owns head HEAD_WARPS i + w of the rows' heads: y = n gate(g),
 * n = gain x + bias + c v, x = (o - mean) scale; do = scale (dx - mean(dx) - x mean(dx x)) with
 * dx = gain dn. */
static __global__ void __launch_bounds__(THREADS) out_heads_back(struct out_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct heads_out &f = j.of;
    const size_t E = f.head_dim, HE = f.heads * E, at = head_here(f.T * HE, E), column = at % HE;
    const unsigned lane = threadIdx.x % WARP;
    if (at == f.T * HE)
        return;
    const bool adds = f.weight != NULL;
    float sum = 0, squares = 0, bonus = 0, pull = 0, dot = 0;
    for (size_t e = lane; e < E; e += WARP) {
        sum += f.o[at + e];
        if (adds)
            bonus = fmaf(f.r[at + e] * f.k[at + e], f.weight[column + e], bonus);
    }
    const float mean = warp_sum(sum) / (float)E;
    for (size_t e = lane; e < E; e += WARP) {
        const float far = f.o[at + e] - mean;
        squares = fmaf(far, far, squares);
    }
    const float scale = 1.0f / sqrtf(warp_sum(squares) / (float)E + (float)HEADS_EPS);
    bonus = warp_sum(bonus);
    for (size_t e = lane; e < E; e += WARP) {
        const float x = (f.o[at + e] - mean) * scale, g = f.gate[at + e], dy = j.dy[at + e];
        float n = fmaf(x, f.gain[column + e], f.bias[column + e]);
        if (adds)
            n = fmaf(bonus, f.v[at + e], n);
        const float s = adds ? 1.0f : 1.0f / (1.0f + expf(-g)), dn = dy * (adds ? g : g * s);
        j.dgate[at + e] = dy * n * (adds ? 1.0f : s * (1.0f + g * (1.0f - s)));
        j.dy[at + e] = dn;
        pull += dn * f.gain[column + e];
        dot = fmaf(dn * f.gain[column + e], x, dot);
    }
    pull = warp_sum(pull) / (float)E;
    dot = warp_sum(dot) / (float)E;
    for (size_t e = lane; e < E; e += WARP) { /* reads back its own dy */
        const float x = (f.o[at + e] - mean) * scale;
        j.d_o[at + e] = scale * (j.dy[at + e] * f.gain[column + e] - pull - x * dot);
    }
}

void cuda_heads_out_back(struct backend *b, const struct heads_out_back *a)
{
    const struct out_job j = {*a->of, a->dy, a->d_o, a->dgate};
    assert(!a->dgain && !a->dbias);
    launch(b, out_heads_back, dim3(blocks_of(j.of.T * j.of.heads, HEAD_WARPS)), dim3(THREADS), 0,
           j);
}

struct removal_job {
    struct removal of;
    struct removal_back a;
};

/* Warp w of block i owns the same head: the bonus c v, c = sum r k weight, then the removed and
 * added keys, kappa = u / |u|, u = k scale. */
static __global__ void __launch_bounds__(THREADS) removal_heads_back(struct removal_job j)
{
    let_next_start();
    wait_for_inputs();
    const struct removal &f = j.of;
    const struct removal_back &a = j.a;
    const size_t E = f.head_dim, HE = f.heads * E, at = head_here(f.T * HE, E), column = at % HE;
    const unsigned lane = threadIdx.x % WARP;
    if (at == f.T * HE)
        return;
    float c = 0, dc = 0, squares = 0, dot = 0;
    for (size_t e = lane; e < E; e += WARP) {
        const float u = f.k[at + e] * f.scale[column + e];
        c = fmaf(a.r[at + e] * a.k[at + e], a.weight[column + e], c);
        dc = fmaf(a.dn[at + e], a.v[at + e], dc);
        squares = fmaf(u, u, squares);
        dot = fmaf(u, fmaf(a.db[at + e], f.rate[at + e], -a.da[at + e]), dot);
    }
    c = warp_sum(c);
    dc = warp_sum(dc);
    const float inverse = 1.0f / fmaxf(sqrtf(warp_sum(squares)), REMOVAL_LEAST);
    dot = warp_sum(dot) * inverse;
    for (size_t e = lane; e < E; e += WARP) {
        const size_t i = at + e;
        const float k = f.k[i], rate = f.rate[i], scale = f.scale[column + e];
        const float by = f.key_rate[column + e], weight = a.weight[column + e];
        const float kappa = k * scale * inverse, dkappa = fmaf(a.db[i], rate, -a.da[i]);
        const float du = (dkappa - kappa * dot) * inverse;
        const float dk = a.dk[i] + dc * a.r[i] * weight, dv = fmaf(a.dn[i], c, a.dv[i]);
        a.dr[i] += dc * a.k[i] * weight;
        a.drate[i] = a.db[i] * kappa + dk * k * by;
        a.dk[i] = du * scale + dk * fmaf(rate - 1.0f, by, 1.0f);
        if (f.first) {
            a.dshare[i] = dv * (f.first[i] - f.v[i]);
            a.dfirst[i] += dv * f.share[i];
            a.dv[i] = dv * (1.0f - f.share[i]);
        } else {
            a.dv[i] = dv + (a.dfirst ? a.dfirst[i] : 0.0f);
        }
    }
}

void cuda_removal_back(struct backend *b, const struct removal_back *a)
{
    const struct removal_job j = {*a->of, *a};
    assert(!a->dscale && !a->dkey_rate && !a->dweight);
    launch(b, removal_heads_back, dim3(blocks_of(j.of.T * j.of.heads, HEAD_WARPS)), dim3(THREADS),
           0, j);
}
