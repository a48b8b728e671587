/* run.h - a way there and back at work: what its files share. From the top: backprop.c (the pass)
 * and room.c (memory), mixing.c (a mixer that recurs), latent.c (attention to latents), parts.c
 * (what all are made of); each calls those below it. */
#ifndef TRAIN_BACKPROP_RUN_H
#define TRAIN_BACKPROP_RUN_H

#include "kernels/mixing.h"
#include "lib/checkpoint/role.h"
#include "lib/train/backprop.h"

/* Logits of this many rows exist at a time, fewer of a large vocabulary. */
enum { BACKPROP_LOGIT_ROWS = 512, BACKPROP_LOGITS = 1 << 23, BACKPROP_LOGIT_ROWS_LEAST = 64 };

/* Values that a time mixing layer keeps (same names in lib/network/pass/pass-mixing.c). r, k, v and
 * the output are the layer's q, k, v, y. NULL: the layer does not have it. */
struct mixing_tape {
    float *mixed;              /* [T,D] of 6: what the lanes' low-rank parts read */
    float *more[MIXING_LANES]; /* [T,D] of 6: what they add */
    float *lane[MIXING_LANES]; /* [T,D] what each projection reads */
    float *low[MIXING_LANES];  /* [T,R] of 6: inside of them, and then of the decay; of 7 by lane */
    float *w, *g, *o;          /* [T,H*E] log decay, gate, what time mixing gave */
    float *rate, *share, *to_k, *to_v, *a, *b; /* [T,H*E] of 7: struct removal */
};

/* What a layer's forward pass leaves for its backward pass. With checkpoints layers l and l + every
 * have one tape, but for x of each first layer. */
struct layer_tape {
    float *x, *n1, *k, *v;  /* [T,D] input, its norm; rotated k, v */
    float *q, *y;           /* [R,H*E] rotated q, attention out; R: rows that ask */
    float *mid, *n2;        /* [R,D] the stream after attention, its norm */
    float *gate, *up, *act; /* [R,F]; on the way back the gradient of gate takes its place */
    float *nc, *cq, *cy;    /* [R,D], [R,H*E] twice: of attention to latents, as n1, q, y */
    float *zk, *zv;         /* [seqs*n, K*E] keys, turned, and values of the latents */
    float *crossed;         /* [R,D] the stream after it; mid, where there are no latents */
    struct mixing_tape mix; /* in place of rotated q and k; y is [T,H*E] then */
};

/* Rows that ask in a layer: all of the batch, or those with a target. */
struct askers {
    size_t n;
    int32_t *row, *pos; /* [n] which rows, ascending; their positions */
    struct attn_seq *seqs, *cross; /* [S] of each sequence: with its own keys, with its latents */
    float *table; /* [n, E] their rotation */
};

/* The index arrays of a batch: once where it is described, and once where operations read it. */
struct lists {
    struct askers all, scored;
    int32_t *token, *slots; /* [T] ids; 0, 1, ... */
    int32_t *place;         /* [T] which of the scored rows it is; -1: none */
    int32_t *target;        /* [R] of the scored rows */
    float *weight;          /* [R] */
    int32_t *zpos, *zslots; /* [S*n] positions of the latents; 0, 1, ... */
};

