/* pass-context.c - the context of a drafter that fills masks; see pass.h. Let h_1 .. h_n be the
 * outputs of n layers of another network at a position. Each layer of the drafter caches
 *
 *     c = rmsnorm(F [h_1; ..; h_n]),   key = rope(norm(Wk c)),   value = Wv c
 *
 * So the drafter runs no layer for a token of the text. The rows of the drafter see these keys
 * beside their own keys. Source: Chen, Liang, Liu 2026 (DFlash, arXiv 2602.06036). */
#include "lib/network/pass/pass-layer.h"

/* Caches keys and values of this layer. ops.qkv also computes queries, which nothing reads. */
static void cache_layer(const struct network *n, size_t layer, const struct kv *kv,
                        const struct work *work, size_t rows)
{
    const struct config *config = &n->config;
    const struct layer *weights = &n->layer[layer];
    for (size_t row = 0, T; row < rows; row += T) {
        T = pass_rows_at_once(n, work, row, rows);
        const struct qkv qkv = {.in = {pass_row_at(n, work->context, row, config->width),
                                       n->fuse_norm, config->norm_eps},
                                .wq = &weights->q, .wk = &weights->k, .wv = &weights->v,
                                .head_gain = {weights->q_norm, weights->k_norm},
                                .table = work->table + row * config->head_dim, .q = work->q,
                                .to = kv_layer(kv, n, layer), .slot = work->device.rows.slot + row,
                                .heads = config->heads, .kv_heads = config->kv_heads,
                                .head_dim = config->head_dim};
        n->backend->ops->qkv(n->backend, &qkv, T, work->scratch);
    }
}

void pass_fuse(const struct network *n, const struct work *work, const act *from, size_t rows)
{
    n->backend->ops->rmsnorm(n->backend, work->fed, from, work->device.feature, NULL,
                             rows * work->size.fed, n->config.width, 0);
    pass_multiply(n, work, &n->fuse, (struct input){.x = work->fed}, work->context, 0, rows);
}

void pass_context(const struct network *n, const struct kv *kv, const struct work *work,
                  const act *from, size_t rows)
{
    const struct config *config = &n->config;
    const struct ops *ops = n->backend->ops;
    pass_fuse(n, work, from, rows);
    ops->rope_table(n->backend, work->table, work->device.rows.pos, n->inv_freq,
                    config_rope_scale(config), rows, config->head_dim);
    for (size_t layer = 0; layer < config->layers; layer++)
        cache_layer(n, layer, kv, work, rows);
}
