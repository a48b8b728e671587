/* parts.c - operations that all layers use, forward and backward: products, norms, query rows; see
 * backprop_run.h. For y = x W^T the gradients are dW = dy^T x and dx = dy W. gemm takes strides, so
 * no matrix is transposed in memory. */
#include <assert.h>

#include "lib/checkpoint/role.h"
#include "lib/train/backprop/backprop_run.h"

enum { PRODUCTS = 6 }; /* most products of one call */

float *backprop_values(struct backprop *backprop, enum role role, size_t layer)
{
    return parameters_seen(backprop->parameters, role, layer);
}

static float *gradients_of(struct backprop *backprop, enum role role, size_t layer)
{
    return parameters_gradients(backprop->parameters, role, layer);
}

float *backprop_sum(struct backprop *backprop, enum role role, size_t layer)
{
    return backprop->of == BACKPROP_LATENTS ? NULL : gradients_of(backprop, role, layer);
}

struct gemm backprop_linear(struct backprop *backprop, float *y, const float *x, enum role role,
                            size_t layer, size_t T, const float *plus)
{
    size_t latents, K;
    role_shape(&backprop->c, role, &latents, &K);
    return (struct gemm){.M = T, .N = latents, .K = K, .a = {x, K, 1},
                         .b = {backprop_values(backprop, role, layer), K, 1},
                         .c = y, .plus = plus, .ldc = latents, .dtype = backprop->dtype};
}

struct gemm backprop_input(struct backprop *backprop, float *dx, const float *dy, enum role role,
                           size_t layer, size_t T, const float *plus)
{
    size_t latents, K;
    role_shape(&backprop->c, role, &latents, &K);
    return (struct gemm){.M = T, .N = K, .K = latents, .a = {dy, latents, 1},
                         .b = {backprop_values(backprop, role, layer), 1, K},
                         .c = dx, .plus = plus, .ldc = K, .dtype = backprop->dtype};
}

struct gemm backprop_weights(struct backprop *backprop, const float *dy, const float *x,
                             enum role role, size_t layer, size_t T)
{
    size_t latents, K;
    if (backprop->of == BACKPROP_LATENTS)
        return (struct gemm){0};
    role_shape(&backprop->c, role, &latents, &K);
    float *dw = gradients_of(backprop, role, layer);
    return (struct gemm){.M = latents, .N = K, .K = T, .a = {dy, 1, latents}, .b = {x, 1, K},
                         .c = dw, .plus = role_per_layer(role) ? NULL : dw, .ldc = K,
                         .dtype = backprop->dtype};
}

void backprop_multiply(struct backprop *backprop, const struct gemm *gemm, size_t n)
{
    struct gemm some[PRODUCTS];
    size_t m = 0;
    assert(n <= PRODUCTS);
    for (size_t i = 0; i < n; i++)
        if (gemm[i].M)
            some[m++] = gemm[i];
    backprop->train->gemm(backprop->b, some, m, backprop->scratch);
}

void backprop_norm(struct backprop *backprop, float *y, const float *x, enum role role,
                   size_t layer, size_t T)
{
    backprop->b->ops->rmsnorm(backprop->b, y, x, NULL, backprop_values(backprop, role, layer), T,
                              backprop->c.width, backprop->c.norm_eps);
}

void backprop_norm_back(struct backprop *backprop, float *dx, const float *dy, const float *x,
                        enum role role, size_t layer, size_t T)
{
    backprop->train->rmsnorm_back(backprop->b, dx, backprop_sum(backprop, role, layer), dy, x,
                                  backprop_values(backprop, role, layer), T, backprop->c.width,
                                  backprop->c.norm_eps, backprop->scratch);
}

void backprop_gather(struct backprop *backprop, const struct askers *askers, float *out,
                     const float *x, size_t wide)
{
    backprop->b->ops->rmsnorm(backprop->b, out, x, askers->row, NULL, askers->n, wide, 0);
}

void backprop_spread(struct backprop *backprop, float *out, const float *x, size_t wide)
{
    backprop->train->spread(backprop->b, out, x, backprop->at.place, backprop->at.all.n, wide);
}

/* Uses backprop->top as scratch: nothing reads it after head_loss(). */
void backprop_spread_stream(struct backprop *backprop)
{
    size_t D = backprop->c.width;
    backprop->b->ops->copy(backprop->b, backprop->top, backprop->dx,
                           backprop->at.scored.n * D * sizeof *backprop->dx);
    backprop_spread(backprop, backprop->dx, backprop->top, D);
}

void backprop_clear(struct backprop *backprop, float *x, size_t n)
{
    backprop->b->ops->clear(backprop->b, x, n * sizeof *x);
}
