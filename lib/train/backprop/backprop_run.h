/* backprop_run.h - a forward and backward pass at work: the data that its files share. Each file
 * calls only the files below it:
 *   backprop.c         the pass
 *   backprop_heads.c   queries, keys and values
 *   room.c             memory
 *   backprop_mixing.c  a mixer that recurs
 *   backprop_latent.c  attention to latents
 *   parts.c            operations that all of them use */
#pragma once

#include "kernels/mixing.h"
#include "lib/checkpoint/role.h"
#include "lib/train/backprop.h"

/* Rows whose logits exist at a time; fewer with a large vocabulary. */
enum { BACKPROP_LOGIT_ROWS = 512, BACKPROP_LOGITS = 1 << 23, BACKPROP_LOGIT_ROWS_LEAST = 64 };

/* Activations of a mixer that recurs (same names as in lib/network/pass/pass-mixing.c); r, k, v and
 * output are the layer's q, k, v, y. Arrays that a mixer does not use are NULL. */
struct mixing_tape {
    float *mixed;              /* [T,D] RWKV 6: input of the lanes' low-rank parts */
    float *more[MIXING_LANES]; /* [T,D] RWKV 6: their output */
    float *lane[MIXING_LANES]; /* [T,D] input of each projection */
    float *low[MIXING_LANES];  /* [T,R] inside low-rank parts; RWKV 6: lanes, then the decay */
    float *w, *g, *o;          /* [T,H*E] log decay, gate, output of time mixing */
    float *rate, *share, *to_k, *to_v, *a, *b; /* [T,H*E] RWKV 7: struct removal */
};

/* Activations that the backward pass of a layer needs. R is the number of query rows. With
 * checkpointing, layers l and l + every share one tape, except x of each first layer. */
struct layer_tape {
    float *x, *n1, *k, *v;  /* [T,D] input, its norm; rotated k, v */
    float *q, *y;           /* [R,H*E] rotated q, output of attention */
    float *raw_q, *raw_k;   /* [R,H*E], [T,K*E] q and k before their norms, with qk_norm */
    float *mid, *n2;        /* [R,D] the stream after attention, its norm */
    float *gate, *up, *act; /* [R,F]; the backward pass overwrites gate by its gradient */
    float *nc, *cq, *cy;    /* [R,D], [R,H*E] twice: n1, q, y of attention to latents */
    float *zk, *zv;         /* [seqs*n, K*E] rotated keys, and values, of the latents */
    float *crossed;         /* [R,D] the stream after that attention; without latents: mid */
    struct mixing_tape mix; /* of a mixer that recurs: no rotated q and k, and y is [T,H*E] */
};

/* Query rows of a layer: all rows of the batch, or in the last layer those with a target. */
struct askers {
    size_t n;
    int32_t *row, *pos; /* [n] row numbers, ascending; their positions */
    int32_t *last;      /* [n] last position that they see, unless they see all */
    struct attn_seq *seqs, *cross; /* [S] per sequence: attention to its tokens, to its latents */
    float *table; /* [n, E] rotation of the positions */
};

/* The index arrays of a batch. They exist twice: on the host, and where operations read them. */
struct lists {
    struct askers all, scored;
    int32_t *token, *slots; /* [T] ids; 0, 1, ... */
    int32_t *place;         /* [T] number among the scored rows; -1: not scored */
    int32_t *target;        /* [R] of each scored row */
    float *weight;          /* [R] */
    int32_t *zpos, *zslots; /* [S*n] positions of the latents; 0, 1, ... */
};

