/* parts.c - operations that all layers use, forward and backward: products, norms, rows that ask;
 * see backprop_run.h. For y = x W^T: dW = dy^T x and dx = dy W. All three go through the strided
 * gemm, so nothing is transposed. */
#include <assert.h>

#include "lib/checkpoint/role.h"
#include "lib/train/backprop/backprop_run.h"

enum { PRODUCTS = 6 }; /* most products of one call */

float *backprop_values(struct backprop *t, enum role r, size_t l)
{
    return parameters_seen(t->parameters, r, l);
}

static float *gradients_of(struct backprop *t, enum role r, size_t l)
{
    return parameters_gradients(t->parameters, r, l);
}

float *backprop_sum(struct backprop *t, enum role r, size_t l)
{
    return t->of == BACKPROP_LATENTS ? NULL : gradients_of(t, r, l);
}

struct gemm backprop_linear(struct backprop *t, float *y, const float *x, enum role r, size_t l,
                            size_t T, const float *plus)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    return (struct gemm){.M = T, .N = N, .K = K, .a = {x, K, 1},
                         .b = {backprop_values(t, r, l), K, 1},
                         .c = y, .plus = plus, .ldc = N, .dtype = t->dtype};
}

struct gemm backprop_input(struct backprop *t, float *dx, const float *dy, enum role r, size_t l,
                           size_t T, const float *plus)
{
    size_t N, K;
    role_shape(&t->c, r, &N, &K);
    return (struct gemm){.M = T, .N = K, .K = N, .a = {dy, N, 1},
                         .b = {backprop_values(t, r, l), 1, K},
                         .c = dx, .plus = plus, .ldc = K, .dtype = t->dtype};
}

struct gemm backprop_weights(struct backprop *t, const float *dy, const float *x, enum role r,
                             size_t l, size_t T)
{
    size_t N, K;
    if (t->of == BACKPROP_LATENTS)
        return (struct gemm){0};
    role_shape(&t->c, r, &N, &K);
    float *dw = gradients_of(t, r, l);
    return (struct gemm){.M = N, .N = K, .K = T, .a = {dy, 1, N}, .b = {x, 1, K},
                         .c = dw, .plus = role_per_layer(r) ? NULL : dw, .ldc = K,
                         .dtype = t->dtype};
}

void backprop_multiply(struct backprop *t, const struct gemm *g, size_t n)
{
    struct gemm some[PRODUCTS];
    size_t m = 0;
    assert(n <= PRODUCTS);
    for (size_t i = 0; i < n; i++)
        if (g[i].M)
            some[m++] = g[i];
    t->train->gemm(t->b, some, m, t->scratch);
}

void backprop_norm(struct backprop *t, float *y, const float *x, enum role r, size_t l, size_t T)
{
    t->b->ops->rmsnorm(t->b, y, x, NULL, backprop_values(t, r, l), T, t->c.width, t->c.norm_eps);
}

void backprop_norm_back(struct backprop *t, float *dx, const float *dy, const float *x,
                        enum role r, size_t l, size_t T)
{
    t->train->rmsnorm_back(t->b, dx, backprop_sum(t, r, l), dy, x, backprop_values(t, r, l), T,
                           t->c.width, t->c.norm_eps, t->scratch);
}

void backprop_gather(struct backprop *t, const struct askers *a, float *out, const float *x,
                     size_t wide)
{
    t->b->ops->rmsnorm(t->b, out, x, a->row, NULL, a->n, wide, 0);
}

void backprop_spread(struct backprop *t, float *out, const float *x, size_t wide)
{
    t->train->spread(t->b, out, x, t->at.place, t->at.all.n, wide);
}

/* t->top is free: it was last read before the backward pass. */
void backprop_spread_stream(struct backprop *t)
{
    size_t D = t->c.width;
    t->b->ops->copy(t->b, t->top, t->dx, t->at.scored.n * D * sizeof *t->dx);
    backprop_spread(t, t->dx, t->top, D);
}

void backprop_clear(struct backprop *t, float *x, size_t n)
{
    t->b->ops->clear(t->b, x, n * sizeof *x);
}
