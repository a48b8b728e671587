/* wkv.h - time mixing of RWKV: a sequence mixer whose state has a fixed size per head, while the
 * keys and values of attention grow with the text. A latent thought model can use it beside or
 * instead of attention in a window.
 *
 * A head of E channels keeps a state S[E, E]: row i is a key channel, column j a value channel.
 * Each token has r (receptance), w <= 0 (the logarithm of the decay), k (key), v (value) and, in
 * RWKV 7, a and b; u (the bonus of RWKV 6) belongs to the head. A token reads and writes S as
 * follows, for all channels i and j:
 *
 *   RWKV 6   y_j = sum_i r_i (S_ij + u_i k_i v_j)
 *            S_ij <- e^{w_i} S_ij + k_i v_j
 *   RWKV 7   x_j = sum_i a_i S_ij
 *            S_ij <- e^{w_i} S_ij + b_i x_j + k_i v_j            (a = -kappa, b = kappa * eta)
 *            y_j = sum_i r_i S_ij
 *
 * RWKV 5 is RWKV 6 with one w for all tokens. Token shift, GroupNorm of the heads and the gate are
 * in kernels/mixing.h; projections belong to the network. Everything is fp32 on every back end,
 * above all the states. Source: Peng et al. 2024, "Eagle and Finch", arXiv 2404.05892, section 4;
 * Peng et al. 2025, "RWKV-7 Goose", arXiv 2503.14456, section 3.
 *
 * Two forms give the same numbers except for rounding:
 *
 *   recurrent   token by token, as above
 *   chunked     WKV_CHUNK tokens at a time. With S the state before the chunk and D(q, t] the
 *               product of the decays of tokens q+1 .. t,
 *                 x_t = (a_t D(0, t-1])^T S + sum_{q<t} (A^ak_tq v_q + A^ab_tq x_q)
 *                 y_t = (r_t D(0, t])^T S + sum_{q<=t} (A^rk_tq v_q + A^rb_tq x_q)
 *                 S  <- D(0, C] S + sum_q (k_q D(q, C]) v_q^T + (b_q D(q, C]) x_q^T
 *                 A^ak_tq = sum_i a_ti k_qi D(q, t-1]_i,  A^rk_tq = sum_i r_ti k_qi D(q, t]_i, ...
 *               x by forward substitution. RWKV 6 has no a, b, x; its r decays like a, up to t - 1,
 *               and A^rk_tt = sum_i r_i u_i k_i.
 *
 * Nothing is ever divided by e^w: each D is a product of numbers in [0, 1], so strong decay goes to
 * zero and nothing overflows. Source: Yang et al. 2024, "Gated linear attention", arXiv 2312.06635,
 * section 4; Yang et al. 2024, "Parallelizing linear transformers with the delta rule", arXiv
 * 2406.06484, section 3. */
#pragma once

#include "kernels/ops.h"

enum {
    WKV_CHUNK = 16,    /* tokens of a chunk; on the CPU (AVX2) about the fastest of 8, 16 and 32 */
    WKV_CUDA_MOST = 64 /* most channels of a head on cuda; the host has no limit */
};

/* WKV_AUTO takes the form that is faster on the back end. The chunked form is taken if a sequence
 * has WKV_CHUNK rows or more. RWKV 7 on the host is always recurrent, because its chunks need
 * nearly as many multiplications and are slightly slower. ref always runs the recurrence. */
enum wkv_form { WKV_AUTO, WKV_RECURRENT, WKV_CHUNKED };

/* Inputs of time mixing. A row has H*E values. */
struct wkv_rows {
    const float *r, *w, *k, *v;  /* [T, H*E] */
    const float *a, *b;          /* [T, H*E]; NULL: RWKV 6 */
    const float *u;              /* [H*E]; NULL: RWKV 7 */
    const struct attn_seq *seqs; /* [n_seqs]; only row_begin and rows are read */
    size_t n_seqs, T, max_rows;  /* max_rows: limit of rows of one sequence */
    size_t heads, head_dim;
};

struct wkv {
    struct wkv_rows in;
    float *state; /* [., H, E, E] the state before the first row of each sequence; overwritten by
                   * the state after the last row of the sequence */
    float *y;     /* [T, H*E]; must not overlap an input */
    enum wkv_form form;
    const int32_t *at; /* [n_seqs] index in `state` of the state of each sequence; NULL: sequence s
                        * has state s */
};

/* Gradients. The backward pass computes forward values again: from the first state the states at
 * the borders of chunks, and the values inside a chunk when its turn comes (gradient
 * checkpointing). So the forward pass stores nothing, and `work` holds one state for every
 * WKV_CHUNK tokens. The gradient of w is a sum of differences, so its rounding error is relative to
 * the products r dr and k dk, not to the gradient itself. */
struct wkv_back {
    struct wkv_rows in;
    const float *state; /* [n_seqs, H, E, E] before the first rows; NULL: zeros */
    const float *dy;    /* [T, H*E] */
    float *dstate; /* [n_seqs, H, E, E] gradient of the last states; overwritten by the gradient of
                    * the first states. NULL: the gradient of the last states is zero, and that of
                    * the first states is not wanted */
    float *dr, *dw, *dk, *dv; /* [T, H*E]; overwritten */
    float *da, *db;           /* [T, H*E]; overwritten; RWKV 7 only */
    float *du;                /* [H*E] added to; RWKV 6 only; NULL: not wanted */
};

static inline size_t wkv_chunks(size_t rows)
{
    return (rows + WKV_CHUNK - 1) / WKV_CHUNK;
}
