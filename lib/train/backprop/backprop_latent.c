/* backprop_latent.c - attention to the latents of a layer, forward and backward; see
 * backprop_run.h.
 *
 * It is attention with a full mask. Keys and values come from z_l instead of the stream; the query
 * rows are those of the layer. z belongs to the batch and is not a parameter. Its gradient:
 * dz_l = dk Wck + dv Wcv. */
#include "lib/train/backprop/backprop_run.h"

static const float *latents_of(const struct backprop *t, size_t l, size_t n)
{
    return t->z + l * n * t->c.width;
}

void backprop_cross(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                    const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    size_t n = backprop_latent_rows(t, in);
    const float *z = latents_of(t, l, n);
    backprop_norm(t, y->nc, y->mid, ROLE_CROSS_NORM, l, who->n);
    const struct gemm q = backprop_linear(t, y->cq, y->nc, ROLE_CROSS_Q, l, who->n, NULL);
    const struct gemm kv[] = {backprop_linear(t, y->zk, z, ROLE_CROSS_K, l, n, NULL),
                              backprop_linear(t, y->zv, z, ROLE_CROSS_V, l, n, NULL)};
    backprop_multiply(t, &q, 1);
    backprop_multiply(t, kv, 2);
    ops->rope(t->b, y->cq, who->table, who->n, c->heads, c->head_dim, 1);
    ops->rope(t->b, y->zk, t->ztable, n, c->kv_heads, c->head_dim, 1);
    const struct attn a = {.q = y->cq, .y = y->cy, .kv = {y->zk, y->zv, DTYPE_F32}, .pos = who->pos,
                           .seqs = who->cross, .slots = t->at.zslots, .slot_pos = t->at.zslots,
                           .n_seqs = in->seqs, .T = who->n, .max_rows = in->len,
                           .max_slots = c->latents, .heads = c->heads, .kv_heads = c->kv_heads,
                           .head_dim = c->head_dim, .mask = MASK_FULL,
                           .half = t->dtype == DTYPE_BF16};
    ops->attention(t->b, &a, t->scratch);
    const struct gemm o = backprop_linear(t, y->crossed, y->cy, ROLE_CROSS_O, l, who->n, y->mid);
    backprop_multiply(t, &o, 1);
}

void backprop_cross_back(struct backprop *t, const struct layer_tape *y, size_t l,
                         const struct askers *who, const struct train_batch *in)
{
    const struct config *c = &t->c;
    const struct ops *ops = t->b->ops;
    size_t n = backprop_latent_rows(t, in);
    const float *z = latents_of(t, l, n);
    float *dz = t->dz + l * n * c->width;
    const struct gemm o[] = {backprop_weights(t, t->dx, y->cy, ROLE_CROSS_O, l, who->n),
                             backprop_input(t, t->dy, t->dx, ROLE_CROSS_O, l, who->n, NULL)};
    backprop_multiply(t, o, 2);
    const struct attn_back a = {.q = y->cq, .k = y->zk, .v = y->zv, .dy = t->dy, .dq = t->dq,
                                .dk = t->dzk, .dv = t->dzv, .seqs = who->cross, .pos = who->pos,
                                .n_seqs = in->seqs,
                                .max_slots = in->len > c->latents ? in->len : c->latents,
                                .heads = c->heads, .kv_heads = c->kv_heads, .head_dim = c->head_dim,
                                .half = t->dtype == DTYPE_BF16};
    t->train->attention_back(t->b, &a, t->scratch);
    ops->rope(t->b, t->dq, who->table, who->n, c->heads, c->head_dim, -1);
    ops->rope(t->b, t->dzk, t->ztable, n, c->kv_heads, c->head_dim, -1);
    const struct gemm back[] = {backprop_weights(t, t->dq, y->nc, ROLE_CROSS_Q, l, who->n),
                                backprop_input(t, t->dn, t->dq, ROLE_CROSS_Q, l, who->n, NULL),
                                backprop_weights(t, t->dzk, z, ROLE_CROSS_K, l, n),
                                backprop_weights(t, t->dzv, z, ROLE_CROSS_V, l, n),
                                backprop_input(t, dz, t->dzk, ROLE_CROSS_K, l, n, NULL),
                                backprop_input(t, dz, t->dzv, ROLE_CROSS_V, l, n, dz)};
    backprop_multiply(t, back, 6);
    backprop_norm_back(t, t->dx, t->dn, y->mid, ROLE_CROSS_NORM, l, who->n);
}
