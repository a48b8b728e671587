/* estimate.c - memory counted by formula; see estimate.h.
 *
 * The operations' own scratch is asked of the back end; everything else is counted here, apart from
 * the code that allocates it (work.c, kv.c), so that a test can hold the two against each other.
 */
#include "lib/network/estimate.h"

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The scratch that operations use by turns. */
static size_t scratch(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t T = s->rows, D = c->width, F = c->ffn, HE = c->heads * c->head_dim;
    size_t most = larger(ops->attention_work(b, T, s->seqs, s->slots, c->heads, c->kv_heads,
                                             c->head_dim),
                         ops->head_work(b, s->wanted, D, c->vocab));
    most = larger(most, ops->qkv_work(b, T, D, c->heads, c->kv_heads, c->head_dim,
                                      c->qkv_bias || c->qk_norm));
    most = larger(most, ops->matmul_work(b, T, HE, D));
    most = larger(most, ops->matmul_work(b, T, D, 2 * F));
    if (s->chosen)
        most = larger(most, ops->matmul_work(b, T, D, c->kv_heads * c->head_dim));
    if (s->chosen || s->sifted)
        most = larger(most, reuse_work(T, s->seqs, c->kv_heads * c->head_dim));
    return larger(most, ops->matmul_work(b, T, F, D));
}

static size_t array(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Index arrays, four bytes an entry but for the keys (8), the sequences (16), what is `extra`. */
static size_t index_arrays(const struct work_size *s)
{
    return array(s->extra) + 3 * array(4 * s->rows) + 2 * array(4 * s->listed) +
           2 * array(4 * s->wanted) + array(4 * (s->guided | s->compared) * s->wanted) +
           array(8 * s->wanted) + array(16 * s->seqs) + array(4 * s->seqs) +
           2 * array(4 * ADVANCE_STOPS) + (s->chosen || s->sifted ? array(16 * s->seqs) : 0) +
           array(16 * s->chosen * s->seqs);
}

static size_t activations(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    size_t A = dtype_value_bytes(n->backend->act), T = s->rows, R = s->wanted, D = c->width;
    size_t HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    size_t own = s->sifted ? dtype_value_bytes(n->kv_dtype) : s->cached ? 0 : A;
    size_t stream = array(A * T * D) + 2 * array(A * T * HE) + array(A * T * c->ffn) +
                    2 * array(own * T * KE) + array(4 * T * c->head_dim);
    size_t chosen = array(A * s->chosen * T * D) + 4 * array(4 * s->chosen * T);
    size_t head = array(A * R * D) + array(A * (s->guided | s->compared) * R * D) +
                  array(A * s->compared * R * D) +
                  array(R * sizeof(struct head_row)) + array(4 * s->logits * R * c->vocab);
    return index_arrays(s) + stream + chosen + head + array(scratch(n, s));
}

struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots)
{
    const struct config *c = &n->config;
    size_t values = c->layers * kv_slots * c->kv_heads * c->head_dim;
    size_t half = memory_rounded(values * dtype_value_bytes(n->kv_dtype));
    size_t outputs = c->layers * kv_slots * c->width * dtype_value_bytes(n->backend->act);
    if (size->chosen)
        half += memory_rounded(outputs);
    return (struct memory_estimate){network_expected_bytes(n), 2 * half,
                                    memory_rounded(activations(n, size))};
}
