/* backprop_run.h - the data and functions that the files of a forward and backward pass share. Each
 * file calls only files below it in this list:
 *   backprop.c         the pass
 *   backprop_heads.c   queries, keys and values
 *   room.c             memory
 *   backprop_mixing.c  time mixing of RWKV 6 and 7
 *   backprop_latent.c  attention to latents
 *   parts.c            operations that the other files use */
#pragma once

#include "kernels/mixing.h"
#include "lib/checkpoint/role.h"
#include "lib/train/backprop.h"

/* BACKPROP_LOGIT_ROWS: rows whose logits exist at a time. With a large vocabulary the rows are
 * halved until at most BACKPROP_LOGITS logits exist, or BACKPROP_LOGIT_ROWS_LEAST rows are left. */
enum { BACKPROP_LOGIT_ROWS = 512, BACKPROP_LOGITS = 1 << 23, BACKPROP_LOGIT_ROWS_LEAST = 64 };

/* Activations of time mixing, with the names of lib/network/pass/pass-mixing.c. The projections r,
 * k, v and the output of time mixing are q, k, v and y of struct layer_tape. An array that the
 * mixer does not use is NULL. T rows, R rank of the low-rank parts. */
struct mixing_tape {
    float *mixed;              /* [T,D] RWKV 6: input of the low-rank parts of all lanes */
    float *more[MIXING_LANES]; /* [T,D] RWKV 6: output of the low-rank part of each lane */
    float *lane[MIXING_LANES]; /* [T,D] input of each projection */
    float *low[MIXING_LANES];  /* [T,R] inner values of the low-rank parts; RWKV 6: of the lanes,
                                * then of the decay */
    float *w, *g, *o;          /* [T,H*E] log decay, gate, output of time mixing */
    float *rate, *share, *to_k, *to_v, *a, *b; /* [T,H*E] RWKV 7: members of struct removal */
};

/* Activations of a layer that its backward pass reads. T: rows of the batch; R: query rows of the
 * layer. With checkpointing, layers l and l + every share one tape; only the first layer of each
 * part has its own x. */
struct layer_tape {
    float *x, *n1, *k, *v;  /* [T,D] input of the layer, its norm; [T,K*E] rotated k, v */
    float *q, *y;           /* [R,H*E] rotated q, output of attention */
    float *raw_q, *raw_k;   /* [R,H*E], [T,K*E] q and k before their norms, with qk_norm */
    float *mid, *n2;        /* [R,D] the residual stream after attention; the norm of `crossed`,
                             * which the feed-forward block reads */
    float *gate, *up, *act; /* [R,F]; the backward pass writes the gradient of gate into gate */
    float *nc, *cq, *cy;    /* attention to latents: norm of mid [R,D], query, output [R,H*E] */
    float *zk, *zv;         /* [seqs*n, K*E] rotated keys, and values, of the latents */
    float *crossed;         /* [R,D] the stream after attention to latents; without latents: mid */
    struct mixing_tape mix; /* with time mixing; q and k are then not rotated, and y is [T,H*E] */
};

/* Query rows of a layer: all rows of the batch, or in the last layer those with a target. */
struct askers {
    size_t n;
    int32_t *row, *pos; /* [n] numbers of the rows, ascending; their positions */
    int32_t *last;      /* [n] last position that each row sees; not read with a full mask */
    struct attn_seq *seqs, *cross; /* [S] for each sequence: attention to tokens, to latents */
    float *table; /* [n, E] rotation by the positions pos[] */
};

/* The index arrays of a batch. Struct backprop has them twice: `host` in memory of the host, `at`
 * in memory of the back end, where operations read them. */
struct lists {
    struct askers all, scored;
    int32_t *token, *slots; /* [T] ids of tokens; the numbers 0, 1, ... */
    int32_t *place;         /* [T] number of the row among the scored rows; -1: not scored */
    int32_t *target;        /* [R] target id of each scored row */
    float *weight;          /* [R] weight of each scored row */
    int32_t *zpos, *zslots; /* [S*n] positions of the latents; the numbers 0, 1, ... */
};

struct backprop {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    struct parameters *parameters; /* borrowed */
    size_t rows, seqs;           /* capacity; seqs 0: no latents */
    enum dtype dtype;            /* of matrix products */
    struct backprop_how how;     /* how.every is L without checkpointing */
    size_t logit_rows;           /* rows of `logits` */
    enum backprop_of of;         /* the gradient that the current call computes */
    struct layer_tape *tape;     /* [L] */
    struct lists host, at;       /* see struct lists; only `at` has rotation tables */
    unsigned char *host_lists;
    size_t list_bytes;
    float *inv_freq;             /* [E/2] */
    float *ones;                 /* [T] all 1; NULL if q, k and v have no bias */
    float *asked;                /* [R,D] query rows of n1 in the last layer */
    float *top, *final;          /* [R,D] scored rows of the stream after all layers, their norm */
    float *logits;               /* [logit_rows, V] */
    /* Gradients of the stream, a norm, q, k, v, y and up; scratch of operations. */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dup, *scratch;
    float *lane[MIXING_LANES];   /* [T,D] gradients of the lanes of time mixing */
    float *mixed, *low;          /* [T,D], [T,R] gradients inside low-rank parts */
    float *dr, *dw, *dg, *da, *db, *dshare, *dfirst; /* [T,H*E]; da and those after it: RWKV 7 */
    float *taken;                /* [R,H*E] query rows of y in the last layer */
    double *row_loss;            /* [R]; dz follows row_loss in memory, so one read gets both */
    float *z, *dz;               /* [L, seqs*n, D] latents of the batch, their gradient */
    float *dzk, *dzv;            /* [seqs*n, K*E] gradients of keys and values of the latents */
    float *ztable;               /* [seqs*n, E] rotation of the keys of the latents */
    unsigned char *block;        /* all memory of the back end */
    size_t bytes;                /* bytes of `block` that arrays use so far */
    unsigned char *answers;      /* copy of row_loss and dz on the host */
    double *loss;                /* [T] loss of each sequence */
};

