/* trainer.h - training of small networks: parameters, gradients, AdamW, on any back end.
 *
 *     struct trainer *t = trainer_make(&config, backend, seed, rows, DTYPE_F32, &e);
 *     double loss = trainer_loss(t, &batch, 1);
 *     trainer_update(t, rate, 0.1, 1.0);
 *
 * Losses: next token (weight 1/count on every scored row, causal mask); masked diffusion (weight
 * 2u/(p L B) on masked rows, see documents.h; full mask); for a latent model -ELBO per token
 * (weight 1 on every scored row). For a latent model a posterior is first fitted to each sequence
 * (the fast loop, posterior.h); the loss and the gradients of the parameters then come from a fresh
 * draw of the posterior (the slow step).
 * Source: LLaDA (arXiv 2502.09992) eq. 3; Kong et al. 2025 (arXiv 2502.01567), algorithm 1. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/backprop.h"
#include "lib/train/posterior.h"

struct trainer;

/* -1 with EXIT_BAD_USAGE: a network of this shape cannot be trained. */
int trainer_check(const struct config *config, struct err *e);

/* Draws the weights: normal, std 1/sqrt(inputs), projections into the stream divided by sqrt(2L);
 * norms 1; RWKV mixers start as their authors start them. `rows`: most seqs*len of a batch;
 * `products`: F32 or BF16, see backprop.h. Values, gradients and moments are fp32 in both cases.
 * NULL: trainer_check() refuses, memory is short, or a device is to train a latent model, with
 * `sum`, or with heads wider than ATTENTION_BACK_CUDA_MOST. */
struct trainer *trainer_make(const struct config *config, struct backend *backend, uint64_t seed,
                             size_t rows, enum dtype products, struct err *e);
/* back: what a pass keeps (backprop.h).
 * parts: number of parts of a batch (0 and 1: no split). A part has whole sequences; no sequence is
 * longer than `longest`. Only the activations of one part exist at a time; loss and gradients are
 * summed part by part.
 * sum: NULL, or this trainer is one of `parts` trainers in separate processes and computes part
 * `me`. sum() must leave in loss and g[n] the sums over all parts, added in the order of their
 * numbers, so that the bits equal those of one trainer that computes all parts. work: n floats. */
struct trainer_how {
    struct backprop_how back;
    size_t parts, longest, me;
    void (*sum)(void *ctx, double *loss, float *g, size_t n, float *work);
    void *ctx;
};
struct trainer *trainer_make_as(const struct config *config, struct backend *backend, uint64_t seed,
                                size_t rows, const struct trainer_how *how, struct err *e);
/* Bytes of the back end that a trainer takes: parameters with gradients and moments (and rounded
 * values unless quant is QUANT_NONE); activations with the posteriors of a latent model. */
struct trainer_need {
    size_t parameters, activations;
};
struct trainer_need trainer_need(const struct config *config, struct backend *backend, size_t rows,
                                 const struct trainer_how *how, enum dtype quant);
void trainer_free(struct trainer *trainer);

/* From now on losses and gradients use rounded values. Errors as parameters_quantize, and
 * EXIT_BAD_USAGE on a device. */
int trainer_quantize(struct trainer *trainer, enum dtype quant, struct err *e);

/* Sets how posteriors of a latent model are fitted (default: 16 steps from POSTERIOR_RATE). */
void trainer_fit(struct trainer *trainer, const struct posterior_fit *how);
/* Returns the loss; with `gradients` also computes d loss / d parameters. */
double trainer_loss(struct trainer *trainer, const struct train_batch *batch, int gradients);
/* One AdamW step (beta 0.9, 0.95; eps 1e-8), gradients clipped to global norm `clip`; decay on
 * matrices only. Returns the norm before clipping. */
double trainer_update(struct trainer *trainer, double rate, double decay, double clip);
int64_t trainer_step(const struct trainer *trainer); /* updates done */
/* Lets `share` overwrite the state of the trainer: values, moments, step. */
void trainer_share(struct trainer *trainer, void (*share)(void *ctx, void *x, size_t bytes),
                   void *ctx);

/* Rows first..end of the embedding and the head that belong to new tokens; first == end: none. */
struct new_rows {
    size_t first, end;
};
/* Copies the weights of another checkpoint of the same shape, of any family: to convert a
 * next-token model to denoising, as LLaDA 2.0 was (method: arXiv 2410.17891), or to add latents,
 * whose weights stay as drawn. The rows `added`, which the checkpoint may lack, begin as the mean
 * of the other rows. -1: EXIT_BAD_DATA. */
int trainer_take(struct trainer *trainer, const struct checkpoint *from,
                 const struct new_rows *added, struct err *e);

/* The values of a role on the host, rows*cols floats; borrowed: parameters_on_host(). */
float *trainer_values(struct trainer *trainer, enum role role, size_t layer);
/* SHA-256 of all values. */
void trainer_hash(struct trainer *trainer, char hex[65]);

/* Saves weights, moments and step as one safetensors file with `note` (string members) as metadata.
 * Restoring: -1 with EXIT_BAD_DATA when the file has another shape; *note is the caller's. */
int trainer_save(const struct trainer *trainer, const char *path, const json_t *note,
                 struct err *e);
int trainer_restore(struct trainer *trainer, const char *path, json_t **note, struct err *e);
