/* train.h - the operations that training adds to ops.h. Host memory, CPU back end; gradients are
 * proven against finite differences in tests/model/test-train.c.
 */
#ifndef KERNELS_TRAIN_H
#define KERNELS_TRAIN_H

#include "kernels/ops.h"

/* Gradients of attention over sequences of equal length in which every row is also a key. */
struct attn_back {
    const float *q, *k,
        *v;              /* [T, H*E], [T, K*E], [T, K*E]: as the forward pass saw them (rotated) */
    const float *dy;     /* [T, H*E] gradient of the output */
    float *dq, *dk, *dv; /* same shapes as q, k, v; overwritten */
    size_t seqs, len;    /* T = seqs * len; positions 0..len-1 in each */
    size_t heads, kv_heads, head_dim;
    int causal;
};

/* AdamW (Loshchilov & Hutter 2019, Algorithm 2). */
struct adamw {
    double rate, beta1, beta2, eps, decay; /* decay is decoupled: w -= rate * decay * w */
    double grad_scale;                     /* gradients are multiplied by this first (clipping) */
    int64_t step;                          /* from 1, for the bias correction */
};

struct train_ops {
    /* Packs new values into an existing matrix. */
    void (*mat_refill)(struct backend *b, struct mat *m, const float *w);
    /* dx[T, D] = gradient of rmsnorm's input (dx may be dy); dg[D] += gradient of the gain.
     * work: 2 T floats. */
    void (*rmsnorm_back)(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                         const float *g, size_t T, size_t D, double eps, float *work);
    /* Gradients of y = silu(gate) * up, n values. dgate may be gate's buffer, dup may be dy's. */
    void (*swiglu_back)(struct backend *b, float *dgate, float *dup, const float *dy,
                        const float *gate, const float *up, size_t n);
    void (*attention_back)(struct backend *b, const struct attn_back *a, float *work);
    size_t (*attention_back_work)(const struct backend *b, size_t len,
                                  size_t head_dim); /* floats */
    /* logits[T, V] become d(sum_t weight[t] * CE_t)/dlogits; returns that sum. A row of weight 0
     * gives zeros. work: T doubles. */
    double (*cross_entropy)(struct backend *b, float *logits, const int32_t *target,
                            const float *weight, size_t T, size_t V, double *work);
    void (*adamw)(struct backend *b, float *w, float *m, float *v, const float *g, size_t n,
                  const struct adamw *a);
};

/* The table that belongs to a back end made by ops_cpu(). */

#endif