/* ---- parts.c ---- */

/* The values of a role as passes see them: parameters_seen(). */
float *backprop_values(struct backprop *backprop, enum role role, size_t layer);
/* The next three functions describe a product with W [N, K] of a role, over T rows; they run
 * nothing. y = x W^T + plus; plus NULL: y = x W^T. */
struct gemm backprop_linear(struct backprop *backprop, float *y, const float *x, enum role role,
                            size_t layer, size_t T, const float *plus);
/* The gradient of x: dx = dy W + plus. */
struct gemm backprop_input(struct backprop *backprop, float *dx, const float *dy, enum role role,
                           size_t layer, size_t T, const float *plus);
/* The gradient of W: dW = dy^T x, or dW += dy^T x for a matrix outside the layers. With
 * BACKPROP_LATENTS the product is empty (M 0). */
struct gemm backprop_weights(struct backprop *backprop, const float *dy, const float *x,
                             enum role role, size_t layer, size_t T);
/* Runs the n products in order, without the empty ones. */
void backprop_multiply(struct backprop *backprop, const struct gemm *gemm, size_t n);
/* y = RMSNorm of x[T, D], with the gains of a role. */
void backprop_norm(struct backprop *backprop, float *y, const float *x, enum role role,
                   size_t layer, size_t T);
/* dx += the gradient of x, given dy, the gradient of y = backprop_norm(x). */
void backprop_norm_back(struct backprop *backprop, float *dx, const float *dy, const float *x,
                        enum role role, size_t layer, size_t T);

/* The array to which the gradient of a vector is added; NULL with BACKPROP_LATENTS. */
float *backprop_sum(struct backprop *backprop, enum role role, size_t layer);
/* backprop_gather(): out[n, wide] = the query rows of x[T, wide]. backprop_spread(): the inverse
 * for the scored rows, out[T, wide] with zeros in all other rows. */
void backprop_gather(struct backprop *backprop, const struct askers *askers, float *out,
                     const float *x, size_t wide);
void backprop_spread(struct backprop *backprop, float *out, const float *x, size_t wide);
/* backprop_spread() of backprop->dx, in place. */
void backprop_spread_stream(struct backprop *backprop);
/* x[n] = 0. */
void backprop_clear(struct backprop *backprop, float *x, size_t n);

/* ---- backprop_heads.c ---- */

/* Sets tape->q, tape->k (both rotated) and tape->v of a layer. q: of the rows `who`, from n1; k and
 * v: of all rows, from tape->n1. */
void backprop_heads(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                    const struct askers *who, const float *n1);
/* Backward pass of backprop_heads(), given backprop->dq, dk and dv. Sets the gradients of the
 * weights, and backprop->dn = the gradient of tape->n1. Where only some rows are queries,
 * backprop->dx becomes a gradient of all rows. */
void backprop_heads_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who);

/* ---- backprop_mixing.c ---- */

/* tape->mid = tape->x + the output of time mixing, for the rows `who`. */
void backprop_mix(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                  const struct askers *who, const struct train_batch *in);
/* Turns backprop->dx, the gradient of tape->mid, into the gradient of tape->x. */
void backprop_mix_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                       const struct askers *who, const struct train_batch *in);
/* backprop_mix_tape() and backprop_mix_room() take the arrays of a layer, and of the gradients,
 * from room(), which returns n floats. backprop_mix_work(): bytes of scratch. */
void backprop_mix_tape(struct backprop *backprop, struct mixing_tape *tape,
                       float *(*room)(struct backprop *backprop, size_t n));
void backprop_mix_room(struct backprop *backprop,
                       float *(*room)(struct backprop *backprop, size_t n));
size_t backprop_mix_work(const struct backprop *backprop);

/* ---- backprop_latent.c ---- */

/* Number of latents in the batch. */
static inline size_t backprop_latent_rows(const struct backprop *backprop,
                                          const struct train_batch *in)
{
    return in->seqs * backprop->c.latents;
}
/* tape->crossed = tape->mid + attention to the latents of this layer, for the rows `who`. */
void backprop_cross(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                    const struct askers *who, const struct train_batch *in);
/* Turns backprop->dx, the gradient of tape->crossed, into the gradient of tape->mid. Sets
 * backprop->dz of this layer. */
void backprop_cross_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who, const struct train_batch *in);
