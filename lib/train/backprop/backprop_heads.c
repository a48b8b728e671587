/* backprop_heads.c - queries, keys and values of a layer, forward and backward; see backprop_run.h:
 *
 *   q = rope(n(x Wq^T + bq)), k = rope(n(x Wk^T + bk)), v = x Wv^T + bv
 *
 * with a bias, a norm of each head and a rotation only where the network has them (struct qkv of
 * kernels/ops.h). A sum with a bias is a product with a column of ones, in fp32, as is the gradient
 * of the bias: db = dy^T 1. */
#include "lib/train/backprop/backprop_run.h"

/* y[n, N] = the bias in each row. */
static struct gemm bias(struct backprop *t, float *y, enum role r, size_t l, size_t n)
{
    size_t N, one;
    role_shape(&t->c, r, &N, &one);
    return (struct gemm){.M = n, .N = N, .K = 1, .a = {t->ones, 1, 1},
                         .b = {backprop_values(t, r, l), 1, 1}, .c = y, .ldc = N,
                         .dtype = DTYPE_F32};
}

/* Gradient of the bias += dy^T 1. */
static struct gemm bias_back(struct backprop *t, const float *dy, enum role r, size_t l, size_t n)
{
    size_t N, one;
    float *db = backprop_sum(t, r, l);
    role_shape(&t->c, r, &N, &one);
    return (struct gemm){.M = db ? N : 0, .N = 1, .K = n, .a = {dy, 1, N},
                         .b = {t->ones, t->rows, 1}, .c = db, .plus = db, .ldc = 1,
                         .dtype = DTYPE_F32};
}

/* to = the norm of each of n heads of x. */
static void norm_heads(struct backprop *t, float *to, const float *x, enum role r, size_t l,
                       size_t n)
{
    t->b->ops->rmsnorm(t->b, to, x, NULL, backprop_values(t, r, l), n, t->c.head_dim,
                       t->c.norm_eps);
}

void backprop_heads(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                    const float *n1)
{
    const struct config *c = &t->c;
    const size_t T = t->at.all.n, H = c->heads, K = c->kv_heads;
    float *q = c->qk_norm ? y->raw_q : y->q, *k = c->qk_norm ? y->raw_k : y->k;
    if (c->qkv_bias) {
        const struct gemm b[] = {bias(t, q, ROLE_Q_BIAS, l, who->n), bias(t, k, ROLE_K_BIAS, l, T),
                                 bias(t, y->v, ROLE_V_BIAS, l, T)};
        backprop_multiply(t, b, 3);
    }
    const struct gemm qkv[] = {
        backprop_linear(t, q, n1, ROLE_Q, l, who->n, c->qkv_bias ? q : NULL),
        backprop_linear(t, k, y->n1, ROLE_K, l, T, c->qkv_bias ? k : NULL),
        backprop_linear(t, y->v, y->n1, ROLE_V, l, T, c->qkv_bias ? y->v : NULL)};
    backprop_multiply(t, qkv, 3);
    if (c->qk_norm) {
        norm_heads(t, y->q, q, ROLE_Q_NORM, l, who->n * H);
        norm_heads(t, y->k, k, ROLE_K_NORM, l, T * K);
    }
    if (c->unrotated[l])
        return;
    t->b->ops->rope(t->b, y->q, who->table, who->n, H, c->head_dim, 1);
    t->b->ops->rope(t->b, y->k, t->at.all.table, T, K, c->head_dim, 1);
}

/* The gradient of n heads x before their norm; it takes the place of the rotated heads, which are
 * not read any more. */
static float *norm_heads_back(struct backprop *t, float *to, const float *dy, const float *x,
                              enum role r, size_t l, size_t n)
{
    const size_t E = t->c.head_dim;
    backprop_clear(t, to, n * E);
    t->train->rmsnorm_back(t->b, to, backprop_sum(t, r, l), dy, x, backprop_values(t, r, l), n, E,
                           t->c.norm_eps, t->scratch);
    return to;
}

void backprop_heads_back(struct backprop *t, const struct layer_tape *y, size_t l,
                         const struct askers *who)
{
    const struct config *c = &t->c;
    const size_t T = t->at.all.n, H = c->heads, K = c->kv_heads;
    const int some = who->n < T;
    float *dq = t->dq, *dk = t->dk, *rows = some ? t->final : t->dn;
    if (!c->unrotated[l]) {
        t->b->ops->rope(t->b, dq, who->table, who->n, H, c->head_dim, -1);
        t->b->ops->rope(t->b, dk, t->at.all.table, T, K, c->head_dim, -1);
    }
    if (c->qk_norm) {
        dq = norm_heads_back(t, y->q, dq, y->raw_q, ROLE_Q_NORM, l, who->n * H);
        dk = norm_heads_back(t, y->k, dk, y->raw_k, ROLE_K_NORM, l, T * K);
    }
    if (c->qkv_bias) {
        const struct gemm b[] = {bias_back(t, dq, ROLE_Q_BIAS, l, who->n),
                                 bias_back(t, dk, ROLE_K_BIAS, l, T),
                                 bias_back(t, t->dv, ROLE_V_BIAS, l, T)};
        backprop_multiply(t, b, 3);
    }
    const struct gemm q[] = {backprop_weights(t, dq, some ? t->asked : y->n1, ROLE_Q, l, who->n),
                             backprop_input(t, rows, dq, ROLE_Q, l, who->n, NULL)};
    backprop_multiply(t, q, 2);
    if (some) {
        backprop_spread(t, t->dn, rows, c->width);
        backprop_spread_stream(t);
    }
    const struct gemm kv[] = {backprop_weights(t, dk, y->n1, ROLE_K, l, T),
                              backprop_weights(t, t->dv, y->n1, ROLE_V, l, T),
                              backprop_input(t, t->dn, dk, ROLE_K, l, T, t->dn),
                              backprop_input(t, t->dn, t->dv, ROLE_V, l, T, t->dn)};
    backprop_multiply(t, kv, 4);
}
