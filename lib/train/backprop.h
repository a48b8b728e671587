/* backprop.h - the loss of a batch and its gradient. */
#pragma once

#include "lib/train/parameters.h"
#include "lib/train/train_batch.h"

struct backprop; /* the activations of one batch, and room for their gradients */

/* The activations that a forward pass keeps for the backward pass, and its precision.
 *
 * products: F32 or BF16, the dtype of struct gemm in the linear layers. With BF16, attention may
 * round its factors too (struct attn.half). All other operations use fp32.
 * every: 0, or gradient checkpointing (Chen et al. 2016, arXiv 1604.06174): of `every` consecutive
 * layers only the input of the first is kept; the backward pass computes these layers again, by the
 * same operations on the same values, so loss and gradients have the same bits.
 * whole_loss: 1: the logits of all rows exist at once. 0: logits and their gradient are computed by
 * blocks of rows; with several blocks the sums over rows are sums over blocks, which may change the
 * last bits.
 * latents: 1: gradients of parameters are never asked for, so the inputs of linear layers need not
 * be kept. */
struct backprop_how {
    enum dtype products;
    size_t every;
    int whole_loss, latents;
};

/* rows: most seqs*len of a batch; seqs: most sequences (only latent models use it). The parameters
 * are borrowed. NULL: no memory. The caller's. */
struct backprop *backprop_make_as(struct parameters *parameters, size_t rows, size_t seqs,
                                  const struct backprop_how *how);
/* backprop_make_as with these products and every other field 0. */
struct backprop *backprop_make(struct parameters *parameters, size_t rows, size_t seqs,
                               enum dtype products);
void backprop_free(struct backprop *backprop); /* NULL is fine */
/* Bytes of the back end that backprop_make_as asks for, in one block. */
size_t backprop_bytes(const struct config *config, struct backend *backend, size_t rows,
                      size_t seqs, const struct backprop_how *how);

enum backprop_of {
    BACKPROP_LOSS,       /* no gradient */
    BACKPROP_PARAMETERS, /* d loss / d parameters, replacing the previous ones */
    BACKPROP_LATENTS     /* d loss / d z only: parameters need no room for gradients */
};
/* Returns the loss; computes the gradient that `of` names. */
double backprop_loss(struct backprop *backprop, const struct train_batch *in, enum backprop_of of);
/* Records the passes for gradients of latents with batches of this shape, on a back end that
 * replays passes (ops.prepare), so that the first call costs no more than later ones. in->z may
 * hold anything. */
void backprop_prepare(struct backprop *backprop, struct train_batch *in);
/* For a latent model, after backprop_loss: d loss / d z [L, seqs, n, D], and each sequence's part
 * of the loss [seqs]. Memory of the host, borrowed until the next call. */
const float *backprop_latents(const struct backprop *backprop);
const double *backprop_losses(const struct backprop *backprop);
