/* cost.c - flops and bytes of passes; see cost.h.
 *
 * Shapes and formats come from the roles, one by one, because a quantized network has several
 * formats, and a settled network that is not loaded has no matrices yet. Costs are whole numbers in
 * doubles, exact to 2^53, so they may be added in any order. */
#include "lib/network/cost.h"

#include <math.h>

/* 1: the role is a matrix of the feed-forward block of the last layer. */
static int is_last_ffn(const struct config *config, enum role role)
{
    return role_has(config, role, config->layers - 1) &&
           (role == ROLE_GATE || role == ROLE_UP || role == ROLE_DOWN || role >= ROLE_ROUTER);
}

struct cost_model cost_model_of(const struct network *n)
{
    const struct config *config = &n->config;
    double E = (double)config->head_dim, layers = (double)config->layers;
    size_t rows, cols;
    role_shape(config, ROLE_HEAD, &rows, &cols);
    enum role answers = config->tied ? ROLE_EMBED : ROLE_HEAD;
    enum dtype head = quantization_dtype(n->quant, config, answers, 0, n->dtype);
    struct cost_model model = {.pair_flops = 4 * layers * (double)config->heads * E,
                               .answer_flops = 2 * (double)config_answers(config) *
                                               (double)config->width,
                               .head_bytes = dtype_bytes(head, rows, cols),
                               .slot_bytes = 2 * layers * (double)config->kv_heads * E *
                                             (double)dtype_value_bytes(n->kv_dtype),
                               .look_pair_flops = 4 * (double)config->heads * E,
                               .output_bytes = 2 * layers * (double)config->width *
                                               (double)dtype_value_bytes(n->backend->act)};
    if (config_recurs(config)) { /* `each`: flops per value of the state (kernels/wkv.h) */
        double each = config->mixer == MIXER_RWKV6 ? 5 : 9;
        model.row_flops = each * layers * (double)config->heads * E * E;
        model.slot_bytes = layers * (double)config_state(config) * sizeof(float);
    }
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role role = (enum role)i;
        int is_bias = role_is_vector(role) && !role_is_norm(role);
        if (!role_per_layer(role) || role_is_norm(role) || role == ROLE_CROSS_K ||
            role == ROLE_CROSS_V)
            continue; /* CROSS_K and CROSS_V multiply latents, once a text */
        role_shape(config, role, &rows, &cols);
        /* passes do not read these three matrices in the first layer */
        size_t first = role == ROLE_FIRST || role == ROLE_FIRST_DOWN || role == ROLE_FIRST_UP;
        double times = role_layers(config, role) ? (double)(role_layers(config, role) - first) : 0;
        /* each 1: a matrix of every expert */
        const int each = role_each(config, role) > 1, last = is_last_ffn(config, role);
        double *bytes = each ? &model.expert_bytes : &model.block_bytes;
        double of_layer = (each ? (double)config->used : 1) * (is_bias ? 1 : 2) * (double)rows *
                          (double)cols;
        model.row_flops += times * of_layer;
        model.last_flops += last ? of_layer : 0;
        for (size_t layer = first; layer < role_tensors(config, role); layer++) {
            double size = dtype_bytes(
                is_bias ? DTYPE_F32 : quantization_dtype(n->quant, config, role, layer, n->dtype),
                rows, cols);
            *(last && !each && layer + 1 == role_tensors(config, role) ? &model.last_bytes
                                                                       : bytes) += size;
        }
    }
    model.experts = (layers - (double)config->dense) * (double)config->experts;
    model.last_experts = (double)config->experts;
    model.share = config->experts ? (double)config->used / (double)config->experts : 0;
    model.expert_bytes /= config->experts ? model.experts : 1;
    model.look_flops = model.row_flops / layers +
                       (layers - 1) * (double)config->kv_heads * E *
                           (2 * (double)config->width + (config->qkv_bias ? 1 : 0));
    model.row_flops -= model.last_flops;
    return model;
}

struct cost cost_of(const struct cost_model *model, const struct extent *extent)
{
    return (struct cost){
        extent->rows * model->row_flops + extent->pairs * model->pair_flops +
            extent->wanted * model->answer_flops +
            (extent->wanted - extent->compared) * model->last_flops +
            extent->looked * model->look_flops + extent->looked_pairs * model->look_pair_flops,
        model->block_bytes + (extent->wanted > 0 ? model->last_bytes + model->head_bytes : 0) +
            (extent->read + extent->written) * model->slot_bytes +
            extent->outputs * model->output_bytes + extent->experts * model->expert_bytes};
}

struct cost cost_of_context(const struct network *n, double rows)
{
    static const enum role roles[] = {ROLE_FUSE, ROLE_K, ROLE_V};
    const struct config *config = &n->config;
    const size_t some = config->chains ? 1 : sizeof roles / sizeof *roles;
    struct cost sum = {0};
    for (size_t i = 0; rows > 0 && i < some; i++)
        for (size_t layer = 0; layer < role_tensors(config, roles[i]); layer++) {
            size_t outs, K;
            role_shape(config, roles[i], &outs, &K);
            sum.flops += 2 * rows * (double)outs * (double)K;
            sum.bytes += dtype_bytes(
                quantization_dtype(n->quant, config, roles[i], layer, n->dtype), outs, K);
        }
    if (config->chains) /* pass_fuse() caches nothing; cost_of() has the pass over these rows */
        return sum;
    sum.bytes += 2 * rows * (double)(config->layers * config->kv_heads * config->head_dim *
                                     dtype_value_bytes(n->kv_dtype));
    return sum;
}

void cost_add(struct cost *sum, struct cost more)
{
    sum->flops += more.flops;
    sum->bytes += more.bytes;
}

void cost_causal(struct extent *extent, double rows, double keys)
{
    extent->rows += rows;
    extent->pairs += rows * keys - rows * (rows - 1) / 2;
}

void cost_full(struct extent *extent, double rows, double keys)
{
    extent->rows += rows;
    extent->pairs += rows * keys;
}

void cost_look(struct extent *extent, double rows, double keys)
{
    extent->looked += rows;
    extent->looked_pairs += rows * keys;
    extent->written += rows / 2; /* values only: half a slot */
}

void cost_experts(const struct cost_model *model, struct extent *extent)
{
    double row = 1 - model->share; /* probability that a row does not use an expert */
    extent->experts = (model->experts - model->last_experts) * (1 - pow(row, extent->rows)) +
                      model->last_experts * (1 - pow(row, extent->wanted - extent->compared));
}

void cost_join(struct extent *extent, double times, const struct extent *more)
{
    extent->rows += times * more->rows;
    extent->pairs += times * more->pairs;
    extent->wanted += times * more->wanted;
    extent->compared += times * more->compared;
    extent->read += times * more->read;
    extent->written += times * more->written;
    extent->looked += times * more->looked;
    extent->looked_pairs += times * more->looked_pairs;
    extent->outputs += times * more->outputs;
    extent->experts += times * more->experts;
}
