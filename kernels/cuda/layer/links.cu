/* links.cu - links.h on the device. A block owns a row of the map; its thread i owns the keys i, i
 * + LINK_THREADS, ... of the row. It computes their scores twice: first for the sum of their
 * exponentials, then for the shares. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/runtime.h"
#include "kernels/cuda/values.cuh"

enum { LINK_THREADS = 128 };

/* The largest score so far, and the sum of e^(score - max). */
struct softmax {
    float max, sum;
};

DEVICE struct softmax joined(struct softmax a, struct softmax b)
{
    const float max = fmaxf(a.max, b.max);
    if (max == -INFINITY)
        return a;
    return {max, a.sum * expf(a.max - max) + b.sum * expf(b.max - max)};
}

template <class A> DEVICE float score(const struct links *links, size_t row, size_t head, size_t k)
{
    const size_t E = links->head_dim,
                 at = (k * links->kv_heads + head / (links->heads / links->kv_heads)) * E;
    const A *q = (const A *)links->q + (row * links->heads + head) * E,
            *key = (const A *)links->kv.k + at;
    float dot = 0, x, y;
    for (size_t e = 0; e < E; e++) {
        values_load<1>(&x, q + e);
        values_load<1>(&y, key + e);
        dot = fmaf(x, y, dot);
    }
    return dot / sqrtf((float)E);
}

/* Block t owns row t. */
template <class A>
static __global__ void __launch_bounds__(LINK_THREADS) link_row(const struct links links)
{
    SHARED(struct softmax, all);
    let_next_start();
    wait_for_inputs();
    const size_t row = blockIdx.x;
    const struct attn_seq sequence = *links_seq(&links, row);
    float *map = links.map + row * links.stride;
    for (int32_t j = (int32_t)threadIdx.x; j < sequence.rows && !links.add; j += LINK_THREADS)
        map[j] = 0;
    for (size_t head = 0; head < links.heads; head++) {
        struct softmax mine = {-INFINITY, 0};
        for (int32_t j = (int32_t)threadIdx.x; j < sequence.rows; j += LINK_THREADS)
            mine = joined(mine, {score<A>(&links, row, head, (size_t)(sequence.row_begin + j)), 1});
        __syncthreads();
        all[threadIdx.x] = mine;
        __syncthreads();
        for (uint32_t half = LINK_THREADS / 2; half > 0; half /= 2) {
            if (threadIdx.x < half)
                all[threadIdx.x] = joined(all[threadIdx.x], all[threadIdx.x + half]);
            __syncthreads();
        }
        const float part = (float)(links.share / (double)links.heads) / all[0].sum;
        for (int32_t j = (int32_t)threadIdx.x; j < sequence.rows; j += LINK_THREADS)
            map[j] += part * expf(score<A>(&links, row, head, (size_t)(sequence.row_begin + j)) -
                                  all[0].max);
    }
}

/* Thread t computes mean[t]. */
static __global__ void __launch_bounds__(LINK_THREADS) average_row(const struct links links)
{
    let_next_start();
    wait_for_inputs();
    const size_t at = (size_t)blockIdx.x * LINK_THREADS + threadIdx.x;
    if (at >= links.T)
        return;
    const struct attn_seq sequence = *links_seq(&links, at);
    double sum = 0;
    for (size_t row = (size_t)sequence.row_begin;
         row < (size_t)(sequence.row_begin + sequence.rows); row++)
        sum += (double)links.map[row * links.stride + at - (size_t)sequence.row_begin];
    links.mean[at] = (float)(sum / sequence.rows);
}

void cuda_links(struct backend *backend, const struct links *links)
{
    struct range here("links");
    assert(links->kv.dtype == backend->act);
    launch(backend, backend->act == DTYPE_F32 ? link_row<float> : link_row<uint16_t>,
           dim3((unsigned)links->T), dim3(LINK_THREADS), LINK_THREADS * sizeof(struct softmax),
           *links);
    if (links->mean)
        launch(backend, average_row, dim3(blocks_of(links->T, LINK_THREADS)), dim3(LINK_THREADS), 0,
               *links);
}