struct backprop {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    struct parameters *parameters; /* borrowed */
    size_t rows, seqs;           /* capacity; seqs 0: no latents */
    enum dtype dtype;            /* of matrix products */
    struct backprop_how how;     /* every: L without checkpointing */
    size_t logit_rows;           /* capacity of logits */
    enum backprop_of of;         /* the gradient asked for now */
    struct layer_tape *tape;     /* [L] */
    struct lists host, at;       /* on the host; on the back end, with the rotation tables */
    unsigned char *host_lists;
    size_t list_bytes;
    float *inv_freq;             /* [E/2] */
    float *ones;                 /* [T] 1: with a bias */
    float *asked;                /* [R,D] query rows of n1 in the last layer */
    float *top, *final;          /* [R,D] last stream of the scored rows, its norm */
    float *logits;               /* [logit_rows, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dup, *scratch;
    float *lane[MIXING_LANES];   /* [T,D] gradients of the lanes of a mixer that recurs */
    float *mixed, *low;          /* [T,D], [T,R] gradients inside low-rank parts */
    float *dr, *dw, *dg, *da, *db, *dshare, *dfirst; /* [T,H*E], the last four for RWKV 7 */
    float *taken;                /* [R,H*E] query rows of y in the last layer */
    double *row_loss;            /* [R]; dz follows it in memory, so that one read gets both */
    float *z, *dz;               /* [L, seqs*n, D] latents of the batch, their gradient */
    float *dzk, *dzv;            /* [seqs*n, K*E] gradients of their keys and values */
    float *ztable;               /* [seqs*n, E] rotation of their keys */
    unsigned char *block;        /* all memory of the back end */
    size_t bytes;                /* of the block, handed out so far */
    unsigned char *answers;      /* copy of row_loss and dz on the host */
    double *loss;                /* [T] loss of each sequence */
};

/* ---- parts.c ---- */

float *backprop_values(struct backprop *backprop, enum role role, size_t layer);
/* y = x W^T + plus (NULL: nothing), for T rows. */
struct gemm backprop_linear(struct backprop *backprop, float *y, const float *x, enum role role,
                            size_t layer, size_t T, const float *plus);
/* Gradient of its input: dx = dy W + plus. */
struct gemm backprop_input(struct backprop *backprop, float *dx, const float *dy, enum role role,
                           size_t layer, size_t T, const float *plus);
/* Gradient of its weights: dW = dy^T x, or += where gradients are summed. An empty product (M 0)
 * when only latents are asked for. */
struct gemm backprop_weights(struct backprop *backprop, const float *dy, const float *x,
                             enum role role, size_t layer, size_t T);
/* Runs the products that are not empty, in order. */
void backprop_multiply(struct backprop *backprop, const struct gemm *gemm, size_t n);
void backprop_norm(struct backprop *backprop, float *y, const float *x, enum role role,
                   size_t layer, size_t T);
/* dx += gradient through the norm of x, given dy. */
void backprop_norm_back(struct backprop *backprop, float *dx, const float *dy, const float *x,
                        enum role role, size_t layer, size_t T);

/* The array that the gradient of a vector is added to; NULL when only latents are asked for. */
float *backprop_sum(struct backprop *backprop, enum role role, size_t layer);
/* Gather: out[n, wide] = the query rows of x[T, wide]. Spread, its inverse for the scored rows:
 * out[T, wide] with zeros in the other rows. */
void backprop_gather(struct backprop *backprop, const struct askers *askers, float *out,
                     const float *x, size_t wide);
void backprop_spread(struct backprop *backprop, float *out, const float *x, size_t wide);
/* Spreads backprop->dx in place. */
void backprop_spread_stream(struct backprop *backprop);
/* x[n] = 0. */
void backprop_clear(struct backprop *backprop, float *x, size_t n);

/* ---- backprop_heads.c ---- */

/* tape->q, tape->k and tape->v of this layer, rotated: q of the rows `who` of n1, k and v of
 * tape->n1. */
void backprop_heads(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                    const struct askers *who, const float *n1);
/* Gradients of their weights, given backprop->dq, backprop->dk and backprop->dv; backprop->dn = the
 * gradient of tape->n1. Where only some rows are queries, backprop->dx becomes a gradient of all
 * rows. */
void backprop_heads_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who);

/* ---- backprop_mixing.c ---- */

/* tape->mid = tape->x + output of time mixing, for the rows `who`. */
void backprop_mix(struct backprop *backprop, struct layer_tape *tape, size_t layer,
                  const struct askers *who, const struct train_batch *in);
/* Turns backprop->dx, the gradient of tape->mid, into the gradient of tape->x. */
void backprop_mix_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                       const struct askers *who, const struct train_batch *in);
/* Cut the memory of a layer, and of the gradients; return the bytes of work. */
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
/* Turns backprop->dx into the gradient of tape->mid; sets backprop->dz of this layer. */
void backprop_cross_back(struct backprop *backprop, const struct layer_tape *tape, size_t layer,
                         const struct askers *who, const struct train_batch *in);
