/* attention.cu - y = softmax(q k^T / sqrt(E) + mask) v: chooses the kernel. bf16 activations and
 * cache run on the matrix units (attention_tile.cuh): few queries a sequence by attention_few.cu,
 * many by attention_many(). fp32 activations, fp32 caches, unusual head dims and windows run in
 * attention_exact.cu.
 *
 * The shape of a launch comes only from the bounds in struct attn; the device reads rows, lengths
 * and slots. */
#include <assert.h>
#include <math.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/attention_tile.cuh"
#include "kernels/cuda/cuda.h"

/* Without memory for the counters lists of few queries are not split. */
void cuda_attention_open(struct backend *b)
{
    struct device *d = device_of(b);
    size_t bytes = split_lists_most(d->sms) * sizeof *d->arrived;
    if (!CHECK_MEMORY(cudaMalloc((void **)&d->arrived, bytes))) {
        d->arrived = NULL;
        return;
    }
    CHECK(cudaMemset(d->arrived, 0, bytes));
    CHECK(cudaDeviceSynchronize()); /* the stream does not wait for it */
}

void cuda_attention_close(struct backend *b)
{
    CHECK(cudaFree(device_of(b)->arrived));
}

template <bool FULL>
static void attention_many(struct backend *b, const struct tile_job *j,
                           const struct attention_plan *p)
{
    if (p->padded == 64)
        p->queries == 64 ? tile_launch<tile_shape<64, 1, 4, 2, FULL>>(b, j, p)
                         : tile_launch<tile_shape<64, 2, 4, 2, FULL>>(b, j, p);
    else if (p->queries == 64)
        tile_launch<tile_shape<128, 1, 4, 1, FULL>>(b, j, p);
    else
        p->stages == 2 ? tile_launch<tile_shape<128, 2, 4, 2, FULL>>(b, j, p)
                       : tile_launch<tile_shape<128, 2, 4, 1, FULL>>(b, j, p);
}

/* 16-byte copies need chunks that begin and end with a head. */
static bool tiles_take(const struct backend *b, const struct attn *a)
{
    uintptr_t addresses = (uintptr_t)a->q | (uintptr_t)a->y | (uintptr_t)a->kv.k |
                          (uintptr_t)a->kv.v;
    return b->act == DTYPE_BF16 && a->kv.dtype == DTYPE_BF16 && a->head_dim % TILE_CHUNK == 0 &&
           a->head_dim <= TILE_E_MAX && addresses % 16 == 0 && !a->window;
}

void cuda_attention(struct backend *b, const struct attn *a, void *work)
{
    struct range here("attention");
    if (!a->T || !a->n_seqs)
        return;
    assert(a->heads % a->kv_heads == 0 && a->n_seqs * a->max_rows >= a->T);
    if (a->dense) {
        attention_dense(b, a, work);
        return;
    }
    if (!tiles_take(b, a)) {
        attention_exact(b, a);
        return;
    }
    const struct device *d = device_of(b);
    struct attention_plan p = attention_plan_of(a->max_rows, a->n_seqs, a->max_slots, a->heads,
                                                a->kv_heads, a->head_dim, a->mask, d->sms,
                                                d->shared_max);
    if (split_joins(p.queries) && !d->arrived)
        p.splits = 1;
    struct tile_job j = {*a, (float)(M_LOG2E / sqrt((double)a->head_dim)), p.tiles, p.splits,
                         (float *)work, d->arrived};
    if (p.queries <= 32)
        attention_few(b, &j, &p);
    else
        p.full ? attention_many<true>(b, &j, &p) : attention_many<false>(b, &j, &p);
    if (p.splits > 1 && !split_joins(p.queries))
        attention_few_combine(b, &j, &p);
}

size_t cuda_attention_work(const struct backend *b, size_t T, size_t n_seqs, size_t max_slots,
                           size_t heads, size_t kv_heads, size_t head_dim, size_t dense)
{
    (void)n_seqs, (void)kv_heads;
    if (dense)
        return attention_dense_work(T, max_slots, dense);
    size_t parts = parts_most(T, max_slots, heads, device_of(b)->sms);
    return parts * (head_dim + 2) * sizeof(float);
}
