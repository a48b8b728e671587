/* estimate.c - memory counted by formula (estimate.h).
 *
 * The back end tells the scratch of its operations. All else is counted here, separately from the
 * code that allocates it (work.c, kv.c), so that a test can compare the two. */
#include "lib/network/estimate.h"

#include "kernels/mixing.h"
#include "lib/base/order.h"
#include "lib/network/kv.h"

/* Rows that a layer's products work on at once. */
static size_t tile(const struct network *n, const struct work_size *s)
{
    return n->row_tile && n->row_tile < s->rows ? n->row_tile : s->rows;
}

/* The scratch that operations share. */
static size_t scratch(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t T = s->rows, D = c->width, HE = c->heads * c->head_dim, N = tile(n, s);
    size_t F = config_ffn_most(c);
    size_t scores = s->how.scores < c->heads ? s->how.scores : c->heads;
    size_t logits = s->how.dense_head * (s->guided || s->compared ? 2 : 1);
    size_t slots = order_max(s->slots, c->latents);
    size_t most = order_max(ops->attention_work(b, T, s->seqs, slots, c->heads, c->kv_heads,
                                                c->head_dim, scores),
                            ops->head_work(b, s->wanted, D, config_answers(c), logits));
    most = order_max(most, ops->qkv_work(b, N, (1 + s->chained) * D, c->heads, c->kv_heads,
                                         c->head_dim, c->qkv_bias || c->qk_norm));
    most = order_max(most, ops->matmul_work(b, N, HE, D));
    most = order_max(most, ops->matmul_work(b, N, D, 2 * F));
    if (s->fed)
        most = order_max(most, ops->matmul_work(b, N, s->fed * D, D));
    if (c->experts)
        most = order_max(most, ops->experts_work(b, N, D, c->ffn, c->experts, c->used));
    if (s->chosen)
        most = order_max(most, ops->matmul_work(b, T, D, c->kv_heads * c->head_dim));
    if (s->chosen || s->sifted)
        most = order_max(most, reuse_work(T, s->seqs, c->kv_heads * c->head_dim));
    return order_max(most, ops->matmul_work(b, N, F, D));
}

/* The scratch of a time mixing layer. */
static size_t mixing_scratch(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t HE = c->heads * c->head_dim, D = c->width, N = tile(n, s);
    if (!config_recurs(c))
        return 0;
    size_t most = ops->mixing->wkv_work(n->backend, s->seqs, s->rows, c->heads, c->head_dim);
    most = order_max(most, ops->matmul_work(n->backend, N, D, order_max(HE, c->rank)));
    return order_max(most, ops->matmul_work(n->backend, N, c->rank, order_max(D, HE)));
}

