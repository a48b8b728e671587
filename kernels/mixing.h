/* mixing.h - the operations around time mixing (kernels/wkv.h) in a block of RWKV 6 or 7. There are
 * four: the token shift with all mixtures that projections read (struct shift); the function inside
 * a low-rank part (squash); the keys that RWKV 7 removes and adds (removal); norm of the heads,
 * bonus and gate (heads_out). Each is one operation, so that intermediate values need not be
 * written and read again. Products of matrices are ops.matmul.
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
 * s is the logistic function. In the formulas every w, A, B, W, m, a_0, v_0, k_k, k_a and r_k is a
 * weight of the layer. Everything is fp32 on every back end. Source: Peng et al. 2024, "Eagle and
 * Finch", arXiv 2404.05892, section 4; Peng et al. 2025, "RWKV-7 Goose", arXiv 2503.14456, section
 * 4. */
#pragma once

#include "kernels/ops.h"

enum { MIXING_LANES = 6 }; /* mixtures of a row and the row before it, at most */

/* to_i[t] = x[t] + (x'[t] - x[t]) * (share_i + more_i[t]), i < n. x' is the row before; for the
 * first row of a sequence it is last[at[seq]]. */
struct shift {
    const float *x;                   /* [T, D] */
    const float *share[MIXING_LANES]; /* [D] */
    const float *more[MIXING_LANES];  /* [T, D] for every i, or NULL for every i */
    float *to[MIXING_LANES];          /* [T, D]; may be more_i */
    size_t n;
    float *last;                      /* [., D] the row before each sequence; NULL: this row is
                                       * zero, and no row is kept */
    const int32_t *at;                /* [n_seqs] the row of `last` of each sequence */
    int keep;                         /* 1: the last row of each sequence is written to `last` */
    const struct attn_seq *seqs;      /* [n_seqs]; only row_begin and rows are read */
    size_t n_seqs, T, D;
};

/* x = f(x + base), in place. The derivative of each f is a function of the value of f, so gradients
 * need only the output. */
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

/* Computes a, b, the new k and the new v of RWKV 7 by the formulas above. first NULL (the first
 * layer): v is not changed. Rows are H*E values. */
struct removal {
    const float *k, *v, *rate;       /* [T, H*E]; rate: eta */
    const float *first, *share;      /* [T, H*E]: v_first, and the factor s(v_0 + ...) of v_first -
                                      * v; or NULL */
    const float *scale, *key_rate;   /* [H*E]: k_k, k_a */
    float *to_k, *to_v;              /* [T, H*E]; may be k and v */
    float *a, *b;                    /* [T, H*E] outputs a, b of struct wkv_rows; b may be rate */
    size_t T, heads, head_dim;
};
#define REMOVAL_LEAST 1e-12f /* lower limit of the length of k * k_k, by which kappa is divided */

/* y = (gain * (o - mean) / sqrt(variance + HEADS_EPS) + bias + bonus) * gate. mean and variance are
 * over the E values of a head. */
struct heads_out {
    const float *o;                  /* [T, H*E] */
    const float *gain, *bias;        /* [H*E] */
    const float *gate;               /* [T, H*E] */
    const float *r, *k, *v, *weight; /* r, k, v: [T, H*E]; weight: [H*E]. With them (RWKV 7) bonus =
                                      * (sum_head r k weight) v. NULL (RWKV 6): no bonus, and
                                      * silu(gate) in place of gate */
    float *y;                        /* [T, H*E]; may be o */
    size_t T, heads, head_dim;
};
#define HEADS_EPS 64e-5

struct wkv; /* kernels/wkv.h */

/* ops.mixing */
struct mixing_ops {
    /* Time mixing: kernels/wkv.h. work: wkv_work(...) bytes, for at least this number of sequences
     * and of rows of one sequence. */
    void (*wkv)(struct backend *backend, const struct wkv *a, void *work);
    size_t (*wkv_work)(const struct backend *backend, size_t n_seqs, size_t max_rows, size_t heads,
                       size_t head_dim);
    /* Each function computes the outputs of the structure with its name. */
    void (*shift)(struct backend *backend, const struct shift *a);
    void (*squash)(struct backend *backend, const struct squash *a);
    void (*removal)(struct backend *backend, const struct removal *a);
    void (*heads_out)(struct backend *backend, const struct heads_out *heads);
};
#define MIXING_SLOTS(X) X(wkv) X(wkv_work) X(shift) X(squash) X(removal) X(heads_out)

/* ---- gradients ----
 *
 * Sequences start with zeros before them. Pointers to gradients of the layer's own vectors (fields
 * of shape [D], [n] or [H*E] that are added to) may be NULL if these are not wanted: all of a
 * structure together. On cuda they are always NULL. */

struct shift_back {
    const struct shift *of; /* the forward call; to and last are not read */
    float *d[MIXING_LANES]; /* [T, D] gradient of to_i; overwritten by the gradient of more_i, if
                             * there is a more_i */
    float *dx;              /* [T, D] added to */
    float *dshare[MIXING_LANES]; /* [D] added to */
};
struct squash_back {
    float *d;       /* [T, n] gradient of f(x); overwritten by the gradient of x */
    const float *y; /* [T, n] f(x) */
    float *dbase;   /* [n] added to; NULL: not wanted */
    size_t T, n;
    enum squash_by by;
};
struct heads_out_back {
    const struct heads_out *of; /* the forward call; y is not read */
    float *dy;            /* [T, H*E] gradient of y; overwritten by the gradient of y / gate, that
                           * is of norm plus bonus */
    float *d_o, *dgate;   /* [T, H*E] overwritten */
    float *dgain, *dbias; /* [H*E] added to */
};
/* Gradients of struct removal and of the bonus of struct heads_out, from the gradients that time
 * mixing gives. */
struct removal_back {
    const struct removal *of;
    const float *r, *k, *v, *weight; /* inputs of the bonus, as in struct heads_out */
    const float *dn;                 /* heads_out_back.dy as heads_out_back leaves it */
    float *dr;          /* [T, H*E] added to */
    float *dk, *dv;     /* [T, H*E] gradients of to_k, to_v without the bonus; overwritten by the
                         * gradients of k and v */
    const float *da, *db;
    float *drate;       /* [T, H*E] overwritten */
    float *dfirst, *dshare; /* [T, H*E]: dfirst is added to, dshare is overwritten. If removal.first
                             * is NULL, this is the layer whose v is v_first: dfirst is then an
                             * input, the gradient from the layers above that read v_first, and is
                             * added to dv; NULL: there is none */
    float *dscale, *dkey_rate, *dweight; /* [H*E] added to */
};
