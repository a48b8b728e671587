/* wkv.h - time mixing of RWKV: a sequence mixer whose memory is one state of a fixed size a head,
 * in place of keys and values that grow with the text. What a latent thought model uses beside or
 * instead of attention in a window.
 *
 * A head of E channels keeps S[E, E]: row i is a key channel, column j a value channel. With w <= 0
 * the logarithm of the decay, a token reads and writes it as follows, i and j over all channels.
 *
 *   RWKV 6   y_j = sum_i r_i (S_ij + u_i k_i v_j)
 *            S_ij <- e^{w_i} S_ij + k_i v_j
 *   RWKV 7   x_j = sum_i a_i S_ij
 *            S_ij <- e^{w_i} S_ij + b_i x_j + k_i v_j            (a = -kappa, b = kappa * eta)
 *            y_j = sum_i r_i S_ij
 *
 * RWKV 5 is 6 with one w for all tokens. Token shift, GroupNorm of the heads and the gate are
 * kernels/mixing.h, the projections a network's. Everything is fp32 on every back end, states above
 * all.
 * Source: Peng et al. 2024, "Eagle and Finch", arXiv 2404.05892, section 4; Peng et al. 2025,
 * "RWKV-7 Goose", arXiv 2503.14456, section 3.
 *
 * Two forms give the same numbers but for rounding:
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
 * 2406.06484, section 3.
 */
#ifndef KERNELS_WKV_H
#define KERNELS_WKV_H

#include "kernels/ops.h"

enum {
    WKV_CHUNK = 16,    /* tokens: of 8, 16 and 32 about the quickest on the CPU (AVX2) */
    WKV_CUDA_MOST = 64 /* channels of a head on cuda; on the host there is no limit */
};

/* AUTO: the form that the back end does faster. That is chunks where a sequence has WKV_CHUNK rows
 * or more, but for RWKV 7 on the host: there they multiply nearly as often as the recurrence, and
 * are a little slower. ref knows the recurrence alone.
 */
enum wkv_form { WKV_AUTO, WKV_RECURRENT, WKV_CHUNKED };

/* What the operation reads. Rows are H*E values. */
struct wkv_rows {
    const float *r, *w, *k, *v;  /* [T, H*E] */
    const float *a, *b;          /* [T, H*E]; NULL: RWKV 6 */
    const float *u;              /* [H*E]; NULL: RWKV 7 */
    const struct attn_seq *seqs; /* [n_seqs]; row_begin and rows, the others are not read */
    size_t n_seqs, T, max_rows;  /* no sequence has more rows */
    size_t heads, head_dim;
};

struct wkv {
    struct wkv_rows in;
    float *state; /* [n_seqs, H, E, E] before the first row of each sequence; then after the last */
    float *y;     /* [T, H*E]; overlaps nothing that is read */
    enum wkv_form form;
    const int32_t *at; /* [n_seqs] which of the states is each sequence's; NULL: the s-th */
};

/* Gradients. What the forward pass computed is computed again: from the first state those at the
 * borders of chunks, and what lies inside a chunk when its turn comes. So the forward pass keeps
 * nothing, and `work` holds a state for WKV_CHUNK tokens (gradient checkpointing). The gradient of
 * w is a sum of differences: its error is relative to the products r dr and k dk, not to itself. */
struct wkv_back {
    struct wkv_rows in;
    const float *state; /* [n_seqs, H, E, E] before the first rows; NULL: zeros */
    const float *dy;    /* [T, H*E] */
    float *dstate; /* [n_seqs, H, E, E] gradient of the last states, then of the first; NULL: zeros,
                    * and it is not wanted */
    float *dr, *dw, *dk, *dv; /* [T, H*E]; overwritten */
    float *da, *db;           /* the same, of RWKV 7 */
    float *du;                /* [H*E] of RWKV 6: added to; NULL: not wanted */
};

static inline size_t wkv_chunks(size_t rows)
{
    return (rows + WKV_CHUNK - 1) / WKV_CHUNK;
}

#endif
