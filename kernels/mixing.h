/* mixing.h - what a block of RWKV 6 or 7 does around its time mixing (kernels/wkv.h), each a single
 * operation over values that would otherwise be written and read again: the shift of tokens with
 * all the mixtures that projections read; what bends a low-rank part; the keys that RWKV 7 removes
 * and adds; norm of the heads, bonus and gate. Products of matrices are ops.matmul's.
 *
 * With x' the row before x in its sequence (zeros before the first), lerp_m(x) = x + (x' - x) * m:
 *
 *   RWKV 6   p = lerp_{m_x}(x);  x_i = lerp_{m_i + tanh(p A_i) B_i}(x), i of r, w, k, v, g
 *            log decay = -exp(w_0 + tanh(x_w A) B)
 *            out = (GroupNorm(y) * silu(x_g W_g)) W_o
 *   RWKV 7   x_i = lerp_{m_i}(x), i of r, w, k, v, g, a
 *            log decay = -e^{-1/2} s(w_0 + tanh(x_w A) B),  eta = s(a_0 + (x_a A) B)
 *            v += (v_first - v) s(v_0 + (x_v A) B) in all layers but the first, whose v that is
 *            kappa = k * k_k, of each head a unit vector;  a = -kappa,  b = kappa * eta
 *            k *= 1 + (eta - 1) k_a
 *            out = ((GroupNorm(y) + (sum_head r k r_k) v) * s(x_g A) B) W_o
 *
 * with s the logistic and every w, A, B, m, u of the layer's own. Everything is fp32 on every back
 * end. Source: Peng et al. 2024, "Eagle and Finch", arXiv 2404.05892, section 4; Peng et al. 2025,
 * "RWKV-7 Goose", arXiv 2503.14456, section 4.
 */
#ifndef KERNELS_MIXING_H
#define KERNELS_MIXING_H

#include "kernels/ops.h"

enum { MIXING_LANES = 6 }; /* mixtures of a row and the one before it, at most */

/* to_i[t] = x[t] + (x'[t] - x[t]) * (share_i + more_i[t]), i < n. `last` is x' of the first row of
 * each sequence. */
struct shift {
    const float *x;                   /* [T, D] */
    const float *share[MIXING_LANES]; /* [D] */
    const float *more[MIXING_LANES];  /* [T, D]; all of them or NULL */
    float *to[MIXING_LANES];          /* [T, D]; may be more_i */
    size_t n;
    float *last;                      /* [S, D]; NULL: zeros, and nothing is kept */
    const int32_t *at;                /* [n_seqs] which of them is each sequence's */
    int keep;                         /* 1: it becomes the last row of the sequence */
    const struct attn_seq *seqs;      /* [n_seqs]; row_begin and rows, the others are not read */
    size_t n_seqs, T, D;
};

/* x = f(x + base), in place. The derivatives are functions of f alone. */
enum squash_by {
    SQUASH_TANH,
    SQUASH_LOGISTIC,
    SQUASH_DECAY6, /* -e^x */
    SQUASH_DECAY7  /* -e^{-1/2} logistic(x) */
};
struct squash {
    float *x;          /* [T, n] */
    const float *base; /* [n]; NULL: zeros */
    size_t T, n;
    enum squash_by by;
};
#define SQUASH_SLOWEST 0.6065306597126334f /* e^{-1/2} */

/* Of RWKV 7. Where `first` is NULL (the first layer), v stays. Rows are H*E values. */
struct removal {
    const float *k, *v, *rate;       /* [T, H*E]; rate: eta */
    const float *first, *share;      /* [T, H*E]: v of the first layer, and how much of it; NULL */
    const float *scale, *key_rate;   /* [H*E]: k_k, k_a */
    float *to_k, *to_v;              /* [T, H*E]; may be k and v */
    float *a, *b;                    /* [T, H*E] of struct wkv_rows; b may be rate */
    size_t T, heads, head_dim;
};
#define REMOVAL_LEAST 1e-12f /* that a vector's length counts as */

/* y = (gain * (o - mean) / sqrt(variance + eps) + bias + bonus) * gate, mean and variance being
 * those of the head. */
struct heads_out {
    const float *o;                  /* [T, H*E] */
    const float *gain, *bias;        /* [H*E] */
    const float *gate;               /* [T, H*E] */
    const float *r, *k, *v, *weight; /* [T, H*E]; weight [H*E]: the bonus (sum_head r k weight) v,
                                      * and gate as it is. NULL: none, and silu(gate) */
    float *y;                        /* [T, H*E]; may be o */
    size_t T, heads, head_dim;
};
#define HEADS_EPS 64e-5

struct wkv; /* kernels/wkv.h */
struct wkv_back;

/* ops.mixing */
struct mixing_ops {
    /* Time mixing, and its gradients: kernels/wkv.h. work: wkv_work(...) or wkv_back_work(...)
     * bytes, for at least this number of sequences and of rows a sequence. */
    void (*wkv)(struct backend *b, const struct wkv *a, void *work);
    size_t (*wkv_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                       size_t head_dim);
    void (*wkv_back)(struct backend *b, const struct wkv_back *a, void *work);
    size_t (*wkv_back_work)(const struct backend *b, size_t n_seqs, size_t max_rows, size_t heads,
                            size_t head_dim);
    /* Each does what the structure of its name says. */
    void (*shift)(struct backend *b, const struct shift *a);
    void (*squash)(struct backend *b, const struct squash *a);
    void (*removal)(struct backend *b, const struct removal *a);
    void (*heads_out)(struct backend *b, const struct heads_out *a);
};

/* ---- gradients: sequences begin with zeros before them. Those of the layer's own vectors (what is
 * added to, [D] or [H*E]) are NULL where nobody wants them, all of a structure together: on cuda
 * always ---- */

struct shift_back {
    const struct shift *of; /* as it was; to and last are not read */
    float *d[MIXING_LANES]; /* [T, D] of to_i; becomes that of more_i, where there is one */
    float *dx;              /* [T, D] added to */
    float *dshare[MIXING_LANES]; /* [D] added to */
};
struct squash_back {
    float *d;       /* [T, n] of f(x), becomes that of x */
    const float *y; /* [T, n] f(x) */
    float *dbase;   /* [n] added to; NULL: not wanted */
    size_t T, n;
    enum squash_by by;
};
struct heads_out_back {
    const struct heads_out *of; /* y is not read */
    float *dy;            /* [T, H*E]; becomes the gradient of norm and bonus, before the gate */
    float *d_o, *dgate;   /* [T, H*E] overwritten */
    float *dgain, *dbias; /* [H*E] added to */
};
/* What bonus and removal have to do with the gradients that time mixing gives. */
struct removal_back {
    const struct removal *of;
    const float *r, *k, *v, *weight; /* of the bonus: struct heads_out */
    const float *dn;                 /* heads_out_back.dy behind it */
    float *dr;          /* [T, H*E] added to */
    float *dk, *dv;     /* [T, H*E] of to_k, to_v without the bonus; become those of k and v */
    const float *da, *db;
    float *drate;       /* [T, H*E] overwritten */
    float *dfirst, *dshare; /* [T, H*E] added to; overwritten. Where first is NULL, dv += dfirst:
                             * what the layers above read of these values; NULL: nothing */
    float *dscale, *dkey_rate, *dweight; /* [H*E] added to */
};

#endif
