/* train_parts.h - what train.c (parameters, updates) and backprop.c (loss, gradients) share. */
#ifndef TRAIN_TRAIN_PARTS_H
#define TRAIN_TRAIN_PARTS_H

#include "kernels/train.h"
#include "lib/train/train.h"

/* What a layer's forward pass leaves for its backward pass. */
struct layer_tape {
    float *x, *n1, *q, *k, *v, *y; /* input [T,D], its norm, rotated q and k, v, attention out */
    float *mid, *n2, *gate, *up, *act; /* after attention [T,D], its norm, [T,F] each */
};

struct trainer {
    struct config c;
    struct backend *b;
    const struct train_ops *train;
    size_t n, rows;              /* parameters; capacity in rows */
    float *w, *g, *m1, *m2;      /* [n] values, gradients, moments */
    size_t (*at)[ROLE_COUNT];    /* [L] offsets of the per-layer roles; row 0 also the others */
    struct mat *mats;            /* [L * ROLE_COUNT] packed for y = x W^T, refilled every pass */
    struct layer_tape *tape;     /* [L] */
    float *inv_freq, *table;     /* [E/2], [T, E] */
    float *top, *final, *pick;   /* [T,D] last stream; norm and stream of the scored rows */
    float *logits;               /* [LOGIT_ROWS, V] */
    float *dx, *dn, *dq, *dk, *dv, *dy, *dgate, *dup, *scratch;
    double *row_loss;
    int32_t *pos, *slots, *scored; /* [T] */
    int32_t *target;               /* [T] of the scored rows */
    float *weight;                 /* [T] of the scored rows */
    struct attn_seq *seqs;
    int64_t step;
};

enum { LOGIT_ROWS = 512 }; /* logits of this many rows exist at a time */

struct mat *trainer_mat(struct trainer *t, enum role r, size_t layer);
/* Packs the current values of every matrix. */
void trainer_pack(struct trainer *t);

#endif
