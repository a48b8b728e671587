/* heads.cu - the steps of some networks between the products of q, k, v and the rotation, head by
 * head: a bias is added, and each head is normed by itself. Then the head is rotated and stored
 * where attention reads it.
 *
 * A warp owns one head of one row; its lane l owns the pairs l, l + 32 .., which RoPE rotates. So
 * heads stay in place, and only the norm needs a sum: a lane adds its own values in ascending
 * order, then warp_sum. Each value is rounded to `act` between two steps, as models do in bf16. */
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

/* The norm's factor for a head, the same in every lane. */
template <class A>
DEVICE float head_scale(const A *x, const float *bias, size_t half, float eps)
{
    float sum = 0;
    for (size_t j = threadIdx.x % WARP; j < half; j += WARP) {
        float u = biased(x[j], bias, j), v = biased(x[j + half], bias, j + half);
        sum += u * u;
        sum += v * v;
    }
    return 1 / sqrtf(warp_sum(sum) / (float)(2 * half) + eps);
}

/* One head of q or k; `to` may be x. */
template <class A, class C>
DEVICE void turn_head(C *to, const A *x, const float *bias, const float *gain, const float *table,
                      size_t half, float eps)
{
    float scale = gain ? head_scale(x, bias, half, eps) : 1;
    for (size_t j = threadIdx.x % WARP; j < half; j += WARP) {
        float u = biased(x[j], bias, j), v = biased(x[j + half], bias, j + half);
        if (gain) {
            u = act_rounded<A>(act_rounded<A>(u * scale) * gain[j]);
            v = act_rounded<A>(act_rounded<A>(v * scale) * gain[j + half]);
        }
        act_put(to + j, act_rounded<A>(u * table[j] - v * table[half + j]));
        act_put(to + j + half, act_rounded<A>(v * table[j] + u * table[half + j]));
    }
}

/* Block (t, i) owns heads 8 i .. of row t, counted over q, k and v. */
template <class A, class C>
static __global__ void __launch_bounds__(HEAD_WARPS *WARP) head_rows(struct heads<A, C> r)
{
    let_next_start();
    wait_for_inputs();
    size_t t = blockIdx.x, h = (size_t)blockIdx.y * HEAD_WARPS + threadIdx.x / WARP;
    size_t E = 2 * r.half, at = (r.slot ? (size_t)r.slot[t] : t) * r.kv;
    const float *table = r.table + t * E, *none = nullptr;
    if (h < r.n) {
        A *q = r.q + (t * r.n + h) * E;
        turn_head(q, q, r.bias[0] ? r.bias[0] + h * E : none, r.gain[0], table, r.half, r.eps);
    } else if (h < r.n + r.kv) {
        h -= r.n;
        turn_head(r.key + (at + h) * E, r.k + (t * r.kv + h) * E,
                  r.bias[1] ? r.bias[1] + h * E : none, r.gain[1], table, r.half, r.eps);
    } else if (h < r.n + 2 * r.kv) {
        h -= r.n + r.kv;
        const A *v = r.v + (t * r.kv + h) * E;
        for (size_t j = threadIdx.x % WARP; j < E; j += WARP)
            act_put(r.value + (at + h) * E + j,
                    biased(v[j], r.bias[2] ? r.bias[2] + h * E : none, j));
    }
}

template <class A, class C>
static void head_rows_as(struct backend *b, const struct qkv *a, const act *k, const act *v,
                         size_t T)
{
    struct heads<A, C> r = {{a->bias[0], a->bias[1], a->bias[2]},
                            {a->head_gain[0], a->head_gain[1]},
                            a->table,
                            (A *)a->q,
                            (const A *)k,
                            (const A *)v,
                            (C *)a->to.k,
                            (C *)a->to.v,
                            a->slot,
                            a->heads,
                            a->kv_heads,
                            a->head_dim / 2,
                            (float)a->in.eps};
    launch(b, head_rows<A, C>, dim3((unsigned)T, blocks_of(r.n + 2 * r.kv, HEAD_WARPS)),
           dim3(HEAD_WARPS * WARP), 0, r);
}

void cuda_head_rows(struct backend *b, const struct qkv *a, const act *k, const act *v, size_t T)
{
    if (b->act == DTYPE_F32 && a->to.dtype == DTYPE_F32)
        head_rows_as<float, float>(b, a, k, v, T);
    else if (b->act == DTYPE_F32)
        head_rows_as<float, uint16_t>(b, a, k, v, T);
    else if (a->to.dtype == DTYPE_F32)
        head_rows_as<uint16_t, float>(b, a, k, v, T);
    else
        head_rows_as<uint16_t, uint16_t>(b, a, k, v, T);
}
