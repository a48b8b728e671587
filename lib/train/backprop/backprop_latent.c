/* backprop_latent.c - attention to the latents of a layer, forward and backward; see
 * backprop_run.h.
 *
 * This attention has a full mask. Keys and values come from z_l, the latents of layer l, instead of
 * the stream; the query rows are the query rows of the layer. z is an input of the batch, not a
 * parameter. The gradient of z is dz_l = dk Wck + dv Wcv. */
#include "lib/train/backprop/backprop_run.h"

static const float *latents_of(const struct backprop *backprop, size_t layer, size_t n)
{
    return backprop->z + layer * n * backprop->c.width;
}

void backprop_cross(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                    const struct askers *who, const struct train_batch *in)
{
    const struct config *config = &backprop->c;
    const struct ops *ops = backprop->b->ops;
    size_t n = backprop_latent_rows(backprop, in);
    const float *latents = latents_of(backprop, layer, n);
    backprop_norm(backprop, tape->nc, tape->mid, ROLE_CROSS_NORM, layer, who->n);
    const struct gemm query = backprop_linear(backprop, tape->cq, tape->nc, ROLE_CROSS_Q, layer,
                                              who->n, NULL);
    const struct gemm kv[] = {
        backprop_linear(backprop, tape->zk, latents, ROLE_CROSS_K, layer, n, NULL),
        backprop_linear(backprop, tape->zv, latents, ROLE_CROSS_V, layer, n, NULL)};
    backprop_multiply(backprop, &query, 1);
    backprop_multiply(backprop, kv, 2);
    ops->rope(backprop->b, tape->cq, who->table, who->n, config->heads, config->head_dim, 1);
    ops->rope(backprop->b, tape->zk, backprop->ztable, n, config->kv_heads, config->head_dim, 1);
    const struct attn attention = {.q = tape->cq, .y = tape->cy,
                                   .kv = {tape->zk, tape->zv, DTYPE_F32}, .pos = who->pos,
                                   .seqs = who->cross, .slots = backprop->at.zslots,
                                   .slot_pos = backprop->at.zslots, .n_seqs = in->seqs, .T = who->n,
                                   .max_rows = in->len, .max_slots = config->latents,
                                   .heads = config->heads, .kv_heads = config->kv_heads,
                                   .head_dim = config->head_dim, .mask = MASK_FULL,
                                   .half = backprop->dtype == DTYPE_BF16};
    ops->attention(backprop->b, &attention, backprop->scratch);
    const struct gemm out = backprop_linear(backprop, tape->crossed, tape->cy, ROLE_CROSS_O, layer,
                                            who->n, tape->mid);
    backprop_multiply(backprop, &out, 1);
}

void backprop_cross_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who, const struct train_batch *in)
{
    const struct config *config = &backprop->c;
    const struct ops *ops = backprop->b->ops;
    size_t n = backprop_latent_rows(backprop, in);
    const float *latents = latents_of(backprop, layer, n);
    float *dz = backprop->dz + layer * n * config->width;
    const struct gemm out[] = {
        backprop_weights(backprop, backprop->dx, tape->cy, ROLE_CROSS_O, layer, who->n),
        backprop_input(backprop, backprop->dy, backprop->dx, ROLE_CROSS_O, layer, who->n, NULL)};
    backprop_multiply(backprop, out, 2);
    const struct attn_back attn_back = {.q = tape->cq,
                                        .k = tape->zk,
                                        .v = tape->zv,
                                        .dy = backprop->dy,
                                        .dq = backprop->dq,
                                        .dk = backprop->dzk,
                                        .dv = backprop->dzv,
                                        .seqs = who->cross,
                                        .pos = who->pos,
                                        .n_seqs = in->seqs,
                                        .max_slots = in->len > config->latents ? in->len
                                                                               : config->latents,
                                        .heads = config->heads,
                                        .kv_heads = config->kv_heads,
                                        .head_dim = config->head_dim,
                                        .half = backprop->dtype == DTYPE_BF16};
    backprop->train->attention_back(backprop->b, &attn_back, backprop->scratch);
    ops->rope(backprop->b, backprop->dq, who->table, who->n, config->heads, config->head_dim, -1);
    ops->rope(backprop->b, backprop->dzk, backprop->ztable, n, config->kv_heads, config->head_dim,
              -1);
    const struct gemm back[] = {
        backprop_weights(backprop, backprop->dq, tape->nc, ROLE_CROSS_Q, layer, who->n),
        backprop_input(backprop, backprop->dn, backprop->dq, ROLE_CROSS_Q, layer, who->n, NULL),
        backprop_weights(backprop, backprop->dzk, latents, ROLE_CROSS_K, layer, n),
        backprop_weights(backprop, backprop->dzv, latents, ROLE_CROSS_V, layer, n),
        backprop_input(backprop, dz, backprop->dzk, ROLE_CROSS_K, layer, n, NULL),
        backprop_input(backprop, dz, backprop->dzv, ROLE_CROSS_V, layer, n, dz)};
    backprop_multiply(backprop, back, 6);
    backprop_norm_back(backprop, backprop->dx, backprop->dn, tape->mid, ROLE_CROSS_NORM, layer,
                       who->n);
}
