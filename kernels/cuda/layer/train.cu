/* train.cu - training operations on rows (kernels/train.h): gradients of rotation, norm, gate,
 * embedding and loss; sums of gradients, and the update of weights. One thread or block computes
 * each output and each sum has one order, so fits and trainings repeat bit for bit. */
#include <assert.h>
#include <math.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"

enum { THREADS = 256 };

/* ---- rotation ---- */

/* Thread i owns pair i, counted over all heads and rows. */
static __global__ void __launch_bounds__(THREADS)
rotate_pairs(float *x, const float *table, size_t pairs, size_t of_row, size_t half, float sign)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, j = i % half;
    if (i >= pairs)
        return;
    const float *t = table + i / of_row * 2 * half;
    float *p = x + i / half * 2 * half + j;
    const float up = p[0], value = p[half], c = t[j], s = sign * t[half + j];
    p[0] = up * c - value * s;
    p[half] = value * c + up * s;
}

void cuda_rope(struct backend *backend, float *x, const float *table, size_t T, size_t heads,
               size_t E, int sign)
{
    const size_t half = E / 2, pairs = T * heads * half;
    assert(backend->act == DTYPE_F32);
    if (pairs)
        launch(backend, rotate_pairs, dim3(blocks_of(pairs, THREADS)), dim3(THREADS), 0, x, table,
               pairs, heads * half, half, (float)sign);
}

/* ---- norm ---- */

/* Block t owns row t: dx_d += s g_d dy_d - x_d s^3 mean_j(g_j dy_j x_j), s = (mean x^2 + eps)^-1/2.
 * `gate` is the gain g. scale: output [T], s of each row; or NULL. */
static __global__ void __launch_bounds__(THREADS)
norm_back(float *dx, const float *dy, const float *x, const float *gate, size_t D, float eps,
          float *scale)
{
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    const size_t at = (size_t)blockIdx.x * D;
    float squares = 0, dot = 0;
    for (size_t column = threadIdx.x; column < D; column += THREADS) {
        const float value = x[at + column];
        squares = fmaf(value, value, squares);
        dot = fmaf(gate[column] * dy[at + column], value, dot);
    }
    squares = block_sum(squares, shared);
    dot = block_sum(dot, shared + THREADS / WARP);
    const float s = 1.0f / sqrtf(squares / (float)D + eps);
    const float pull = s * s * s * (dot / (float)D);
    for (size_t column = threadIdx.x; column < D; column += THREADS)
        dx[at + column] += s * gate[column] * dy[at + column] - pull * x[at + column];
    if (scale && threadIdx.x == 0)
        scale[blockIdx.x] = s;
}

/* A block owns COLUMNS values of dg. A thread sums every SLICES-th row of one column; then one
 * thread of each column adds these sums in order. */
enum { COLUMNS = 8, SLICES = THREADS / COLUMNS };
static __global__ void __launch_bounds__(THREADS)
gain_back(float *dg, const float *dy, const float *x, const float *scale, size_t T, size_t D)
{
    SHARED(float, sums);
    let_next_start();
    wait_for_inputs();
    const size_t column = (size_t)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    float sum = 0;
#pragma unroll 8
    for (size_t row = threadIdx.x / COLUMNS; column < D && row < T; row += SLICES)
        sum = fmaf(dy[row * D + column] * x[row * D + column], scale[row], sum);
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x >= COLUMNS || column >= D)
        return;
    for (unsigned i = 1; i < SLICES; i++)
        sum += sums[i * COLUMNS + threadIdx.x];
    dg[column] += sum;
}

void cuda_rmsnorm_back(struct backend *backend, float *dx, float *dg, const float *dy,
                       const float *x, const float *gate, size_t T, size_t D, double eps,
                       float *work)
{
    if (!T)
        return;
    launch(backend, norm_back, dim3((unsigned)T), dim3(THREADS), 2 * THREADS / WARP * sizeof(float),
           dx, dy, x, gate, D, (float)eps, dg ? work : nullptr);
    if (dg)
        launch(backend, gain_back, dim3(blocks_of(D, COLUMNS)), dim3(THREADS),
               THREADS * sizeof(float), dg, dy, x, work, T, D);
}