static size_t array(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Index arrays: four bytes an entry, except keys of the noise (8), sequences (16) and `extra`. */
static size_t index_arrays(const struct work_size *s)
{
    return array(s->extra) + 3 * array(4 * s->rows) + 2 * array(4 * s->listed) +
           2 * array(4 * s->wanted) + array(4 * (s->guided | s->compared) * s->wanted) +
           array(8 * s->wanted) + array(16 * s->seqs) + array(4 * s->seqs) +
           2 * array(4 * ADVANCE_STOPS) + (s->chosen || s->sifted ? array(16 * s->seqs) : 0) +
           array(16 * s->chosen * s->seqs) + array(16 * s->latent * s->seqs) +
           array(4 * s->fed * s->rows) + array(8 * s->chained * s->rows);
}

static size_t head(const struct network *n, const struct work_size *s)
{
    size_t A = dtype_value_bytes(n->backend->act), R = s->wanted, D = n->config.width;
    return array(A * R * D) + array(A * (s->guided | s->compared) * R * D) +
           array(A * s->compared * R * D) + array(R * sizeof(struct head_row)) +
           array(4 * s->logits * R * n->config.vocab) +
           array(s->tops * R * sizeof(struct head_top)) +
           array(4 * s->linked * s->rows * s->slots) + array(4 * s->linked * s->rows);
}

/* For time mixing: the norm, its mixtures, and the outputs of projections. */
static size_t mixing(const struct config *c, size_t T)
{
    size_t wide = array(4 * T * c->width), heads = array(4 * T * c->heads * c->head_dim);
    if (c->mixer == MIXER_RWKV6)
        return 6 * wide + array(4 * 5 * T * c->rank) + 4 * heads;
    return c->mixer == MIXER_RWKV7 ? 7 * wide + array(4 * T * c->rank) + 8 * heads : 0;
}

static size_t activations(const struct network *n, const struct work_size *s)
{
    const struct config *c = &n->config;
    size_t A = dtype_value_bytes(n->backend->act), T = s->rows, D = c->width;
    size_t HE = c->heads * c->head_dim, KE = c->kv_heads * c->head_dim;
    size_t own = s->sifted ? dtype_value_bytes(n->kv_dtype) : s->cached ? 0 : A;
    size_t ffn = A * tile(n, s) * config_ffn(c, 0), gate = A * tile(n, s) * config_ffn_most(c);
    size_t normed = c->experts ? array(A * tile(n, s) * D) + array(sizeof(int32_t)) : 0;
    size_t stream = array(A * T * D) + 2 * array(A * T * HE) + array(gate) + normed +
                    array(s->how.unfused * ffn) + 2 * array(own * T * KE) +
                    array(4 * T * c->head_dim) +
                    (config_leaves_unrotated(c) ? array(4 * T * c->head_dim) : 0);
    size_t chosen = array(A * s->chosen * T * D) + 4 * array(4 * s->chosen * T);
    size_t fed = array(A * s->taps * T * D) + array(A * s->fed * T * D) +
                 array(A * (s->fed > 0) * T * D) + array(2 * A * s->chained * T * D);
    return index_arrays(s) + stream + chosen + fed + head(n, s) + mixing(c, T) +
           array(order_max(scratch(n, s), mixing_scratch(n, s)));
}

struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots)
{
    const struct config *c = &n->config;
    size_t stay = c->layers - n->kv_wish.layers, outside = n->kv_wish.layers, second;
    size_t values = stay * kv_slots * c->kv_heads * c->head_dim;
    size_t moved = kv_layer_bytes(n, kv_slots, &second);
    size_t slots = outside && moved ? memory_rounded(offload_slots(&n->kv_wish, moved)) : 0;
    size_t half = memory_rounded(values * dtype_value_bytes(n->kv_dtype));
    size_t outputs = c->layers * kv_slots * c->width * dtype_value_bytes(n->backend->act);
    outputs = size->chosen ? memory_rounded(outputs) : 0;
    size_t state = 0, last = 0; /* a state replaces keys and values */
    if (config_recurs(c)) {
        last = memory_rounded(c->layers * kv_slots * c->width * sizeof(float));
        state = memory_rounded(c->layers * kv_slots * (config_state(c) - c->width) * sizeof(float));
        half = 0;
    }
    struct memory_estimate m = {.weights = network_expected_bytes(n),
                                .kv = 2 * (half + outputs) + slots + state + last,
                                .activations = memory_rounded(activations(n, size)),
                                .logits = head(n, size), .outside_kv = outside * moved};
    m.reserved = network_expected_pages(n) + memory_pages(m.activations) +
                 (state ? memory_pages(state) + memory_pages(last) : 0) +
                 2 * (half ? memory_pages(half) : 0) +
                 2 * (outputs ? memory_pages(outputs) : 0) + (slots ? memory_pages(slots) : 0);
    m.outside = m.outside_kv + n->wish.layers * network_layer_bytes(n);
    return m;
}

size_t estimate_bytes(const struct memory_estimate *m)
{
    return m->weights + m->kv + m->activations;
}

struct memory_estimate estimate_sum(const struct memory_estimate *a,
                                    const struct memory_estimate *b)
{
    return (struct memory_estimate){a->weights + b->weights, a->kv + b->kv,
                                    a->activations + b->activations, a->logits + b->logits,
                                    a->reserved + b->reserved, a->outside + b->outside,
                                    a->outside_kv + b->outside_kv};
}
