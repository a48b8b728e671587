/* backprop.h - the loss of a batch and its gradient. */
#ifndef TRAIN_BACKPROP_H
#define TRAIN_BACKPROP_H

#include "lib/train/parameters.h"

/* seqs sequences of len rows. A row of weight 0 has no target. loss = sum of weight * CE. */
struct train_batch {
    size_t seqs, len;
    int32_t *token, *target; /* [seqs * len] */
    float *weight;           /* [seqs * len] */
    /* Of a latent model, [L, seqs, n, D]: layer l's latents of every sequence; else NULL. */
    const float *z;
    int again; /* 1: all but z is as in the call before, and what it does not change is kept */
};

struct backprop; /* the activations of one batch, and the room for their gradients */

/* rows: most seqs*len of a batch; seqs: most sequences (counts for a latent model alone). products:
 * F32 or BF16, struct gemm's dtype in the products of the linear layers; with BF16 attention may
 * round what it multiplies too (struct attn.half). All else is fp32. The parameters are borrowed.
 * NULL: no memory. The caller's. */
struct backprop *backprop_make(struct parameters *p, size_t rows, size_t seqs,
                               enum dtype products);
void backprop_free(struct backprop *t); /* NULL is fine */
/* Bytes of the back end that backprop_make asks for, in one block. */
size_t backprop_bytes(const struct config *c, struct backend *b, size_t rows, size_t seqs);

enum backprop_of {
    BACKPROP_LOSS,       /* no gradient */
    BACKPROP_PARAMETERS, /* d loss / d parameters, replacing the former ones */
    BACKPROP_LATENTS     /* d loss / d z alone: the parameters need no room for gradients */
};
/* The loss, with that gradient. */
double backprop_loss(struct backprop *t, const struct train_batch *in, enum backprop_of of);
/* After that, of a latent model: d loss / d z [L, seqs, n, D]; and the parts of the loss that the
 * sequences have, [seqs]. Borrowed until the next call. */
const float *backprop_latents(const struct backprop *t);
const double *backprop_losses(const struct backprop *t);

#endif