/* ---- gate ---- */

/* Thread i owns value i: gradients of y = g s(g) u, s the logistic function. */
static __global__ void __launch_bounds__(THREADS)
gate_back(float *dgate, float *dup, const float *dy, const float *gate, const float *up, size_t n)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    const float gain = gate[i], u = up[i], d = dy[i], s = 1.0f / (1.0f + expf(-gain));
    dgate[i] = d * u * s * (1.0f + gain * (1.0f - s));
    dup[i] = d * gain * s;
}

void cuda_swiglu_back(struct backend *backend, float *dgate, float *dup, const float *dy,
                      const float *gate, const float *up, size_t n)
{
    if (n)
        launch(backend, gate_back, dim3(blocks_of(n, THREADS)), dim3(THREADS), 0, dgate, dup, dy,
               gate, up, n);
}

/* ---- spread ---- */

/* Thread (t, d) owns y[t, d]. */
static __global__ void __launch_bounds__(THREADS)
spread_rows(float *y, const float *x, const int32_t *place, size_t D)
{
    let_next_start();
    wait_for_inputs();
    const size_t row = blockIdx.x, column = (size_t)blockIdx.y * THREADS + threadIdx.x;
    const int32_t from = place[row];
    if (column < D)
        y[row * D + column] = from < 0 ? 0.0f : x[(size_t)from * D + column];
}

void cuda_spread(struct backend *backend, float *y, const float *x, const int32_t *place, size_t T,
                 size_t D)
{
    if (T)
        launch(backend, spread_rows, dim3((unsigned)T, blocks_of(D, THREADS)), dim3(THREADS), 0, y,
               x, place, D);
}

/* ---- embedding ---- */

/* Block (v, i) owns THREADS columns of row v of dw. It finds the rows of dy with token v, searching
 * THREADS rows at a time, and adds these rows in ascending order. */
static __global__ void __launch_bounds__(THREADS)
embed_rows(float *dw, const float *dy, const int32_t *token, size_t T, size_t D)
{
    SHARED(int, shared);
    let_next_start();
    wait_for_inputs();
    int *counts = shared, *list = shared + THREADS / WARP;
    const size_t column = (size_t)blockIdx.y * THREADS + threadIdx.x;
    float sum = 0;
    int any = 0;
    for (size_t first = 0; first < T; first += THREADS) {
        int all;
        const size_t row = first + threadIdx.x;
        const bool own = row < T && token[row] == (int32_t)blockIdx.x;
        const int below = block_below(own, &all, counts);
        if (own)
            list[below] = (int)row;
        __syncthreads();
#pragma unroll 8
        for (int i = 0; column < D && i < all; i++)
            sum += dy[(size_t)list[i] * D + column];
        any |= all;
    }
    if (any && column < D)
        dw[(size_t)blockIdx.x * D + column] += sum;
}

void cuda_embed_back(struct backend *backend, float *dw, const float *dy, const int32_t *token,
                     size_t T, size_t V, size_t D)
{
    if (T)
        launch(backend, embed_rows, dim3((unsigned)V, blocks_of(D, THREADS)), dim3(THREADS),
               (THREADS / WARP + THREADS) * sizeof(int), dw, dy, token, T, D);
}

/* ---- loss ---- */

/* Sum over the block, returned to every thread. shared: one double a thread. */
DEVICE double tree_sum(double x, double *shared)
{
    shared[threadIdx.x] = x;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            shared[threadIdx.x] += shared[threadIdx.x + half];
        __syncthreads();
    }
    return shared[0];
}

struct loss_room {
    double sums[THREADS];
    float most[THREADS / WARP];
};

/* Block t owns row t of the logits; a thread owns every 256th logit. The row is read three times
 * and written once. */
