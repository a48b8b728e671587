/* train.h - the operations of training, in addition to ops.h: gradients of the operations of a pass
 * and of those around time mixing (kernels/mixing.h), and the update of weights. Every back end has
 * them. On cuda the operations around time mixing give no gradients of a layer's own vectors
 * (shares, biases, gains, the bonus), because latent models are trained on the CPU.
 *
 * Activations are fp32 throughout. One thread or block computes each output, and each sum has one
 * order, so a training repeats bit for bit on a device. tests/model/test-train.c compares the
 * gradients of the cpu back end with finite differences. The other back ends are compared with ref,
 * as for all operations. */
#pragma once

#include "kernels/ops.h"

/* A factor of a product: element (i, k) is x[i * row + k * step]. One of the strides row and step
 * is 1; exchanging them transposes the factor. */
struct factor {
    const float *x;
    size_t row, step;
};

/* c[M, N] = a b^T, with a [M, K] and b [N, K]. The products of a linear layer have this form: y = x
 * W^T, and from the gradient dy of y: dx = dy W and dW = dy^T x.
 *
 * dtype F32: c_ij = sum_k a_ik b_jk. BF16: both factors are rounded to bf16 (to nearest, ties to
 * even); inputs, outputs and sums are fp32, as in mixed precision training with bf16 products
 * (Micikevicius et al. 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv 1905.12322). Sums go in
 * ascending order of k; cuda may sum parts of K first and then the parts, also in order. Where the
 * processor multiplies pairs of bf16, it chooses the order within a pair, and subnormal factors
 * count as zero. */
struct gemm {
    size_t M, N, K;
    struct factor a, b;
    float *c;
    const float *plus; /* [M, N], added to the products; NULL: none. May be c */
    size_t ldc;        /* row stride of c and of plus */
    enum dtype dtype;  /* F32 or BF16 */
};

/* Gradients of attention. The rows of a sequence (from seqs[].row_begin on) read its keys (from
 * slot_begin on): all of them, or if `causal` keys 0 .. pos. With a block-causal mask pos is the
 * end of the row's block. */
struct attn_back {
    const float *q;      /* [R, H*E], as in the forward pass (rotated) */
    const float *k, *v;  /* [T, K*E], as in the forward pass */
    const float *dy;     /* [R, H*E] gradient of the output */
    float *dq, *dk, *dv; /* shapes of q, k, v; overwritten */
    const struct attn_seq *seqs;
    const int32_t *pos;  /* [R] the last key that a row reads, ascending in a sequence */
    size_t n_seqs, max_slots; /* max_slots: limit of slots and of rows of one sequence */
    size_t heads, kv_heads, head_dim;
    int causal;
    size_t window; /* > 0, causal: a row sees only the last `window` positions up to its own */
    int half; /* 1: factors of products may be rounded to bf16 */
};
#define ATTENTION_BACK_CUDA_MOST 128 /* largest head dim on cuda; the host has no limit */

/* AdamW (Loshchilov & Hutter 2019, Algorithm 2). */
struct adamw {
    double rate, beta1, beta2, eps, decay; /* decay is decoupled: w -= rate * decay * w */
    double grad_scale;                     /* gradients are first multiplied by this (clipping) */
    int64_t step;                          /* number of this step, from 1, for the bias
                                            * correction */
};

struct wkv_back;   /* kernels/wkv.h */
struct shift_back; /* kernels/mixing.h */
struct squash_back;
struct heads_out_back;
struct removal_back;

enum { SQUARES_PARTS = 64 };

struct train_ops {
    /* Computes n products c = a b^T one after the other (struct gemm). A factor that the previous
     * product also has is prepared only once, so the previous product must not write it. work:
     * gemm_work(...) bytes for the largest M, N and K of the products. */
    void (*gemm)(struct backend *backend, const struct gemm *product, size_t n, void *work);
    size_t (*gemm_work)(const struct backend *backend, size_t M, size_t N, size_t K);
    /* dx[T, D] += gradient of the input x of rmsnorm; dg[D] += gradient of the gain (`grad` is the
     * gain [D]); dg NULL: not wanted. work: 2 T floats. */
    void (*rmsnorm_back)(struct backend *backend, float *dx, float *dg, const float *dy,
                         const float *x, const float *grad, size_t T, size_t D, double eps,
                         float *work);
    /* Gradients of y = silu(gate) * up, n values. dgate may be gate, dup may be dy. */
    void (*swiglu_back)(struct backend *backend, float *dgate, float *dup, const float *dy,
                        const float *gate, const float *up, size_t n);
    /* work: attention_back_work(...) floats. rows: at least the rows of all sequences; len: at
     * least the rows and the keys of one sequence. */
    void (*attention_back)(struct backend *backend, const struct attn_back *back, float *work);
    size_t (*attention_back_work)(const struct backend *backend, size_t rows, size_t len,
                                  size_t heads, size_t head_dim);
    /* y[t, :] = x[place[t], :], or zeros if place[t] < 0. This puts rows that ops.rmsnorm without a
     * gain picked back among all T rows. y must not overlap x. */
    void (*spread)(struct backend *backend, float *y, const float *x, const int32_t *place,
                   size_t T, size_t D);
    /* dw[V, D] += gradient of the matrix of ops.embed: dy[t, :] is added to row token[t], in
     * ascending order of t. */
    void (*embed_back)(struct backend *backend, float *dw, const float *dy, const int32_t *token,
                       size_t T, size_t V, size_t D);
    void (*add)(struct backend *backend, float *y, const float *x, size_t n); /* y += x, n values */
    /* Gradients of time mixing: kernels/wkv.h. work: wkv_back_work(...) bytes, for at least this
     * number of sequences and of rows of one sequence. */
    void (*wkv_back)(struct backend *backend, const struct wkv_back *back, void *work);
    size_t (*wkv_back_work)(const struct backend *backend, size_t n_seqs, size_t max_rows,
                            size_t heads, size_t head_dim);
    /* Gradients of the operations of their names in kernels/mixing.h. */
    void (*shift_back)(struct backend *backend, const struct shift_back *back);
    void (*squash_back)(struct backend *backend, const struct squash_back *back);
    void (*heads_out_back)(struct backend *backend, const struct heads_out_back *back);
    void (*removal_back)(struct backend *backend, const struct removal_back *back);
    /* loss[t] = weight[t] * (log sum_v e^logits[t, v] - logits[t, target[t]]), in nats. logits[T,
     * V] are overwritten by the gradient of the sum of losses. A row of weight 0 gives zeros. */
    void (*cross_entropy)(struct backend *backend, float *logits, const int32_t *target,
                          const float *weight, size_t T, size_t V, double *loss);
    /* Returns the sum of x_i^2, and waits for it. work: SQUARES_PARTS doubles in memory of the back
     * end. */
    double (*squares)(struct backend *backend, const float *x, size_t n, double *work);
    void (*adamw)(struct backend *backend, float *w, float *m, float *value, const float *grad,
                  size_t n, const struct adamw *a);
};

/* The training operations that belong to a table of operations. Only programs that call this
 * function link the gradients of the CPU. */
C_BEGIN
const struct train_ops *train_ops_of(const struct ops *ops);
C_END
