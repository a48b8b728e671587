/* pass.c - the operations of one pass, in order; see pass.h.
 *
 * What a pass is depends on struct pass and on the index arrays alone, and nothing is allocated or
 * copied while it runs: a back end may record its operations once and repeat them for as long as
 * struct pass stays the same, whatever the index arrays then hold.
 */
#include "lib/network/pass.h"

#include <assert.h>
#include <string.h>

enum { SLOT_STEP = 256 };

/* ---- description ---- */

void pass_begin(struct pass *p, const struct network *n, const struct kv *kv, const struct work *w)
{
    memset(p, 0, sizeof *p);
    p->network = n->identity;
    p->block = w->block;
    p->size = w->size;
    if (kv) {
        p->k = kv->k;
        p->v = kv->v;
        p->kv_slots = kv->slots;
        p->kv_dtype = kv->dtype;
    }
}

size_t pass_slots(const struct work *w, size_t n)
{
    size_t step = (n + SLOT_STEP - 1) / SLOT_STEP * SLOT_STEP;
    assert(n <= w->size.slots);
    return step < w->size.slots ? step : w->size.slots;
}

void pass_list_rows(struct work *w, size_t T)
{
    const struct rows *r = &w->host.rows;
    assert(T <= w->size.listed);
    for (size_t t = 0; t < T; t++)
        r->slots[t] = (int32_t)t;
    memcpy(r->slot_pos, r->pos, T * sizeof *r->pos);
}

void pass_write(const struct network *n, struct work *w)
{
    n->backend->ops->write(n->backend, w->block, w->host.extra, w->index_bytes);
}

/* ---- the pass ---- */

/* Layer l of a cache. */
static struct cache layer_cache(const struct network *n, const struct kv *kv, size_t l)
{
    const struct config *c = &n->config;
    size_t at = l * kv->slots * c->kv_heads * c->head_dim * dtype_value_bytes(kv->dtype);
    return (struct cache){(char *)kv->k + at, (char *)kv->v + at, kv->dtype};
}

static void attention_block(const struct network *n, size_t l, const struct kv *kv,
                            const struct work *w, const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    const struct rows *r = &w->device.rows;
    const struct qkv qkv = {.in = {w->x, y->attn_norm, c->norm_eps},
                            .wq = &y->q,
                            .wk = &y->k,
                            .wv = &y->v,
                            .bias = {y->q_bias, y->k_bias, y->v_bias},
                            .head_gain = {y->q_norm, y->k_norm},
                            .table = w->table,
                            .q = w->q,
                            .to = kv ? layer_cache(n, kv, l) : w->fresh,
                            .slot = kv ? r->slot : NULL,
                            .heads = c->heads,
                            .kv_heads = c->kv_heads,
                            .head_dim = c->head_dim};
    const struct attn attn = {.q = w->q,
                              .y = w->y,
                              .kv = qkv.to,
                              .half = network_half(n),
                              .pos = r->pos,
                              .seqs = r->seqs,
                              .slots = r->slots,
                              .slot_pos = r->slot_pos,
                              .n_seqs = p->n_seqs,
                              .T = p->T,
                              .max_rows = p->max_rows,
                              .max_slots = p->max_slots,
                              .heads = c->heads,
                              .kv_heads = c->kv_heads,
                              .head_dim = c->head_dim,
                              .mask = p->mask,
                              .mask_block = p->mask_block};
    const struct product o = {&y->o, w->x, 1};
    b->ops->qkv(b, &qkv, p->T, w->scratch);
    b->ops->attention(b, &attn, w->scratch);
    b->ops->matmul(b, &o, 1, (struct input){.x = w->y}, p->T, w->scratch);
}

static void ffn_block(const struct network *n, size_t l, const struct work *w, size_t T)
{
    struct backend *b = n->backend;
    const struct layer *y = &n->layer[l];
    const struct input in = {w->x, y->ffn_norm, n->config.norm_eps};
    const struct product down = {&y->down, w->x, 1};
    b->ops->gated(b, w->gate, in, &y->gate, &y->up, T, w->scratch);
    b->ops->matmul(b, &down, 1, (struct input){.x = w->gate}, T, w->scratch);
}

static void answer(const struct network *n, const struct work *w, const struct pass *p)
{
    const struct rows *r = &w->device.rows;
    struct backend *b = n->backend;
    const struct ops *ops = b->ops;
    size_t D = n->config.width;
    double eps = n->config.norm_eps;
    ops->rmsnorm(b, w->wanted, w->x, r->wanted, n->norm, p->R, D, eps);
    int compares = p->query.divergence != 0;
    if (p->guided)
        ops->rmsnorm(b, w->uncond, w->x, r->uncond, n->norm, p->R, D, eps);
    if (compares)
        ops->rmsnorm(b, w->uncond, w->before, r->uncond, NULL, p->R, D, eps);
    ops->head(b, &n->head, w->wanted, p->guided || compares ? w->uncond : NULL, p->R, &p->query,
              w->answer, p->logits ? w->logits : NULL, w->scratch);
    if (compares)
        ops->rmsnorm(b, w->before, w->wanted, NULL, NULL, p->R, D, eps);
}

void pass_run(const struct network *n, const struct kv *kv, const struct work *w,
              const struct pass *p)
{
    const struct config *c = &n->config;
    struct backend *b = n->backend;
    const struct rows *r = &w->device.rows;
    assert(p->T <= w->size.rows && p->n_seqs <= w->size.seqs && p->R <= w->size.wanted);
    b->ops->embed(b, w->x, &n->embed, r->token, p->T);
    b->ops->rope_table(b, w->table, r->pos, n->inv_freq, p->T, c->head_dim);
    for (size_t l = 0; l < c->layers; l++) {
        attention_block(n, l, kv, w, p);
        ffn_block(n, l, w, p->T);
    }
    if (p->R)
        answer(n, w, p);
}
