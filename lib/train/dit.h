/* dit.h - a diffusion transformer over the latents of a text: the prior that a latent thought model
 * learns once its own training is done.
 *
 * A sample is N latents of Z values, standardized (mean 0, variance 1 over the training set).
 *
 *     y = Win z + position,  c = T2 silu(T1 waves(t))
 *     per layer, (s1, g1, a1, s2, g2, a2) = A silu(c) + bias:
 *         y += a1 * attention(norm(y) (1 + g1) + s1),   all latents see each other
 *         y += a2 * Wdown gelu(Wup (norm(y) (1 + g2) + s2))
 *     (s, g) = F silu(c) + bias;  v = Wout (norm(y) (1 + g) + s)
 *
 * norm without gains, eps 1e-6; gelu by tanh; A and F begin at 0 (adaLN-Zero), so that a fresh one
 * is a linear map. It predicts v = alpha noise - s z of the cosine schedule, alpha = cos(pi t / 2),
 * s = sin(pi t / 2). Self-conditioning is left out: the solvers (lib/latent/solver.h) take the
 * prediction for a function of x and t, and of nothing before.
 * Source: Peebles & Xie 2023 (DiT, arXiv 2212.09748), 3.2; Salimans & Ho 2022 (v, arXiv
 * 2202.00512); Lovelace et al. 2023 (latents of text, arXiv 2212.09462).
 */
#ifndef TRAIN_DIT_H
#define TRAIN_DIT_H

#include <jansson.h>
#include <stdint.h>

#include "kernels/train.h"
#include "lib/base/err.h"

struct dit_shape {
    size_t tokens, values; /* N, Z of a sample */
    size_t width, layers, heads;
};

struct dit;

/* Weights drawn from the seed; passes over up to `batch` samples. NULL: the back end is no
 * processor (EXIT_NO_DEVICE), or memory is short (EXIT_FAILED_RECORDS). */
struct dit *dit_make(const struct dit_shape *s, struct backend *b, uint64_t seed, size_t batch,
                     struct err *e);
void dit_free(struct dit *d); /* NULL is fine */
/* Bytes that dit_make asks for, block by block as the back end hands them out. */
size_t dit_bytes(const struct dit *d);
size_t dit_parameters(const struct dit *d);
const struct dit_shape *dit_shape_of(const struct dit *d);
size_t dit_batch(const struct dit *d); /* samples at a time */

/* v[n, N, Z] for x[n, N, Z] at times t[n]; n <= batch. */
void dit_predict(struct dit *d, const float *x, const double *t, size_t n, float *v);
/* The mean square error of v over z[n, N, Z] with times and noise of (seed, draw); with `gradients`
 * also its gradient, replacing the former one. */
double dit_loss(struct dit *d, const float *z, size_t n, uint64_t seed, uint64_t draw,
                int gradients);
/* One AdamW step (beta 0.9, 0.95; no decay, as DiT), clipped to norm `clip`. The average of the
 * weights keeps `keep` of itself. Returns the norm before clipping. */
double dit_update(struct dit *d, double rate, double clip, double keep);
int64_t dit_step(const struct dit *d); /* updates done */
/* The weights give place to their average. */
void dit_use_average(struct dit *d);

/* What z[n, N, Z] are like becomes part of it: mean and standard deviation of every value. */
void dit_standardize(struct dit *d, const float *z, size_t n);
void dit_to_standard(const struct dit *d, float *z, size_t n);   /* in place */
void dit_from_standard(const struct dit *d, float *z, size_t n); /* the way back */
double dit_log_deviation(const struct dit *d); /* sum over the values: what the scale weighs */

/* values, gradients [dit_parameters]; borrowed, writable: for tests. */
float *dit_values(struct dit *d);
const float *dit_gradients(const struct dit *d);

/* One safetensors file: shape, standard, and the average of the weights; `whole` 1: the weights,
 * the moments and the step, too, for training to go on. */
int dit_save(const struct dit *d, const char *path, int whole, struct err *e);
/* What was saved; of a whole one the weights, else the average. NULL: EXIT_BAD_DATA, file errors,
 * or as dit_make. */
struct dit *dit_open(const char *path, struct backend *b, size_t batch, struct err *e);

#endif
