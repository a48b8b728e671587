/* backprop.h - the loss of a batch and its gradient. */
#ifndef TRAIN_BACKPROP_H
#define TRAIN_BACKPROP_H

#include "lib/train/parameters.h"

/* seqs sequences of len rows. A row of weight 0 has no target. loss = sum of weight * CE. */
struct train_batch {
    size_t seqs, len;
    int32_t *token, *target; /* [seqs * len] */
    float *weight;           /* [seqs * len] */
};

struct backprop; /* the activations of one batch, and the room for their gradients */

/* rows: most seqs*len of a batch. products: F32 or BF16, struct gemm's dtype in the products of the
 * linear layers; with BF16 attention may round what it multiplies too (struct attn.half). All else
 * is fp32. The parameters are borrowed. NULL: no
 * memory. The caller's. */
struct backprop *backprop_make(struct parameters *p, size_t rows, enum dtype products);
void backprop_free(struct backprop *t); /* NULL is fine */

/* The loss; with `gradients`, also d loss / d parameters (replacing the former ones). */
double backprop_loss(struct backprop *t, const struct train_batch *in, int gradients);

#endif
