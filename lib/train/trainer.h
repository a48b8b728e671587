/* trainer.h - training of small networks: parameters, gradients, AdamW, all on the CPU back end.
 *
 *     struct trainer *t = trainer_make(&config, backend, seed, rows, DTYPE_F32, &e);
 *     double loss = trainer_loss(t, &batch, 1);
 *     trainer_update(t, rate, 0.1, 1.0);
 *
 * Losses: next token (weight 1/count on every scored row, causal mask) and masked diffusion (weight
 * 2u/(p L B) on masked rows, see training_batch.h; full mask). Of a latent model it is -ELBO a
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
void trainer_free(struct trainer *t);

/* How a latent model's posteriors are fitted; 16 steps from POSTERIOR_RATE unless said. */
void trainer_fit(struct trainer *t, const struct posterior_fit *how);
/* The loss; with `gradients`, also d loss / d parameters (replacing the former ones). */
double trainer_loss(struct trainer *t, const struct train_batch *batch, int gradients);
/* One AdamW step (beta 0.9, 0.95; eps 1e-8), gradients clipped to global norm `clip`; decay on
 * matrices only. Returns the norm before clipping. */
double trainer_update(struct trainer *t, double rate, double decay, double clip);
int64_t trainer_step(const struct trainer *t); /* updates done */

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
