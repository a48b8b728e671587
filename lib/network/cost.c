/* cost.c - flops and bytes of passes (cost.h).
 *
 * Shapes and formats come from the roles, one by one, because a quantized network has several
 * formats, and a settled network that is not loaded has no matrices yet. All results are whole
 * numbers in doubles, exact to 2^53, so costs may be added in any order. */
#include "lib/network/cost.h"

#include <math.h>

/* 1: a matrix of the feed-forward block of the last layer. */
static int is_last_ffn(const struct config *c, enum role r)
{
    return role_has(c, r, c->layers - 1) &&
           (r == ROLE_GATE || r == ROLE_UP || r == ROLE_DOWN || r >= ROLE_ROUTER);
}

struct cost_model cost_model_of(const struct network *n)
{
    const struct config *c = &n->config;
    double E = (double)c->head_dim, layers = (double)c->layers;
    size_t rows, cols;
    role_shape(c, ROLE_HEAD, &rows, &cols);
    enum role answers = c->tied ? ROLE_EMBED : ROLE_HEAD;
    enum dtype head = quantization_dtype(n->quant, c, answers, 0, n->dtype);
    struct cost_model t = {.pair_flops = 4 * layers * (double)c->heads * E,
                           .answer_flops = 2 * (double)config_answers(c) * (double)c->width,
                           .head_bytes = dtype_bytes(head, rows, cols),
                           .slot_bytes = 2 * layers * (double)c->kv_heads * E *
                                         (double)dtype_value_bytes(n->kv_dtype),
                           .look_pair_flops = 4 * (double)c->heads * E,
                           .output_bytes = 2 * layers * (double)c->width *
                                           (double)dtype_value_bytes(n->backend->act)};
    if (config_recurs(c)) { /* multiplications and additions of the recurrence, line by line */
        double each = c->mixer == MIXER_RWKV6 ? 5 : 9;
        t.row_flops = each * layers * (double)c->heads * E * E;
        t.slot_bytes = layers * (double)config_state(c) * sizeof(float);
    }
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = (enum role)i;
        int is_bias = role_is_vector(r) && !role_is_norm(r);
        if (!role_per_layer(r) || role_is_norm(r) || r == ROLE_CROSS_K || r == ROLE_CROSS_V)
            continue; /* the last two multiply latents, once a text */
        role_shape(c, r, &rows, &cols);
        /* the first layer's are not read */
        size_t first = r == ROLE_FIRST || r == ROLE_FIRST_DOWN || r == ROLE_FIRST_UP;
        double times = role_layers(c, r) ? (double)(role_layers(c, r) - first) : 0;
        const int each = role_each(c, r) > 1, last = is_last_ffn(c, r); /* each: of an expert */
        double *bytes = each ? &t.expert_bytes : &t.block_bytes;
        double of_layer = (each ? (double)c->used : 1) * (is_bias ? 1 : 2) * (double)rows *
                          (double)cols;
        t.row_flops += times * of_layer;
        t.last_flops += last ? of_layer : 0;
        for (size_t l = first; l < role_tensors(c, r); l++) {
            double size = dtype_bytes(is_bias ? DTYPE_F32
                                              : quantization_dtype(n->quant, c, r, l, n->dtype),
                                      rows, cols);
            *(last && !each && l + 1 == role_tensors(c, r) ? &t.last_bytes : bytes) += size;
        }
    }
    t.experts = (layers - (double)c->dense) * (double)c->experts;
    t.last_experts = (double)c->experts;
    t.share = c->experts ? (double)c->used / (double)c->experts : 0;
    t.expert_bytes /= c->experts ? t.experts : 1;
    t.look_flops = t.row_flops / layers + (layers - 1) * (double)c->kv_heads * E *
                                              (2 * (double)c->width + (c->qkv_bias ? 1 : 0));
    t.row_flops -= t.last_flops;
    return t;
}

struct cost cost_of(const struct cost_model *t, const struct extent *x)
{
    return (struct cost){
        x->rows * t->row_flops + x->pairs * t->pair_flops + x->wanted * t->answer_flops +
            (x->wanted - x->compared) * t->last_flops + x->looked * t->look_flops +
            x->looked_pairs * t->look_pair_flops,
        t->block_bytes + (x->wanted > 0 ? t->last_bytes + t->head_bytes : 0) +
            (x->read + x->written) * t->slot_bytes + x->outputs * t->output_bytes +
            x->experts * t->expert_bytes};
}

struct cost cost_of_context(const struct network *n, double rows)
{
    static const enum role roles[] = {ROLE_FUSE, ROLE_K, ROLE_V};
    const struct config *c = &n->config;
    const size_t some = c->chains ? 1 : sizeof roles / sizeof *roles;
    struct cost sum = {0};
    for (size_t i = 0; rows > 0 && i < some; i++)
        for (size_t l = 0; l < role_tensors(c, roles[i]); l++) {
            size_t N, K;
            role_shape(c, roles[i], &N, &K);
            sum.flops += 2 * rows * (double)N * (double)K;
            sum.bytes += dtype_bytes(quantization_dtype(n->quant, c, roles[i], l, n->dtype), N, K);
        }
    if (c->chains) /* the rest is that of a pass over these rows */
        return sum;
    sum.bytes += 2 * rows * (double)(c->layers * c->kv_heads * c->head_dim *
                                     dtype_value_bytes(n->kv_dtype));
    return sum;
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

void cost_look(struct extent *x, double rows, double keys)
{
    x->looked += rows;
    x->looked_pairs += rows * keys;
    x->written += rows / 2; /* half a slot */
}

void cost_experts(const struct cost_model *t, struct extent *x)
{
    double row = 1 - t->share;
    x->experts = (t->experts - t->last_experts) * (1 - pow(row, x->rows)) +
                 t->last_experts * (1 - pow(row, x->wanted - x->compared));
}

void cost_join(struct extent *x, double times, const struct extent *more)
{
    x->rows += times * more->rows;
    x->pairs += times * more->pairs;
    x->wanted += times * more->wanted;
    x->compared += times * more->compared;
    x->read += times * more->read;
    x->written += times * more->written;
    x->looked += times * more->looked;
    x->looked_pairs += times * more->looked_pairs;
    x->outputs += times * more->outputs;
    x->experts += times * more->experts;
}
