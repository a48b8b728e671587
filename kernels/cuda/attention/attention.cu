/* attention.cu - y = softmax(q k^T / sqrt(E) + mask) v: chooses the kernel. With bf16 activations
 * and a bf16 cache attention runs on the matrix units (attention_tile.cuh): few queries of a key
 * head by attention_few.cu, many by attention_many(). attention_exact.cu takes fp32 activations,
 * fp32 caches, windows, and head dims that the tiles do not take.
 *
 * The shape of a launch depends only on the bounds in struct attn; the device reads rows, lengths
 * and slots. So a recorded pass can be replayed with other lengths. */
#include <assert.h>
#include <math.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/cuda.h"

/* If there is no memory for the counters, lists of up to 16 queries are not split, and few.cu is
 * not used. */
void cuda_attention_open(struct backend *backend)
{
    struct device *device = device_of(backend);
    size_t lists = split_lists_most(device->sms), sms = (size_t)device->sms;
    size_t bytes = (lists > sms ? lists : sms) * sizeof *device->arrived;
    if (!CHECK_MEMORY(cudaMalloc((void **)&device->arrived, bytes))) {
        device->arrived = NULL;
        return;
    }
    CHECK(cudaMemset(device->arrived, 0, bytes));
    CHECK(cudaDeviceSynchronize()); /* the stream does not wait for it */
}

void cuda_attention_close(struct backend *backend)
{
    CHECK(cudaFree(device_of(backend)->arrived));
}

template <bool FULL>
static void attention_many(struct backend *backend, const struct tile_job *j,
                           const struct attention_plan *plan)
{
    if (plan->padded == 64)
        plan->queries == 64 ? tile_launch<tile_shape<64, 1, 4, 2, FULL>>(backend, j, plan)
                            : tile_launch<tile_shape<64, 2, 4, 2, FULL>>(backend, j, plan);
    else if (plan->queries == 64)
        tile_launch<tile_shape<128, 1, 4, 1, FULL>>(backend, j, plan);
    else
        plan->stages == 2 ? tile_launch<tile_shape<128, 2, 4, 2, FULL>>(backend, j, plan)
                          : tile_launch<tile_shape<128, 2, 4, 1, FULL>>(backend, j, plan);
}

/* 1 if the tiled kernel takes this call. Its 16-byte copies need heads of whole chunks and aligned
 * addresses. */
static bool tiles_take(const struct backend *backend, const struct attn *attention)
{
    uintptr_t addresses = (uintptr_t)attention->q | (uintptr_t)attention->y |
                          (uintptr_t)attention->kv.k | (uintptr_t)attention->kv.v;
    return backend->act == DTYPE_BF16 && attention->kv.dtype == DTYPE_BF16 &&
           attention->head_dim % TILE_CHUNK == 0 && attention->head_dim <= TILE_E_MAX &&
           addresses % 16 == 0 && !attention->window;
}

void cuda_attention(struct backend *backend, const struct attn *attention, void *work)
{
    struct range here("attention");
    if (!attention->T || !attention->n_seqs)
        return;
    assert(attention->heads % attention->kv_heads == 0 &&
           attention->n_seqs * attention->max_rows >= attention->T);
    if (attention->dense) {
        attention_dense(backend, attention, work);
        return;
    }
    if (!tiles_take(backend, attention)) {
        attention_exact(backend, attention);
        return;
    }
    const struct device *device = device_of(backend);
    struct attention_plan plan = attention_plan_of(attention->max_rows, attention->n_seqs,
                                                   attention->max_slots, attention->heads,
                                                   attention->kv_heads, attention->head_dim,
                                                   attention->mask, device->sms,
                                                   device->shared_max);
    if (split_joins(plan.queries) && !device->arrived)
        plan.splits = 1;
    struct tile_job j = {*attention, (float)(M_LOG2E / sqrt((double)attention->head_dim)),
                         plan.tiles, plan.splits, (float *)work, device->arrived};
    if (plan.queries <= 32)
        attention_few(backend, &j, &plan);
    else
        plan.full ? attention_many<true>(backend, &j, &plan)
                  : attention_many<false>(backend, &j, &plan);
    if (plan.splits > 1 && !split_joins(plan.queries))
        attention_few_combine(backend, &j, &plan);
}

size_t cuda_attention_work(const struct backend *backend, size_t T, size_t n_seqs, size_t max_slots,
                           size_t heads, size_t kv_heads, size_t head_dim, size_t dense)
{
    (void)n_seqs, (void)kv_heads;
    if (dense)
        return attention_dense_work(T, max_slots, dense);
    size_t parts = parts_most(T, max_slots, heads, device_of(backend)->sms);
    return parts * (head_dim + 2) * sizeof(float);
}