static __global__ void __launch_bounds__(THREADS)
loss_rows(float *logits, const int32_t *target, const float *weight, size_t V, double *loss)
{
    SHARED(struct loss_room, room);
    let_next_start();
    wait_for_inputs();
    float *l = logits + (size_t)blockIdx.x * V;
    const float w = weight[blockIdx.x];
    const size_t aim = (size_t)target[blockIdx.x];
    if (w == 0) {
        for (size_t id = threadIdx.x; id < V; id += THREADS)
            l[id] = 0;
        if (threadIdx.x == 0)
            loss[blockIdx.x] = 0;
        return;
    }
    float most = -INFINITY;
    for (size_t id = threadIdx.x; id < V; id += THREADS)
        most = fmaxf(most, l[id]);
    most = block_max(most, room->most);
    double sum = 0;
    for (size_t id = threadIdx.x; id < V; id += THREADS)
        sum += (double)expf(l[id] - most);
    const float at = l[aim]; /* before any thread writes */
    sum = tree_sum(sum, room->sums);
    if (threadIdx.x == 0)
        loss[blockIdx.x] = (double)w * (log(sum) + (double)most - (double)at);
    const float scale = (float)((double)w / sum);
    for (size_t id = threadIdx.x; id < V; id += THREADS)
        l[id] = expf(l[id] - most) * scale - (id == aim ? w : 0.0f);
}

void cuda_cross_entropy(struct backend *backend, float *logits, const int32_t *target,
                        const float *weight, size_t T, size_t V, double *loss)
{
    struct range here("loss");
    if (T)
        launch(backend, loss_rows, dim3((unsigned)T), dim3(THREADS), sizeof(struct loss_room),
               logits, target, weight, V, loss);
}

/* ---- sums and the update ---- */

static __global__ void __launch_bounds__(THREADS) add_values(float *y, const float *x, size_t n)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i < n)
        y[i] += x[i];
}

void cuda_add(struct backend *backend, float *y, const float *x, size_t n)
{
    if (n)
        launch(backend, add_values, dim3(blocks_of(n, THREADS)), dim3(THREADS), 0, y, x, n);
}

/* Block p owns part p of the values. */
static __global__ void __launch_bounds__(THREADS)
square_parts(const float *x, size_t n, double *part)
{
    SHARED(double, shared);
    let_next_start();
    wait_for_inputs();
    const size_t last = n * (blockIdx.x + 1) / SQUARES_PARTS;
    double sum = 0;
#pragma unroll 8
    for (size_t i = n * blockIdx.x / SQUARES_PARTS + threadIdx.x; i < last; i += THREADS)
        sum += (double)x[i] * (double)x[i];
    sum = tree_sum(sum, shared);
    if (threadIdx.x == 0)
        part[blockIdx.x] = sum;
}

double cuda_squares(struct backend *backend, const float *x, size_t n, double *work)
{
    double part[SQUARES_PARTS], all = 0;
    launch(backend, square_parts, dim3(SQUARES_PARTS), dim3(THREADS), THREADS * sizeof(double), x,
           n, work);
    cuda_read(backend, part, work, sizeof part);
    for (double x_of_part : part)
        all += x_of_part;
    return all;
}

struct update {
    float *w, *m, *v;
    const float *g;
    size_t n;
    float beta1, beta2, scale, rate, eps, keep, fix2;
};

static __global__ void __launch_bounds__(THREADS) update_values(struct update update)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= update.n)
        return;
    const float gate = update.g[i] * update.scale;
    const float m = update.m[i] = update.beta1 * update.m[i] + (1 - update.beta1) * gate;
    const float value = update.v[i] = update.beta2 * update.v[i] + (1 - update.beta2) * gate * gate;
    update.w[i] = update.w[i] * update.keep -
                  update.rate * m / (sqrtf(value) * update.fix2 + update.eps);
}

void cuda_adamw(struct backend *backend, float *w, float *m, float *value, const float *gate,
                size_t n, const struct adamw *adamw)
{
    const double fix1 = 1 - pow(adamw->beta1, (double)adamw->step), fix2 = 1 - pow(adamw->beta2,
                                                                          (double)adamw->step);
    const struct update update = {w, m, value, gate, n, (float)adamw->beta1, (float)adamw->beta2,
                                  (float)adamw->grad_scale, (float)(adamw->rate / fix1),
                                  (float)adamw->eps, (float)(1 - adamw->rate * adamw->decay),
                                  (float)(1 / sqrt(fix2))};
    if (!n)
        return;
    launch(backend, update_values, dim3(blocks_of(n, THREADS)), dim3(THREADS), 0, update);
    device_of(backend)->in_turn = 1;
}
