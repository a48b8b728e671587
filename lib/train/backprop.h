/* backprop.h - the loss of a batch and its gradient. */
#ifndef TRAIN_BACKPROP_H
#define TRAIN_BACKPROP_H

#include "lib/train/parameters.h"
#include "lib/train/train_batch.h"

struct backprop; /* the activations of one batch, and the room for their gradients */

/* What of a pass exists until the way back, and how exact it is.
 *
 * products: F32 or BF16, struct gemm's dtype in the products of the linear layers; with BF16
 * attention may round what it multiplies too (struct attn.half). All else is fp32.
 * every: 0, or gradient checkpointing (Chen et al. 2016, arXiv 1604.06174): of so many layers that
 * follow one another only the input of the first is kept, and the way back computes them again, by
 * the same operations on the same values: loss and gradients are the same bits.
 * whole_loss: 1: the logits of all rows exist at once. 0: those of a block of rows, and its
 * gradient, before the next block's; the sums over rows are then sums over blocks, which may move
 * the last bits where there are several.
 * latents: 1: the parameters' gradients are never asked for, so what the linear layers read need
 * not be kept. A device has no others. */
struct backprop_how {
    enum dtype products;
    size_t every;
    int whole_loss, latents;
};

/* rows: most seqs*len of a batch; seqs: most sequences (counts for a latent model alone). The
 * parameters are borrowed. NULL: no memory. The caller's. */
struct backprop *backprop_make_as(struct parameters *p, size_t rows, size_t seqs,
                                  const struct backprop_how *how);
/* With products so, and all else 0. */
struct backprop *backprop_make(struct parameters *p, size_t rows, size_t seqs,
                               enum dtype products);
void backprop_free(struct backprop *t); /* NULL is fine */
/* Bytes of the back end that backprop_make_as asks for, in one block. */
size_t backprop_bytes(const struct config *c, struct backend *b, size_t rows, size_t seqs,
                      const struct backprop_how *how);

enum backprop_of {
    BACKPROP_LOSS,       /* no gradient */
    BACKPROP_PARAMETERS, /* d loss / d parameters, replacing the former ones */
    BACKPROP_LATENTS     /* d loss / d z alone: the parameters need no room for gradients */
};
/* The loss, with that gradient. */
double backprop_loss(struct backprop *t, const struct train_batch *in, enum backprop_of of);
/* Does all that is done once only for the gradient of latents of batches of this shape, on a back
 * end that records what comes again (ops.prepare), so that from here on it costs what it always
 * will. in->z may hold anything. */
void backprop_prepare(struct backprop *t, struct train_batch *in);
/* After backprop_loss, of a latent model: d loss / d z [L, seqs, n, D]; and the parts of the loss
 * that the sequences have, [seqs]. Memory of the host, borrowed until the next call. */
const float *backprop_latents(const struct backprop *t);
const double *backprop_losses(const struct backprop *t);

#endif
