/* estimate.c - memory counted by formula; see estimate.h.
 *
 * The back end gives the scratch of its operations. All other memory is counted here, separately
 * from the code that allocates it (work.c, kv.c), so that a test can compare the two. */
#include "lib/network/estimate.h"

#include "kernels/mixing.h"
#include "lib/base/order.h"
#include "lib/network/kv.h"

/* Rows that the products of a layer work on at once (work_tile). */
static size_t tile(const struct network *n, const struct work_size *size)
{
    return n->row_tile && n->row_tile < size->rows ? n->row_tile : size->rows;
}

/* Bytes of the scratch that operations share. */
static size_t scratch(const struct network *n, const struct work_size *size)
{
    const struct config *config = &n->config;
    struct backend *backend = n->backend;
    const struct ops *ops = backend->ops;
    size_t T = size->rows, D = config->width, HE = config->heads * config->head_dim,
           rows = tile(n, size);
    size_t F = config_ffn_most(config);
    size_t scores = size->how.scores < config->heads ? size->how.scores : config->heads;
    size_t logits = size->how.dense_head * (size->guided || size->compared ? 2 : 1);
    size_t slots = order_max(size->slots, config->latents);
    size_t most = order_max(
        ops->attention_work(backend, T, size->seqs, slots, config->heads, config->kv_heads,
                            config->head_dim, scores),
        ops->head_work(backend, size->wanted, D, config_answers(config), logits));
    most = order_max(most, ops->qkv_work(backend, rows, (1 + size->chained) * D, config->heads,
                                         config->kv_heads, config->head_dim,
                                         config->qkv_bias || config->qk_norm));
    most = order_max(most, ops->matmul_work(backend, rows, HE, D));
    most = order_max(most, ops->matmul_work(backend, rows, D, 2 * F));
    if (size->fed)
        most = order_max(most, ops->matmul_work(backend, rows, size->fed * D, D));
    if (config->experts)
        most = order_max(
            most, ops->experts_work(backend, rows, D, config->ffn, config->experts, config->used));
    if (size->chosen)
        most = order_max(most,
                         ops->matmul_work(backend, T, D, config->kv_heads * config->head_dim));
    if (size->chosen || size->sifted)
        most = order_max(most, reuse_work(T, size->seqs, config->kv_heads * config->head_dim));
    return order_max(most, ops->matmul_work(backend, rows, F, D));
}

/* Bytes of the scratch of a time mixing layer. */
static size_t mixing_scratch(const struct network *n, const struct work_size *size)
{
    const struct config *config = &n->config;
    const struct ops *ops = n->backend->ops;
    size_t HE = config->heads * config->head_dim, D = config->width, N = tile(n, size);
    if (!config_recurs(config))
        return 0;
    size_t most = ops->mixing->wkv_work(n->backend, size->seqs, size->rows, config->heads,
                                        config->head_dim);
    most = order_max(most, ops->matmul_work(n->backend, N, D, order_max(HE, config->rank)));
    return order_max(most, ops->matmul_work(n->backend, N, config->rank, order_max(D, HE)));
}

