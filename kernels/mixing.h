/* mixing.h - the operations around time mixing (kernels/wkv.h) in a block of RWKV 6 or 7. Each is
 * one operation, so that intermediate values need not be written and read again: the token shift
 * with all mixtures that projections read; the function inside a low-rank part; the keys that RWKV
 * 7 removes and adds; norm of the heads, bonus and gate. Products of matrices are ops.matmul.
 *
 * With x' the row before x in its sequence (zeros before the first), lerp_m(x) = x + (x' - x) * m:
 *
 *   RWKV 6   p = lerp_{m_x}(x);  x_i = lerp_{m_i + tanh(p A_i) B_i}(x), i of r, w, k, v, g
 *            log decay = -exp(w_0 + tanh(x_w A) B)
 *            out = (GroupNorm(y) * silu(x_g W_g)) W_o
 *   RWKV 7   x_i = lerp_{m_i}(x), i of r, w, k, v, g, a
 *            log decay = -e^{-1/2} s(w_0 + tanh(x_w A) B),  eta = s(a_0 + (x_a A) B)
 *            v += (v_first - v) s(v_0 + (x_v A) B) in all layers but the first; v_first: its v
 *            kappa = k * k_k, scaled to a unit vector per head;  a = -kappa,  b = kappa * eta
 *            k *= 1 + (eta - 1) k_a
 *            out = ((GroupNorm(y) + (sum_head r k r_k) v) * s(x_g A) B) W_o
 *
 * s is the logistic function; every w, A, B, m, u belongs to the layer. Everything is fp32 on every
 * back end. Source: Peng et al. 2024, "Eagle and Finch", arXiv 2404.05892, section 4; Peng et al.
 * 2025, "RWKV-7 Goose", arXiv 2503.14456, section 4. */
#pragma once

#include "kernels/ops.h"

enum { MIXING_LANES = 6 }; /* mixtures of a row and the row before it, at most */

/* to_i[t] = x[t] + (x'[t] - x[t]) * (share_i + more_i[t]), i < n. For the first row of a sequence
 * x' is its row of `last`. */
struct shift {
    const float *x;                   /* [T, D] */
    const float *share[MIXING_LANES]; /* [D] */
    const float *more[MIXING_LANES];  /* [T, D]; all of them or NULL */
    float *to[MIXING_LANES];          /* [T, D]; may be more_i */
    size_t n;
    float *last;                      /* [S, D]; NULL: zeros, and no row is kept */
    const int32_t *at;                /* [n_seqs] the row of `last` of each sequence */
    int keep;                         /* 1: the sequence's last row is written to `last` */
    const struct attn_seq *seqs;      /* [n_seqs]; only row_begin and rows are read */
    size_t n_seqs, T, D;
};

/* x = f(x + base), in place. The derivative of f can be computed from f alone. */
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

/* Keys removed and added by RWKV 7. first NULL (the first layer): v is not changed. Rows are H*E
 * values. */
struct removal {
    const float *k, *v, *rate;       /* [T, H*E]; rate: eta */
    const float *first, *share;      /* [T, H*E]: v of the first layer, and its share; NULL */
    const float *scale, *key_rate;   /* [H*E]: k_k, k_a */
    float *to_k, *to_v;              /* [T, H*E]; may be k and v */
    float *a, *b;                    /* [T, H*E] outputs a, b of struct wkv_rows; b may be rate */
    size_t T, heads, head_dim;
};
#define REMOVAL_LEAST 1e-12f /* lower limit for the length of a vector */

/* y = (gain * (o - mean) / sqrt(variance + eps) + bias + bonus) * gate; mean and variance are those
 * of the head. */
struct heads_out {
    const float *o;                  /* [T, H*E] */
    const float *gain, *bias;        /* [H*E] */
    const float *gate;               /* [T, H*E] */
    const float *r, *k, *v, *weight; /* [T, H*E]; weight [H*E]. bonus = (sum_head r k weight) v, and
                                      * gate as it is. NULL: no bonus, and silu(gate) */
    float *y;                        /* [T, H*E]; may be o */
    size_t T, heads, head_dim;
};
#define HEADS_EPS 64e-5

struct wkv; /* kernels/wkv.h */

/* ops.mixing */
struct mixing_ops {
    /* Time mixing: kernels/wkv.h. work: wkv_work(...) bytes, for at least this number of sequences
     * and of rows a sequence. */
    void (*wkv)(struct backend *backend, const struct wkv *a, void *work);
    size_t (*wkv_work)(const struct backend *backend, size_t n_seqs, size_t max_rows, size_t heads,
                       size_t head_dim);
    /* Each computes the structure of its name. */
    void (*shift)(struct backend *backend, const struct shift *a);
    void (*squash)(struct backend *backend, const struct squash *a);
    void (*removal)(struct backend *backend, const struct removal *a);
    void (*heads_out)(struct backend *backend, const struct heads_out *heads);
};
#define MIXING_SLOTS(X) X(wkv) X(wkv_work) X(shift) X(squash) X(removal) X(heads_out)

/* ---- gradients. Sequences start with zeros before them. Gradients of the layer's own vectors
 * (those that are added to, [D] or [H*E]) are NULL if not wanted, all of a structure together; on
 * cuda always ---- */

struct shift_back {
    const struct shift *of; /* the forward call; to and last are not read */
    float *d[MIXING_LANES]; /* [T, D] gradient of to_i; overwritten by that of more_i, if there is
                             * one */
    float *dx;              /* [T, D] added to */
    float *dshare[MIXING_LANES]; /* [D] added to */
};
struct squash_back {
    float *d;       /* [T, n] gradient of f(x); overwritten by that of x */
    const float *y; /* [T, n] f(x) */
    float *dbase;   /* [n] added to; NULL: not wanted */
    size_t T, n;
    enum squash_by by;
};
struct heads_out_back {
    const struct heads_out *of; /* the forward call; y is not read */
    float *dy;            /* [T, H*E]; overwritten by the gradient of norm and bonus, before the
                           * gate */
    float *d_o, *dgate;   /* [T, H*E] overwritten */
    float *dgain, *dbias; /* [H*E] added to */
};
/* The part of bonus and removal in the gradients that time mixing gives. */
struct removal_back {
    const struct removal *of;
    const float *r, *k, *v, *weight; /* of the bonus: struct heads_out */
    const float *dn;                 /* heads_out_back.dy after heads_out_back */
    float *dr;          /* [T, H*E] added to */
    float *dk, *dv;     /* [T, H*E] gradients of to_k, to_v without the bonus; overwritten by those
                         * of k and v */
    const float *da, *db;
    float *drate;       /* [T, H*E] overwritten */
    float *dfirst, *dshare; /* [T, H*E] added to; overwritten. first NULL: dv += dfirst, the
                             * gradient from the layers above that read these values; NULL: none */
    float *dscale, *dkey_rate, *dweight; /* [H*E] added to */
};
