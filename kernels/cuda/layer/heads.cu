/* heads.cu - the steps that some networks have between the products of q, k, v and the rotation,
 * head by head: a bias is added, and the head is normalized. Then the head is rotated and stored
 * where attention reads it.
 *
 * A warp owns one head of one row; lane l owns the pairs l, l + 32, ..., which RoPE rotates. So q
 * may be rotated in place, and only the norm needs a sum: a lane adds its own values in ascending
 * order, then warp_sum() adds the lanes. Each value is rounded to `act` after each step, as bf16
 * models do. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"

enum { HEAD_WARPS = 8 };

/* A: type of activations; C: type of cached values. */
template <class A, class C> struct heads {
    const float *bias[3], *gain[2], *table;
    A *q;
    const A *k, *v; /* [T, K*E] */
    C *key, *value; /* the cache */
    const int32_t *slot;
    size_t n, kv, half;
    float eps;
};

template <class A> DEVICE float biased(A x, const float *bias, size_t i)
{
    return bias ? act_rounded<A>(act_float(x) + bias[i]) : act_float(x);
}

/* The factor of the norm of a head, returned to every lane. */
template <class A>
DEVICE float head_scale(const A *x, const float *bias, size_t half, float eps)
{
    float sum = 0;
    for (size_t j = threadIdx.x % WARP; j < half; j += WARP) {
        float up = biased(x[j], bias, j), value = biased(x[j + half], bias, j + half);
        sum += up * up;
        sum += value * value;
    }
    return 1 / sqrtf(warp_sum(sum) / (float)(2 * half) + eps);
}

/* Computes one head of q or k; `to` may be x. */
template <class A, class C>
DEVICE void turn_head(C *to, const A *x, const float *bias, const float *gain, const float *table,
                      size_t half, float eps)
{
    float scale = gain ? head_scale(x, bias, half, eps) : 1;
    for (size_t j = threadIdx.x % WARP; j < half; j += WARP) {
        float up = biased(x[j], bias, j), value = biased(x[j + half], bias, j + half);
        if (gain) {
            up = act_rounded<A>(act_rounded<A>(up * scale) * gain[j]);
            value = act_rounded<A>(act_rounded<A>(value * scale) * gain[j + half]);
        }
        act_put(to + j, act_rounded<A>(up * table[j] - value * table[half + j]));
        act_put(to + j + half, act_rounded<A>(value * table[j] + up * table[half + j]));
    }
}

/* Block (t, i) owns heads 8 i .. 8 i + 7 of row t, counted over q, k and v. */
template <class A, class C>
static __global__ void __launch_bounds__(HEAD_WARPS *WARP) head_rows(struct heads<A, C> heads)
{
    let_next_start();
    wait_for_inputs();
    size_t row = blockIdx.x, head = (size_t)blockIdx.y * HEAD_WARPS + threadIdx.x / WARP;
    size_t E = 2 * heads.half, at = (heads.slot ? (size_t)heads.slot[row] : row) * heads.kv;
    const float *table = heads.table + row * E, *none = nullptr;
    if (head < heads.n) {
        A *q = heads.q + (row * heads.n + head) * E;
        turn_head(q, q, heads.bias[0] ? heads.bias[0] + head * E : none, heads.gain[0], table,
                  heads.half, heads.eps);
    } else if (head < heads.n + heads.kv) {
        head -= heads.n;
        turn_head(heads.key + (at + head) * E, heads.k + (row * heads.kv + head) * E,
                  heads.bias[1] ? heads.bias[1] + head * E : none, heads.gain[1], table, heads.half,
                  heads.eps);
    } else if (head < heads.n + 2 * heads.kv) {
        head -= heads.n + heads.kv;
        const A *values = heads.v + (row * heads.kv + head) * E;
        for (size_t j = threadIdx.x % WARP; j < E; j += WARP)
            act_put(heads.value + (at + head) * E + j,
                    biased(values[j], heads.bias[2] ? heads.bias[2] + head * E : none, j));
    }
}

template <class A, class C>
static void head_rows_as(struct backend *backend, const struct qkv *qkv, const act *k, const act *v,
                         size_t T)
{
    struct heads<A, C> heads = {{qkv->bias[0], qkv->bias[1], qkv->bias[2]},
                                {qkv->head_gain[0], qkv->head_gain[1]},
                                qkv->table,
                                (A *)qkv->q,
                                (const A *)k,
                                (const A *)v,
                                (C *)qkv->to.k,
                                (C *)qkv->to.v,
                                qkv->slot,
                                qkv->heads,
                                qkv->kv_heads,
                                qkv->head_dim / 2,
                                (float)qkv->in.eps};
    launch(backend, head_rows<A, C>,
           dim3((unsigned)T, blocks_of(heads.n + 2 * heads.kv, HEAD_WARPS)),
           dim3(HEAD_WARPS * WARP), 0, heads);
}

void cuda_head_rows(struct backend *backend, const struct qkv *qkv, const act *k, const act *v,
                    size_t T)
{
    if (backend->act == DTYPE_F32 && qkv->to.dtype == DTYPE_F32)
        head_rows_as<float, float>(backend, qkv, k, v, T);
    else if (backend->act == DTYPE_F32)
        head_rows_as<float, uint16_t>(backend, qkv, k, v, T);
    else if (qkv->to.dtype == DTYPE_F32)
        head_rows_as<uint16_t, float>(backend, qkv, k, v, T);
    else
        head_rows_as<uint16_t, uint16_t>(backend, qkv, k, v, T);
}
