/* trainer.h - training of small networks: parameters, gradients, AdamW, all on the CPU back end.
 *
 *     struct trainer *t = trainer_make(&config, backend, seed, rows, DTYPE_F32, &e);
 *     double loss = trainer_loss(t, &batch, 1);
 *     trainer_update(t, rate, 0.1, 1.0);
 *
 * Losses: next token (weight 1/count on every scored row, causal mask) and masked diffusion (weight
 * 2u/(p L B) on masked rows, see documents.h; full mask). Of a latent model it is -ELBO a
 * token (weight 1 on every scored row): a posterior is fitted to each sequence first (the fast
 * loop, posterior.h), and the loss, with the gradients of the parameters, is that of a fresh draw
 * of it (the slow step).
 * Source: LLaDA (arXiv 2502.09992) eq. 3; Kong et al. 2025 (arXiv 2502.01567), algorithm 1.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include <stddef.h>
#include <stdint.h>

#include "lib/checkpoint/checkpoint.h"
#include "lib/train/backprop.h"
#include "lib/train/posterior.h"

struct trainer;

/* Weights drawn: normal, std 1/sqrt(inputs), projections into the stream divided by sqrt(2L);
 * norms 1; of a mixer of RWKV what its authors begin with. `rows`: most seqs*len of a batch;
 * `products`: F32 or BF16, see backprop.h. Values, gradients and moments are fp32 with both. NULL:
 * the back end cannot train, or memory is short. */
struct trainer *trainer_make(const struct config *c, struct backend *b, uint64_t seed, size_t rows,
                             enum dtype products, struct err *e);
/* What a pass can spare (backprop.h), and how a batch is cut: into `parts` (0 and 1: none) of whole
 * sequences, none longer than `longest`. A part has activations of its own alone, and loss and
 * gradients are summed up part after part. With `sum` this trainer is one of `parts` of them, which
 * do the same in processes of their own: it computes part `me`, and sum() has to leave in loss and
 * g[n] the sums over all, in the order of their numbers: the same bits as one trainer that computes
 * all parts. work: n floats. */
struct trainer_how {
    struct backprop_how back;
    size_t parts, longest, me;
    void (*sum)(void *ctx, double *loss, float *g, size_t n, float *work);
    void *ctx;
};
struct trainer *trainer_make_as(const struct config *c, struct backend *b, uint64_t seed,
                                size_t rows, const struct trainer_how *how, struct err *e);
/* Bytes of the back end that it takes, quantization-aware or (QUANT_NONE) not: parameters with
 * gradients and moments; and the activations, a latent model's posteriors among them. */
struct trainer_need {
    size_t parameters, activations;
};
struct trainer_need trainer_need(const struct config *c, struct backend *b, size_t rows,
                                 const struct trainer_how *how, enum dtype quant);
void trainer_free(struct trainer *t);

/* From now on losses and gradients are those of the quantized values, see parameters.h. -1. */
int trainer_quantize(struct trainer *t, enum dtype quant, struct err *e);

/* How a latent model's posteriors are fitted; 16 steps from POSTERIOR_RATE unless said. */
void trainer_fit(struct trainer *t, const struct posterior_fit *how);
/* The loss; with `gradients`, also d loss / d parameters (replacing the former ones). */
double trainer_loss(struct trainer *t, const struct train_batch *batch, int gradients);
/* One AdamW step (beta 0.9, 0.95; eps 1e-8), gradients clipped to global norm `clip`; decay on
 * matrices only. Returns the norm before clipping. */
double trainer_update(struct trainer *t, double rate, double decay, double clip);
int64_t trainer_step(const struct trainer *t); /* updates done */
/* Lets `share` overwrite all that a trainer has learned: values, moments, step. */
void trainer_share(struct trainer *t, void (*share)(void *ctx, void *x, size_t bytes), void *ctx);

/* Takes the weights of another checkpoint of the same shape, whatever its family: a next-token
 * model converted to denoising, as LLaDA 2.0 was (arXiv 2410.17891 describes the way), or given
 * latents, for which its own drawn weights stay. -1: 65. */
int trainer_take(struct trainer *t, const struct checkpoint *from, struct err *e);

/* The values of a role, rows*cols floats; borrowed, writable. */
float *trainer_values(struct trainer *t, enum role r, size_t layer);

/* Weights, moments and step as one safetensors file with `note` (string members) as metadata.
 * Loading: -1 with 65 when it belongs to another shape; *note is the caller's reference. */
int trainer_save(const struct trainer *t, const char *path, const json_t *note, struct err *e);
int trainer_restore(struct trainer *t, const char *path, json_t **note, struct err *e);

#endif
