/* backprop_heads.c - queries, keys and values of a layer, forward and backward; see backprop_run.h:
 *
 *   q = rope(n(x Wq^T + bq)), k = rope(n(x Wk^T + bk)), v = x Wv^T + bv
 *
 * n is the norm of each head. Biases, n and rope exist only where the network has them (struct qkv
 * of kernels/ops.h). A product with a column of ones adds the bias, in fp32; the gradient of the
 * bias is such a product too: db = dy^T 1. */
#include "lib/train/backprop/backprop_run.h"

/* The product that writes the bias into each row of y[n, width]. */
static struct gemm bias(struct backprop *backprop, float *y, enum role role, size_t layer, size_t n)
{
    size_t latents, one;
    role_shape(&backprop->c, role, &latents, &one);
    return (struct gemm){.M = n, .N = latents, .K = 1, .a = {backprop->ones, 1, 1},
                         .b = {backprop_values(backprop, role, layer), 1, 1}, .c = y,
                         .ldc = latents, .dtype = DTYPE_F32};
}

/* The product gradient of the bias += dy^T 1; empty (M 0) with BACKPROP_LATENTS. */
static struct gemm bias_back(struct backprop *backprop, const float *dy, enum role role,
                             size_t layer, size_t n)
{
    size_t latents, one;
    float *db = backprop_sum(backprop, role, layer);
    role_shape(&backprop->c, role, &latents, &one);
    return (struct gemm){.M = db ? latents : 0, .N = 1, .K = n, .a = {dy, 1, latents},
                         .b = {backprop->ones, backprop->rows, 1}, .c = db, .plus = db, .ldc = 1,
                         .dtype = DTYPE_F32};
}

/* to[n, E] = the norm of each head x[n, E]. */
static void norm_heads(struct backprop *backprop, float *to, const float *x, enum role role,
                       size_t layer, size_t n)
{
    backprop->b->ops->rmsnorm(backprop->b, to, x, NULL, backprop_values(backprop, role, layer), n,
                              backprop->c.head_dim, backprop->c.norm_eps);
}

void backprop_heads(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                    const struct askers *who, const float *n1)
{
    const struct config *config = &backprop->c;
    const size_t T = backprop->at.all.n, H = config->heads, K = config->kv_heads;
    float *query = config->qk_norm ? tape->raw_q : tape->q,
          *k = config->qk_norm ? tape->raw_k : tape->k;
    if (config->qkv_bias) {
        const struct gemm biases[] = {bias(backprop, query, ROLE_Q_BIAS, layer, who->n),
                                      bias(backprop, k, ROLE_K_BIAS, layer, T),
                                      bias(backprop, tape->v, ROLE_V_BIAS, layer, T)};
        backprop_multiply(backprop, biases, 3);
    }
    const struct gemm qkv[] = {
        backprop_linear(backprop, query, n1, ROLE_Q, layer, who->n,
                        config->qkv_bias ? query : NULL),
        backprop_linear(backprop, k, tape->n1, ROLE_K, layer, T, config->qkv_bias ? k : NULL),
        backprop_linear(backprop, tape->v, tape->n1, ROLE_V, layer, T,
                        config->qkv_bias ? tape->v : NULL)};
    backprop_multiply(backprop, qkv, 3);
    if (config->qk_norm) {
        norm_heads(backprop, tape->q, query, ROLE_Q_NORM, layer, who->n * H);
        norm_heads(backprop, tape->k, k, ROLE_K_NORM, layer, T * K);
    }
    if (config->unrotated[layer])
        return;
    backprop->b->ops->rope(backprop->b, tape->q, who->table, who->n, H, config->head_dim, 1);
    backprop->b->ops->rope(backprop->b, tape->k, backprop->at.all.table, T, K, config->head_dim, 1);
}

/* to[n, E] = the gradient of the heads x[n, E] before their norm. Returns `to`. The callers pass
 * the rotated heads as `to`, because the backward pass does not read these heads any more. */
static float *norm_heads_back(struct backprop *backprop, float *to, const float *dy, const float *x,
                              enum role role, size_t layer, size_t n)
{
    const size_t E = backprop->c.head_dim;
    backprop_clear(backprop, to, n * E);
    backprop->train->rmsnorm_back(backprop->b, to, backprop_sum(backprop, role, layer), dy, x,
                                  backprop_values(backprop, role, layer), n, E,
                                  backprop->c.norm_eps, backprop->scratch);
    return to;
}

void backprop_heads_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who)
{
    const struct config *config = &backprop->c;
    const size_t T = backprop->at.all.n, H = config->heads, K = config->kv_heads;
    const int some = who->n < T;
    float *dq = backprop->dq, *dk = backprop->dk, *rows = some ? backprop->final : backprop->dn;
    if (!config->unrotated[layer]) {
        backprop->b->ops->rope(backprop->b, dq, who->table, who->n, H, config->head_dim, -1);
        backprop->b->ops->rope(backprop->b, dk, backprop->at.all.table, T, K, config->head_dim, -1);
    }
    if (config->qk_norm) {
        dq = norm_heads_back(backprop, tape->q, dq, tape->raw_q, ROLE_Q_NORM, layer, who->n * H);
        dk = norm_heads_back(backprop, tape->k, dk, tape->raw_k, ROLE_K_NORM, layer, T * K);
    }
    if (config->qkv_bias) {
        const struct gemm biases[] = {bias_back(backprop, dq, ROLE_Q_BIAS, layer, who->n),
                                      bias_back(backprop, dk, ROLE_K_BIAS, layer, T),
                                      bias_back(backprop, backprop->dv, ROLE_V_BIAS, layer, T)};
        backprop_multiply(backprop, biases, 3);
    }
    const struct gemm queries[] = {
        backprop_weights(backprop, dq, some ? backprop->asked : tape->n1, ROLE_Q, layer, who->n),
        backprop_input(backprop, rows, dq, ROLE_Q, layer, who->n, NULL)};
    backprop_multiply(backprop, queries, 2);
    if (some) {
        backprop_spread(backprop, backprop->dn, rows, config->width);
        backprop_spread_stream(backprop);
    }
    const struct gemm kv[] = {
        backprop_weights(backprop, dk, tape->n1, ROLE_K, layer, T),
        backprop_weights(backprop, backprop->dv, tape->n1, ROLE_V, layer, T),
        backprop_input(backprop, backprop->dn, dk, ROLE_K, layer, T, backprop->dn),
        backprop_input(backprop, backprop->dn, backprop->dv, ROLE_V, layer, T, backprop->dn)};
    backprop_multiply(backprop, kv, 4);
}