static size_t array(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of the index arrays. An entry has 4 bytes, except keys of the noise (8), sequences and
 * shares (16) and `extra` (1). */
static size_t index_arrays(const struct work_size *size)
{
    return array(size->extra) + 3 * array(4 * size->rows) + 2 * array(4 * size->listed) +
           2 * array(4 * size->wanted) + array(4 * (size->guided | size->compared) * size->wanted) +
           array(8 * size->wanted) + array(16 * size->seqs) + array(4 * size->seqs) +
           2 * array(4 * ADVANCE_STOPS) +
           (size->chosen || size->sifted ? array(16 * size->seqs) : 0) +
           array(16 * size->chosen * size->seqs) + array(16 * size->latent * size->seqs) +
           array(4 * size->fed * size->rows) + array(8 * size->chained * size->rows);
}

static size_t head(const struct network *n, const struct work_size *size)
{
    size_t A = dtype_value_bytes(n->backend->act), R = size->wanted, D = n->config.width;
    return array(A * R * D) + array(A * (size->guided | size->compared) * R * D) +
           array(A * size->compared * R * D) + array(R * sizeof(struct head_row)) +
           array(4 * size->logits * R * n->config.vocab) +
           array(size->tops * R * sizeof(struct head_top)) +
           array(4 * size->linked * size->rows * size->slots) +
           array(4 * size->linked * size->rows);
}

/* Bytes of struct mixing_room: the norm, the mixtures, the low-rank parts and the outputs of
 * projections. */
static size_t mixing(const struct config *config, size_t T)
{
    size_t wide = array(4 * T * config->width),
           heads = array(4 * T * config->heads * config->head_dim);
    if (config->mixer == MIXER_RWKV6)
        return 6 * wide + array(4 * 5 * T * config->rank) + 4 * heads;
    return config->mixer == MIXER_RWKV7 ? 7 * wide + array(4 * T * config->rank) + 8 * heads : 0;
}

static size_t activations(const struct network *n, const struct work_size *size)
{
    const struct config *config = &n->config;
    size_t bytes = dtype_value_bytes(n->backend->act), T = size->rows, D = config->width;
    size_t HE = config->heads * config->head_dim, KE = config->kv_heads * config->head_dim;
    size_t own = size->sifted ? dtype_value_bytes(n->kv_dtype) : size->cached ? 0 : bytes;
    size_t ffn = bytes * tile(n, size) * config_ffn(config, 0),
           gate = bytes * tile(n, size) * config_ffn_most(config);
    size_t normed = config->experts ? array(bytes * tile(n, size) * D) + array(sizeof(int32_t)) : 0;
    size_t stream = array(bytes * T * D) + 2 * array(bytes * T * HE) + array(gate) + normed +
                    array(size->how.unfused * ffn) + 2 * array(own * T * KE) +
                    array(4 * T * config->head_dim) +
                    (config_leaves_unrotated(config) ? array(4 * T * config->head_dim) : 0);
    size_t chosen = array(bytes * size->chosen * T * D) + 4 * array(4 * size->chosen * T);
    size_t fed = array(bytes * size->taps * T * D) + array(bytes * size->fed * T * D) +
                 array(bytes * (size->fed > 0) * T * D) + array(2 * bytes * size->chained * T * D);
    return index_arrays(size) + stream + chosen + fed + head(n, size) + mixing(config, T) +
           array(order_max(scratch(n, size), mixing_scratch(n, size)));
}

struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots)
{
    const struct config *config = &n->config;
    size_t stay = config->layers - n->kv_wish.layers, outside = n->kv_wish.layers, second;
    size_t values = stay * kv_slots * config->kv_heads * config->head_dim;
    size_t moved = kv_layer_bytes(n, kv_slots, &second);
    size_t slots = outside && moved ? memory_rounded(offload_slots(&n->kv_wish, moved)) : 0;
    size_t half = memory_rounded(values * dtype_value_bytes(n->kv_dtype));
    size_t outputs = config->layers * kv_slots * config->width * dtype_value_bytes(n->backend->act);
    outputs = size->chosen ? memory_rounded(outputs) : 0;
    size_t state = 0, last = 0; /* with time mixing: in place of keys and values */
    if (config_recurs(config)) {
        last = memory_rounded(config->layers * kv_slots * config->width * sizeof(float));
        state = memory_rounded(config->layers * kv_slots * (config_state(config) - config->width) *
                               sizeof(float));
        half = 0;
    }
    struct memory_estimate estimate = {.weights = network_expected_bytes(n),
                                       .kv = 2 * (half + outputs) + slots + state + last,
                                       .activations = memory_rounded(activations(n, size)),
                                       .logits = head(n, size), .outside_kv = outside * moved};
    estimate.reserved = network_expected_pages(n) + memory_pages(estimate.activations) +
                        (state ? memory_pages(state) + memory_pages(last) : 0) +
                        2 * (half ? memory_pages(half) : 0) +
                        2 * (outputs ? memory_pages(outputs) : 0) +
                        (slots ? memory_pages(slots) : 0);
    estimate.outside = estimate.outside_kv + n->wish.layers * network_layer_bytes(n);
    return estimate;
}

size_t estimate_bytes(const struct memory_estimate *estimate)
{
    return estimate->weights + estimate->kv + estimate->activations;
}

struct memory_estimate estimate_sum(const struct memory_estimate *a,
                                    const struct memory_estimate *b)
{
    return (struct memory_estimate){a->weights + b->weights, a->kv + b->kv,
                                    a->activations + b->activations, a->logits + b->logits,
                                    a->reserved + b->reserved, a->outside + b->outside,
                                    a->outside_kv + b->outside_kv};
}
