/* train.h - the operations that gradients add to ops.h: of a pass, and of what is around time
 * mixing (kernels/mixing.h). Every back end has them, but on cuda those alone that a gradient of
 * latents needs: there no gradient of a vector (a gain, a share) may be asked for, and nothing is
 * updated.
 * Activations are fp32 throughout. Gradients of the cpu back end are proven against finite
 * differences in tests/model/test-train.c, the others against ref, as all operations are.
 */
#ifndef KERNELS_TRAIN_H
#define KERNELS_TRAIN_H

#include "kernels/ops.h"

/* One factor of a product: element (i, k) lies at x[i * row + k * step]. One of the strides is 1; a
 * transpose is an exchange of the two. */
struct factor {
    const float *x;
    size_t row, step;
};

/* c[M, N] = a b^T, a [M, K], b [N, K]: the products of a linear layer y = x W^T, with which y, and
 * from its gradient dy those of x and W, dx = dy W and dW = dy^T x, are made.
 *
 * dtype F32: c_ij = sum_k a_ik b_jk. BF16: the same with both factors rounded to bf16 (to nearest,
 * ties to even); what comes in, what goes out and the sums are fp32, as in training with bf16
 * products and fp32 values (Micikevicius et al. 2018, arXiv 1710.03740; Kalamkar et al. 2019, arXiv
 * 1905.12322). Sums go in ascending order of k; where the processor multiplies pairs of bf16, the
 * order within a pair is its own, and subnormal factors count as zero. */
struct gemm {
    size_t M, N, K;
    struct factor a, b;
    float *c;
    const float *plus; /* [M, N], added to the products; NULL: nothing. May be c */
    size_t ldc;        /* from row to row of c and of plus */
    enum dtype dtype;  /* F32 or BF16 */
};

/* Gradients of attention: rows of seqs[].row_begin.. read the keys slot_begin.. of their sequence,
 * all of them, or those up to their own position: keys are then its positions 0..n_slots-1. */
struct attn_back {
    const float *q;      /* [R, H*E], as the forward pass saw it (rotated) */
    const float *k, *v;  /* [T, K*E], the same */
    const float *dy;     /* [R, H*E] gradient of the output */
    float *dq, *dk, *dv; /* as q, k, v; overwritten */
    const struct attn_seq *seqs;
    const int32_t *pos;  /* [R] positions, ascending in a sequence */
    size_t n_seqs, max_slots; /* no sequence has more slots, nor more rows */
    size_t heads, kv_heads, head_dim;
    int causal;
    size_t window; /* > 0, causal: the last `window` positions up to a row's own alone */
    int half; /* 1: what is multiplied may be rounded to bf16 on the way */
};
#define ATTENTION_BACK_CUDA_MOST 128 /* values of a head on cuda; on the host there is no limit */

/* AdamW (Loshchilov & Hutter 2019, Algorithm 2). */
struct adamw {
    double rate, beta1, beta2, eps, decay; /* decay is decoupled: w -= rate * decay * w */
    double grad_scale;                     /* gradients are multiplied by this first (clipping) */
    int64_t step;                          /* from 1, for the bias correction */
};

struct shift_back; /* kernels/mixing.h */
struct squash_back;
struct heads_out_back;
struct removal_back;

enum { SQUARES_PARTS = 64 };

struct train_ops {
    /* n products c = a b^T, one after the other: struct gemm. A factor that the product before has
     * too is made ready once, so that one must not write it. work: gemm_work(...) bytes for the
     * most M, N and K among them. */
    void (*gemm)(struct backend *b, const struct gemm *g, size_t n, void *work);
    size_t (*gemm_work)(const struct backend *b, size_t M, size_t N, size_t K);
    /* dx[T, D] += gradient of rmsnorm's input; dg[D] += gradient of the gain, NULL: not wanted.
     * work: 2 T floats. */
    void (*rmsnorm_back)(struct backend *b, float *dx, float *dg, const float *dy, const float *x,
                         const float *g, size_t T, size_t D, double eps, float *work);
    /* Gradients of y = silu(gate) * up, n values. dgate may be gate's buffer, dup may be dy's. */
    void (*swiglu_back)(struct backend *b, float *dgate, float *dup, const float *dy,
                        const float *gate, const float *up, size_t n);
    /* work: attention_back_work(...) floats for at least so many rows in all, and rows or keys of a
     * sequence. */
    void (*attention_back)(struct backend *b, const struct attn_back *a, float *work);
    size_t (*attention_back_work)(const struct backend *b, size_t rows, size_t len, size_t heads,
                                  size_t head_dim);
    /* y[t, :] = x[place[t], :], zeros where place[t] is below 0: rows that were picked (ops.rmsnorm
     * without a gain) back among all T. y must not overlap x. */
    void (*spread)(struct backend *b, float *y, const float *x, const int32_t *place, size_t T,
                   size_t D);
    /* kernels/mixing.h */
    void (*shift_back)(struct backend *b, const struct shift_back *a);
    void (*squash_back)(struct backend *b, const struct squash_back *a);
    void (*heads_out_back)(struct backend *b, const struct heads_out_back *a);
    void (*removal_back)(struct backend *b, const struct removal_back *a);
    /* loss[t] = weight[t] * CE_t; logits[T, V] become the gradient of their sum. A row of weight 0
     * gives zeros. */
    void (*cross_entropy)(struct backend *b, float *logits, const int32_t *target,
                          const float *weight, size_t T, size_t V, double *loss);
    /* Sum of x_i^2. work: SQUARES_PARTS doubles. NULL on cuda, and so is adamw. */
    double (*squares)(struct backend *b, const float *x, size_t n, double *work);
    void (*adamw)(struct backend *b, float *w, float *m, float *v, const float *g, size_t n,
                  const struct adamw *a);
};

#endif