struct backprop {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    struct parameters *parameters; /* borrowed */
    size_t rows, seqs;           /* capacity; seqs 0: no latents */
    enum dtype dtype;            /* of the products */
    struct backprop_how how;     /* every: L where nothing is computed again */
    size_t logit_rows;           /* of t->logits */
    enum backprop_of of;         /* what is asked now */
    struct layer_tape *tape;     /* [L] */
    struct lists host, at;       /* of the host; of the back end, with the tables of rotations */
    unsigned char *host_lists;
    size_t list_bytes;
    float *inv_freq;             /* [E/2] */
    float *asked;                /* [R,D] rows of n1 that ask in the last layer */
    float *top, *final;          /* [R,D] last stream of the scored rows, and its norm */
    float *logits;               /* [logit_rows, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dup, *scratch;
    float *lane[MIXING_LANES];   /* [T,D] gradients, of a mixer that recurs: of its lanes */
    float *mixed, *low;          /* [T,D], [T,R] of what is inside low-rank parts */
    float *dr, *dw, *dg, *da, *db, *dshare, *dfirst; /* [T,H*E], the last four of 7 */
    float *taken;                /* [R,H*E] rows of y that ask in the last layer */
    double *row_loss;            /* [R]; dz is behind it, so that both are read at once */
    float *z, *dz;               /* [L, seqs*n, D] of the batch, and its gradient */
    float *dzk, *dzv;            /* [seqs*n, K*E] those of its keys and values */
    float *ztable;               /* [seqs*n, E] the rotation of its keys */
    unsigned char *block;        /* all of it that is the back end's */
    size_t bytes;                /* of it, named so far */
    unsigned char *answers;      /* row_loss and dz on the host */
    double *loss;                /* [T] of sequences */
};

/* ---- parts.c ---- */

float *backprop_values(struct backprop *t, enum role r, size_t l);
/* y = x W^T + plus (NULL: nothing), for T rows. */
struct gemm backprop_linear(struct backprop *t, float *y, const float *x, enum role r, size_t l,
                            size_t T, const float *plus);
/* Its way back to the input: dx = dy W + plus. */
struct gemm backprop_input(struct backprop *t, float *dx, const float *dy, enum role r, size_t l,
                           size_t T, const float *plus);
/* And to the weights: dW = dy^T x, or += where gradients are summed up. Nothing (M 0) where only
 * latents are asked for. */
struct gemm backprop_weights(struct backprop *t, const float *dy, const float *x, enum role r,
                             size_t l, size_t T);
/* Those that are something, one after the other. */
void backprop_multiply(struct backprop *t, const struct gemm *g, size_t n);
void backprop_norm(struct backprop *t, float *y, const float *x, enum role r, size_t l, size_t T);
/* dx += gradient through the norm of x, given dy. */
void backprop_norm_back(struct backprop *t, float *dx, const float *dy, const float *x,
                        enum role r, size_t l, size_t T);

/* What a vector's gradient is added to; NULL where latents alone are asked for. */
float *backprop_sum(struct backprop *t, enum role r, size_t l);
/* out[n, wide] = the rows of x[T, wide] that ask; and the way back of those that are scored:
 * out[T, wide], zeros in the other rows. */
void backprop_gather(struct backprop *t, const struct askers *a, float *out, const float *x,
                     size_t wide);
void backprop_spread(struct backprop *t, float *out, const float *x, size_t wide);
/* The same of t->dx, in place. */
void backprop_spread_stream(struct backprop *t);
/* x[n] = 0. */
void backprop_clear(struct backprop *t, float *x, size_t n);

/* ---- mixing.c ---- */

/* y->mid = y->x of the rows `who` + what time mixing gives them. */
void backprop_mix(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                  const struct train_batch *in);
/* t->dx, the gradient of y->mid, becomes that of y->x. */
void backprop_mix_back(struct backprop *t, const struct layer_tape *y, size_t l,
                       const struct askers *who, const struct train_batch *in);
/* Names the room of a layer, and of the gradients; bytes of work. */
void backprop_mix_tape(struct backprop *t, struct mixing_tape *m,
                       float *(*room)(struct backprop *t, size_t n));
void backprop_mix_room(struct backprop *t, float *(*room)(struct backprop *t, size_t n));
size_t backprop_mix_work(const struct backprop *t);

/* ---- latent.c ---- */

/* Latents in the batch. */
static inline size_t backprop_latent_rows(const struct backprop *t, const struct train_batch *in)
{
    return in->seqs * t->c.latents;
}
/* y->crossed = y->mid + what the rows `who` read of layer l's latents. */
void backprop_cross(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                    const struct train_batch *in);
/* t->dx becomes the gradient of y->mid, t->dz of layer l is set. */
void backprop_cross_back(struct backprop *t, const struct layer_tape *y, size_t l,
                         const struct askers *who, const struct train_batch *in);

#endif
