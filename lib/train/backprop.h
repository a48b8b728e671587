/* backprop.h - the loss of a batch and its gradient. */
#pragma once

#include "lib/train/parameters.h"
#include "lib/train/train_batch.h"

struct backprop; /* memory for the activations of one batch and their gradients */

/* The activations that a forward pass keeps for the backward pass, and the precision of both.
 *
 *   products    F32 or BF16: the dtype of struct gemm in the linear layers. With BF16, attention
 *               may round its factors too (struct attn.half). All other operations use fp32.
 *   every       0: every layer keeps its activations. Else gradient checkpointing (Chen et al.
 *               2016, arXiv 1604.06174): layers form parts of `every` layers, and of each part only
 *               the input of the first layer is kept. The backward pass computes a part again by
 *               the same operations on the same values, so loss and gradients have the same bits.
 *   whole_loss  1: the logits of all rows exist at once. 0: logits and their gradients are computed
 *               for one block of rows after another. Sums over rows are then sums over blocks,
 *               which may change the last bits.
 *   latents     1: the caller never asks for gradients of parameters, so the inputs of linear
 *               layers are not kept. */
struct backprop_how {
    enum dtype products;
    size_t every;
    int whole_loss, latents;
};

/* rows: largest seqs*len of a batch. seqs: most sequences of a batch (read for latent models only).
 * `parameters` is borrowed. The result is the caller's (backprop_free). NULL: no memory. */
struct backprop *backprop_make_as(struct parameters *parameters, size_t rows, size_t seqs,
                                  const struct backprop_how *how);
/* backprop_make_as() with `products`; every other field of struct backprop_how is 0. */
struct backprop *backprop_make(struct parameters *parameters, size_t rows, size_t seqs,
                               enum dtype products);
void backprop_free(struct backprop *backprop); /* NULL is fine */
/* Bytes of the one block that backprop_make_as allocates from the back end. */
size_t backprop_bytes(const struct config *config, struct backend *backend, size_t rows,
                      size_t seqs, const struct backprop_how *how);

enum backprop_of {
    BACKPROP_LOSS,       /* no gradient */
    BACKPROP_PARAMETERS, /* d loss / d parameters; overwrites the gradients of the last call */
    BACKPROP_LATENTS     /* d loss / d z only; parameters without gradients (parameters_read) do */
};
/* Computes the gradient that `of` names. Returns the loss of train_batch.h. */
double backprop_loss(struct backprop *backprop, const struct train_batch *in, enum backprop_of of);
/* On a back end that replays passes (ops.prepare), records the passes of BACKPROP_LATENTS for
 * batches with the shape of `in`. The first backprop_loss() then costs no more than later ones.
 * in->z may hold any values. */
void backprop_prepare(struct backprop *backprop, struct train_batch *in);
/* Results of the last backprop_loss(), in memory of the host, borrowed until the next call.
 * backprop_latents(): d loss / d z [L, seqs, n, D] of a latent model. backprop_losses(): the part
 * of the loss that belongs to each sequence [seqs]. */
const float *backprop_latents(const struct backprop *backprop);
const double *backprop_losses(const struct backprop *backprop);
