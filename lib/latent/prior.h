/* prior.h - latents drawn from a learned prior: a solver turns noise into latents along the flow of
 * a transformer (lib/train/dit.h) that learned the distribution of fitted latents.
 *
 * The prior is trained after the latent thought model, on the posteriors of the training texts, and
 * replaces N(0, I), with which the model was trained.
 * Source: Lovelace et al. 2023 (arXiv 2212.09462), 4, for the two stages. */
#pragma once

#include "lib/checkpoint/config.h"
#include "lib/latent/solver.h"
#include "lib/train/dit.h"

#define PRIOR_FILE "prior.safetensors" /* in the folder of the model */

/* Opens the prior in the folder of a model, for passes over up to `texts` texts; the caller's
 * (dit_free). NULL: EXIT_NO_INPUT (there is no prior), EXIT_BAD_DATA (the latents of the prior have
 * another shape), or as dit_open(). */
struct dit *prior_open(const char *folder, const struct config *config, struct backend *backend,
                       size_t texts, struct err *e);
/* Draws latents[L, texts, n, D]. The draw of a text depends only on the seed and its key. */
void prior_draw(struct dit *dit, const struct config *config, const struct solver *how,
                uint64_t seed, const uint64_t *keys, size_t texts, float *latents);
/* An estimate of an upper bound of -log p(z), in nats per sample, as the mean over the n samples
 * z[n, N, Z] (not standardized): solver_bound() by `draws` draws, plus dit_log_deviation(). z is
 * overwritten. */
double prior_bound(struct dit *dit, float *z, size_t n, size_t draws, uint64_t seed);

/* prior_gather(): out[texts, L n D], where the values of a text are contiguous, from
 * z[L, texts, n D]. prior_scatter(): the inverse. */
void prior_gather(const struct config *config, const float *z, size_t texts, float *out);
void prior_scatter(const struct config *config, const float *z, size_t texts, float *out);
