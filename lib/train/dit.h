/* dit.h - a diffusion transformer over the latents of a text: the learned prior of a latent thought
 * model, trained after the model.
 *
 * A sample is N latents of Z values, standardized (mean 0, variance 1 over the training set).
 *
 *     y = Win z + position,  c = T2 silu(T1 waves(t))
 *     per layer, (s1, g1, a1, s2, g2, a2) = A silu(c) + bias:
 *         y += a1 * attention(norm(y) (1 + g1) + s1),   all latents see each other
 *         y += a2 * Wdown gelu(Wup (norm(y) (1 + g2) + s2))
 *     (s, g) = F silu(c) + bias;  v = Wout (norm(y) (1 + g) + s)
 *
 * norm has no gains and eps 1e-6; gelu uses tanh. A and F start at 0 (adaLN-Zero), so an untrained
 * transformer is a linear map. It predicts v = alpha noise - s z of the cosine schedule,
 * alpha = cos(pi t / 2), s = sin(pi t / 2). There is no self-conditioning, because the solvers
 * (lib/latent/solver.h) need a prediction that depends on x and t only.
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

/* Draws the weights from the seed; a pass takes up to `batch` samples. NULL: the back end is not a
 * CPU (EXIT_NO_DEVICE), or memory is short (EXIT_FAILED_RECORDS). */
struct dit *dit_make(const struct dit_shape *shape, struct backend *backend, uint64_t seed,
                     size_t batch, struct err *e);
void dit_free(struct dit *dit); /* NULL is fine */
/* Bytes that dit_make takes, rounded as the back end rounds blocks. */
size_t dit_bytes(const struct dit *dit);
size_t dit_parameters(const struct dit *dit);
const struct dit_shape *dit_shape_of(const struct dit *dit);
size_t dit_batch(const struct dit *dit); /* most samples of a pass */

/* v[n, N, Z] for x[n, N, Z] at times t[n]; n <= batch. */
void dit_predict(struct dit *dit, const float *x, const double *t, size_t n, float *v);
/* The mean square error of v over latents[n, N, Z], with times and noise drawn by (seed, draw).
 * With `gradients` also computes its gradient, which replaces the previous one. */
double dit_loss(struct dit *dit, const float *latents, size_t n, uint64_t seed, uint64_t draw,
                int gradients);
/* One AdamW step (beta 0.9, 0.95; no decay, as DiT), clipped to norm `clip`. Updates the average:
 * keep * average + (1 - keep) * weights. Returns the norm before clipping. */
double dit_update(struct dit *dit, double rate, double clip, double keep);
int64_t dit_step(const struct dit *dit); /* updates done */
/* Replaces the weights by their average. */
void dit_use_average(struct dit *dit);

/* Stores mean and standard deviation of every value of z[n, N, Z], for the two functions below. */
void dit_standardize(struct dit *dit, const float *z, size_t n);
void dit_to_standard(const struct dit *dit, float *z, size_t n);   /* in place */
void dit_from_standard(const struct dit *dit, float *z, size_t n); /* the inverse */
/* Sum over the values of the log of the standard deviation: the change of log density by
 * scaling. */
double dit_log_deviation(const struct dit *dit);

/* For tests: values, gradients [dit_parameters]; borrowed, values writable. */
float *dit_values(struct dit *dit);
const float *dit_gradients(const struct dit *dit);

/* Writes one safetensors file: shape, means and deviations, and the average of the weights. `whole`
 * 1: also weights, moments and step, so that training can resume. */
int dit_save(const struct dit *dit, const char *path, int whole, struct err *e);
/* Reads such a file: the weights of a whole file, else the average. NULL: EXIT_BAD_DATA, file
 * errors, or as dit_make. */
struct dit *dit_open(const char *path, struct backend *backend, size_t batch, struct err *e);
