/* pass-context.c - the context of a drafter that fills masks (pass.h). For the outputs h_1 .. h_n
 * of n layers of another network at a position, and each layer of the drafter,
 *
 *     c = rmsnorm(F [h_1; ..; h_n]),   key = rope(norm(Wk c)),   value = Wv c
 *
 * so the drafter computes no layer for a token of the text, and its own rows see these keys beside
 * their own. Source: Chen, Liang, Liu 2026 (arXiv 2602.06036). */
#include "lib/network/pass/pass-layer.h"

/* Keys and values of layer l; queries come with them and are not used. */
static void cache_layer(const struct network *n, size_t l, const struct kv *kv,
                        const struct work *w, size_t N)
{
    const struct config *c = &n->config;
    const struct layer *y = &n->layer[l];
    for (size_t t = 0, T; t < N; t += T) {
        T = pass_rows_at_once(n, w, t, N);
        const struct qkv qkv = {.in = {pass_row_at(n, w->context, t, c->width), n->fuse_norm,
                                       c->norm_eps},
                                .wq = &y->q, .wk = &y->k, .wv = &y->v,
                                .head_gain = {y->q_norm, y->k_norm},
                                .table = w->table + t * c->head_dim, .q = w->q,
                                .to = kv_layer(kv, n, l), .slot = w->device.rows.slot + t,
                                .heads = c->heads, .kv_heads = c->kv_heads,
                                .head_dim = c->head_dim};
        n->backend->ops->qkv(n->backend, &qkv, T, w->scratch);
    }
}

void pass_fuse(const struct network *n, const struct work *w, const act *from, size_t N)
{
    n->backend->ops->rmsnorm(n->backend, w->fed, from, w->device.feature, NULL, N * w->size.fed,
                             n->config.width, 0);
    pass_multiply(n, w, &n->fuse, (struct input){.x = w->fed}, w->context, 0, N);
}

void pass_context(const struct network *n, const struct kv *kv, const struct work *w,
                  const act *from, size_t N)
{
    const struct config *c = &n->config;
    const struct ops *ops = n->backend->ops;
    pass_fuse(n, w, from, N);
    ops->rope_table(n->backend, w->table, w->device.rows.pos, n->inv_freq, config_rope_scale(c), N,
                    c->head_dim);
    for (size_t l = 0; l < c->layers; l++)
        cache_layer(n, l, kv, w, N);
}
