/* trainer.h - training of small networks: parameters, gradients, AdamW, on any back end.
 *
 *     struct trainer *t = trainer_make(&config, backend, seed, rows, DTYPE_F32, &e);
 *     double loss = trainer_loss(t, &batch, 1);
 *     trainer_update(t, rate, 0.1, 1.0);
 *
 * The weights of a batch (documents.h) define the loss:
 *
 *     next token        1/count on every scored row, count scored rows; causal mask
 *     masked diffusion  2u/(p n B) on every masked row: B sequences, n tokens of the sequence can
 *                       be masked; full or block-causal mask
 *     latent model      1 on every scored row; the loss is -ELBO per token
 *
 * For a latent model a posterior is first fitted to each sequence (the fast loop, posterior.h). The
 * loss and the gradients of the parameters then come from a fresh draw of the posterior (the slow
 * step).
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

/* A trainer with drawn weights (parameters_make). `rows`: largest seqs*len of a batch. `products`:
 * F32 or BF16, see backprop.h; values, gradients and moments are fp32 in both cases. The caller's
 * (trainer_free). NULL: EXIT_BAD_USAGE: trainer_check() refuses, or the back end is a device and
 * the model is latent, how->sum is set or heads are wider than ATTENTION_BACK_CUDA_MOST;
 * EXIT_INTERNAL: memory is short. */
struct trainer *trainer_make(const struct config *config, struct backend *backend, uint64_t seed,
                             size_t rows, enum dtype products, struct err *e);
/*   back   the activations that a pass keeps, and its precision (backprop.h)
 *   parts  number of parts of a batch; 0 and 1: no split. A part has whole sequences; no sequence
 *          is longer than `longest`. Only the activations of one part exist at a time. Loss and
 *          gradients are added part by part.
 *   sum    NULL: this trainer computes all parts. Else this trainer is one of `parts` trainers in
 *          separate processes and computes part `me`. sum() must leave in *loss and g[n] the sums
 *          over all parts, added in the order of the numbers of the parts, so that the bits equal
 *          the bits of one trainer that computes all parts. work: n floats. */
struct trainer_how {
    struct backprop_how back;
    size_t parts, longest, me;
    void (*sum)(void *ctx, double *loss, float *g, size_t n, float *work);
    void *ctx;
};
struct trainer *trainer_make_as(const struct config *config, struct backend *backend, uint64_t seed,
                                size_t rows, const struct trainer_how *how, struct err *e);
/* Bytes that a trainer allocates from the back end. parameters: values, gradients, moments, rounded
 * values unless quant is QUANT_NONE, and with several parts the sum of the gradients. activations:
 * also the posteriors of a latent model. */
struct trainer_need {
    size_t parameters, activations;
};
struct trainer_need trainer_need(const struct config *config, struct backend *backend, size_t rows,
                                 const struct trainer_how *how, enum dtype quant);
void trainer_free(struct trainer *trainer);

/* From now on losses and gradients use values rounded to `quant`. -1: as parameters_quantize(), or
 * EXIT_BAD_USAGE on a device. */
int trainer_quantize(struct trainer *trainer, enum dtype quant, struct err *e);

/* Sets how posteriors of a latent model are fitted (default: 16 steps from POSTERIOR_RATE). */
void trainer_fit(struct trainer *trainer, const struct posterior_fit *how);
/* Returns the loss of the batch. gradients 1: also computes d loss / d parameters. */
double trainer_loss(struct trainer *trainer, const struct train_batch *batch, int gradients);
/* parameters_update(). */
double trainer_update(struct trainer *trainer, double rate, double decay, double clip);
int64_t trainer_step(const struct trainer *trainer); /* updates done */
/* Calls share() for each part of the state: values, moments, step. share() may overwrite the part,
 * so that all processes begin with equal states. */
void trainer_share(struct trainer *trainer, void (*share)(void *ctx, void *x, size_t bytes),
                   void *ctx);

/* Rows first..end of the embedding and the head that belong to new tokens; first == end: none. */
struct new_rows {
    size_t first, end;
};
/* Copies the weights of another checkpoint of the same shape, of any family. So a next-token model
 * is converted to denoising, as LLaDA 2.0 was (method: arXiv 2410.17891), or a model gets latents;
 * the weights of the attention to latents then stay as drawn. The rows `added`,
 * which the checkpoint may lack, become the mean of the other rows. -1 (EXIT_BAD_DATA): the shapes
 * differ. */
int trainer_take(struct trainer *trainer, const struct checkpoint *from,
                 const struct new_rows *added, struct err *e);

/* parameters_on_host(). */
float *trainer_values(struct trainer *trainer, enum role role, size_t layer);
/* SHA-256 of all values, in hexadecimal. */
void trainer_hash(struct trainer *trainer, char hex[65]);

/* parameters_save() and parameters_restore(). */
int trainer_save(const struct trainer *trainer, const char *path, const json_t *note,
                 struct err *e);
int trainer_restore(struct trainer *trainer, const char *path, json_t **note, struct err *e);
