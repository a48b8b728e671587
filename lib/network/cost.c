/* cost.c - flops and bytes of passes; see cost.h.
 *
 * The matrices are asked what they are, one by one: a quantized network has several formats. All
 * results are whole numbers held in doubles, exact to 2^53, so costs may be added in any order.
 */
#include "lib/network/cost.h"

struct cost_model cost_model_of(const struct network *n)
{
    const struct config *c = &n->config;
    double layers = (double)c->layers, E = (double)c->head_dim;
    struct cost_model t = {.pair_flops = 4 * layers * (double)c->heads * E,
                       .answer_flops = 2 * (double)c->vocab * (double)c->width,
                       .head_bytes = dtype_bytes(n->head.dtype, n->head.rows, n->head.cols),
                       .slot_bytes = 2 * layers * (double)c->kv_heads * E *
                                     (double)dtype_value_bytes(n->kv_dtype)};
    for (size_t l = 0; l < c->layers; l++) {
        const struct layer *y = &n->layer[l];
        const struct mat *mats[] = {&y->q, &y->k, &y->v, &y->o, &y->gate, &y->up, &y->down};
        for (size_t i = 0; i < sizeof mats / sizeof *mats; i++) {
            t.row_flops += 2 * (double)mats[i]->rows * (double)mats[i]->cols;
            t.block_bytes += dtype_bytes(mats[i]->dtype, mats[i]->rows, mats[i]->cols);
        }
        for (size_t i = 0; y->q_bias && i < 3; i++) { /* q, k, v */
            t.row_flops += (double)mats[i]->rows;
            t.block_bytes += dtype_bytes(DTYPE_F32, mats[i]->rows, 1);
        }
    }
    return t;
}

struct cost cost_of(const struct cost_model *t, const struct extent *x)
{
    return (struct cost){
        x->rows * t->row_flops + x->pairs * t->pair_flops + x->wanted * t->answer_flops,
        t->block_bytes + (x->wanted > 0 ? t->head_bytes : 0) +
            (x->read + x->written) * t->slot_bytes};
}

void cost_add(struct cost *sum, struct cost more)
{
    sum->flops += more.flops;
    sum->bytes += more.bytes;
}

void cost_causal(struct extent *x, double rows, double keys)
{
    x->rows += rows;
    x->pairs += rows * keys - rows * (rows - 1) / 2;
}

void cost_full(struct extent *x, double rows, double keys)
{
    x->rows += rows;
    x->pairs += rows * keys;
}
