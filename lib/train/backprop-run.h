/* backprop-run.h - a way there and back at work: what backprop.c (the pass), backprop-latent.c
 * (attention to latents) and backprop-room.c (memory) share. */
#ifndef TRAIN_BACKPROP_RUN_H
#define TRAIN_BACKPROP_RUN_H

#include "kernels/mixing.h"
#include "lib/checkpoint/role.h"
#include "lib/train/backprop.h"

/* Logits of this many rows exist at a time, fewer of a large vocabulary. */
enum { BACKPROP_LOGIT_ROWS = 512, BACKPROP_LOGITS = 1 << 23, BACKPROP_LOGIT_ROWS_LEAST = 64 };

/* What a mixer that recurs leaves (pass-mixing.c has the same names), r, k, v and the output being
 * the layer's q, k, v, y; NULL what it has not. */
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
    struct attn_seq *seqs;
    float *table; /* [n, E] their rotation */
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
    struct askers all, scored;
    float *inv_freq;             /* [E/2] */
    float *asked;                /* [R,D] rows of n1 that ask in the last layer */
    float *top, *final;          /* [R,D] last stream of the scored rows, and its norm */
    float *logits;               /* [logit_rows, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dup, *scratch;
    float *lane[MIXING_LANES];   /* [T,D] gradients, of a mixer that recurs: of its lanes */
    float *mixed, *low;          /* [T,D], [T,R] of what is inside low-rank parts */
    float *dr, *dw, *dg, *da, *db, *dshare, *dfirst; /* [T,H*E], the last four of 7 */
    float *taken;                /* [R,H*E] rows of y that ask in the last layer */
    float *gain;                 /* [max(D, H*E)] gradients of gains that nobody asks for */
    double *row_loss, *loss;     /* [T]; [T] of sequences */
    int32_t *slots, *target;     /* [T]; [R] of the scored rows */
    float *weight;               /* [R] */
    const float *z;              /* [L, seqs*n, D] of the batch */
    float *dz, *dzk, *dzv;       /* its gradient; [seqs*n, K*E] those of its keys and values */
    float *ztable;               /* [seqs*n, E] the rotation of its keys */
    int32_t *zslots;             /* [seqs*n] 0, 1, ... */
    struct attn_seq *cross;      /* [seqs] rows of a layer, and the latents that they read */
    unsigned char *block;        /* all of it that is the back end's */
    size_t bytes;                /* of it, named so far */
};

/* ---- backprop.c ---- */

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

static inline size_t backprop_widest(const struct config *c)
{
    return c->width > c->heads * c->head_dim ? c->width : c->heads * c->head_dim;
}
/* What a vector's gradient is added to; where latents alone are asked for, room that nobody reads.
 */
float *backprop_sum(struct backprop *t, enum role r, size_t l);
/* out[n, wide] = the rows of x[T, wide] that ask; and the way back, in place: x[T, wide], zeros in
 * the other rows. */
void backprop_gather(const struct askers *a, float *out, const float *x, size_t wide);
void backprop_spread(const struct askers *a, float *x, size_t T, size_t wide);

/* ---- backprop-mixing.c ---- */

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

/* ---- backprop-latent.c ---- */

/* What layers need of the latents beside themselves. */
void backprop_cross_prepare(struct backprop *t, const struct train_batch *in);
/* y->crossed = y->mid + what the rows `who` read of layer l's latents. */
void backprop_cross(struct backprop *t, struct layer_tape *y, size_t l, const struct askers *who,
                    const struct train_batch *in);
/* t->dx becomes the gradient of y->mid, t->dz of layer l is set. */
void backprop_cross_back(struct backprop *t, const struct layer_tape *y, size_t l,
                         const struct askers *who, const struct train_batch *in);

#endif
