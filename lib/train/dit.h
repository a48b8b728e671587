/* dit.h - a diffusion transformer over the latents of a text: the learned prior of a latent thought
 * model, trained after the model.
 *
 * A sample is N latents of Z values, standardized (mean 0, variance 1 over the training set). y is
 * the residual stream [N, D], t in 0..1 the time, waves(t) its sinusoidal embedding.
 *
 *     y = Win z + position,  c = T2 silu(T1 waves(t))
 *     per layer, (s1, g1, a1, s2, g2, a2) = A silu(c) + bias:
 *         y += a1 * attention(norm(y) (1 + g1) + s1),   all latents see each other
 *         y += a2 * Wdown gelu(Wup (norm(y) (1 + g2) + s2))
 *     (s, g) = F silu(c) + bias;  v = Wout (norm(y) (1 + g) + s)
 *
 * norm has no gains and eps 1e-6; gelu uses tanh. A and F start at 0 (adaLN-Zero), so an untrained
 * layer adds nothing to y. The transformer sees x = alpha z + s noise and predicts
 * v = alpha noise - s z, by the cosine schedule alpha = cos(pi t / 2), s = sin(pi t / 2). There is
 * no self-conditioning, because the solvers (lib/latent/solver.h) need a prediction that depends on
 * x and t only.
 * Source: Peebles & Xie 2023 (DiT, arXiv 2212.09748), 3.2; Salimans & Ho 2022 (v, arXiv
 * 2202.00512); Lovelace et al. 2023 (latents of text, arXiv 2212.09462). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "kernels/train.h"
#include "lib/base/err.h"

struct dit_shape {
    size_t tokens, values; /* N, Z of a sample */
    size_t width, layers, heads;
};

struct dit;

/* A transformer with weights drawn from the seed, for passes over up to `batch` samples. The
 * caller's (dit_free). NULL: the back end is not a CPU (EXIT_NO_DEVICE), or memory is short
 * (EXIT_FAILED_RECORDS). */
struct dit *dit_make(const struct dit_shape *shape, struct backend *backend, uint64_t seed,
                     size_t batch, struct err *e);
void dit_free(struct dit *dit); /* NULL is fine */
/* Bytes that dit_make allocates from the back end, rounded as the back end rounds blocks. */
size_t dit_bytes(const struct dit *dit);
size_t dit_parameters(const struct dit *dit);
const struct dit_shape *dit_shape_of(const struct dit *dit);
size_t dit_batch(const struct dit *dit); /* most samples of a pass */

/* v[n, N, Z] for x[n, N, Z] at times t[n]; n <= batch. */
void dit_predict(struct dit *dit, const float *x, const double *t, size_t n, float *v);
/* The mean square error of v over latents[n, N, Z], with times and noise drawn by (seed, draw).
 * gradients 1: also computes the gradient of the error; it overwrites the previous gradient. */
double dit_loss(struct dit *dit, const float *latents, size_t n, uint64_t seed, uint64_t draw,
                int gradients);
/* One AdamW step (beta 0.9, 0.95; eps 1e-8; no decay, as in DiT) with the gradient clipped to norm
 * `clip`. Then average = keep * average + (1 - keep) * weights. Returns the unclipped norm. */
double dit_update(struct dit *dit, double rate, double clip, double keep);
int64_t dit_step(const struct dit *dit); /* updates done */
/* Replaces the weights by their average. */
void dit_use_average(struct dit *dit);

/* Stores mean and standard deviation (at least 1e-6) of each of the N Z values over the n samples
 * z[n, N, Z]. dit_to_standard() standardizes z in place, dit_from_standard() does the inverse. */
void dit_standardize(struct dit *dit, const float *z, size_t n);
void dit_to_standard(const struct dit *dit, float *z, size_t n);
void dit_from_standard(const struct dit *dit, float *z, size_t n);
/* The sum of log(standard deviation) over the N Z values: log density of a standardized sample
 * minus log density of the sample. */
double dit_log_deviation(const struct dit *dit);

/* For tests: the values (writable) and the gradients, dit_parameters() of each; borrowed. */
float *dit_values(struct dit *dit);
const float *dit_gradients(const struct dit *dit);

/* Writes one safetensors file: shape, step, means, deviations, and the average of the weights.
 * whole 1: also weights and moments, so that training can resume. */
int dit_save(const struct dit *dit, const char *path, int whole, struct err *e);
/* Reads a file of dit_save(). A file without weights gives the average as weights. NULL:
 * EXIT_BAD_DATA, file errors, or as dit_make. */
struct dit *dit_open(const char *path, struct backend *backend, size_t batch, struct err *e);
