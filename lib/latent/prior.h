/* prior.h - latents that no text was read for: drawn by a transformer that learned what fitted ones
 * are like (lib/train/dit.h), from noise by a solver.
 *
 * Second stage of two: once a latent thought model is trained, its posteriors of the training texts
 * are the data, and the prior N(0, I), under which the model was trained, gives place to their law.
 * Source: Lovelace et al. 2023 (arXiv 2212.09462), 4, for the two stages.
 */
#ifndef LATENT_PRIOR_H
#define LATENT_PRIOR_H

#include "lib/checkpoint/config.h"
#include "lib/latent/solver.h"
#include "lib/train/dit.h"

#define PRIOR_FILE "prior.safetensors" /* in the folder of the model */

/* The prior in a model's folder, for up to `texts` at a time; the caller's (dit_free). NULL:
 * EXIT_NO_INPUT when there is none, EXIT_BAD_DATA when it is of latents of another shape. */
struct dit *prior_open(const char *folder, const struct config *c, struct backend *b, size_t texts,
                       struct err *e);
/* z[L, texts, n, D] drawn; what is drawn for a text depends on (seed, its key) alone. */
void prior_draw(struct dit *d, const struct config *c, const struct solver *how, uint64_t seed,
                const uint64_t *keys, size_t texts, float *z);
/* Nats, an upper bound of -log p of latents z[n, N, Z] as they are, a sample in the mean, by so
 * many draws (solver_bound, and the scale of the standard). z is overwritten. */
double prior_bound(struct dit *d, float *z, size_t n, size_t draws, uint64_t seed);

/* z[texts][L n D] of a text together, from [L, texts, n D], and back. */
void prior_gather(const struct config *c, const float *z, size_t texts, float *out);
void prior_scatter(const struct config *c, const float *z, size_t texts, float *out);

#endif
