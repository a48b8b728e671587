/* posterior.h - the latents of given texts: q(z|x) = N(mu, diag sigma^2), fitted to each text by
 * gradients while the network is fixed.
 *
 *     p(z) = N(0, I),  ELBO = E_q log p(x|z) - KL,  KL = 1/2 sum (mu^2 + sigma^2 - 1 - log sigma^2)
 *     z = mu + sigma eps,  g = d(-log p(x|z))/dz
 *     d(-ELBO)/d mu = g + mu,   d(-ELBO)/d log sigma^2 = 1/2 (g eps sigma + sigma^2 - 1)
 *
 * Each step draws a new eps, and an estimate uses draws that no step used. If one eps served all
 * steps and the estimate, mu and sigma would adapt to that draw, and the estimate could exceed
 * log p(x). With separate draws the estimate is a bound. The mean over the draws estimates -ELBO.
 * The negative log of the mean of p(x|z) p(z) / q(z) (IWAE) has an expectation between -log p(x)
 * and -ELBO.
 *
 * mu, sigma and their moments stay on the host, on every back end, because they are few (L n D
 * values per text) beside the work of a step. The noise comes from the host too, so the same
 * gradients give the same fit everywhere. On a device a step sends z, replays the recorded forward
 * and backward pass, and reads g.
 *
 * Arrays have the layout of train_batch.z: [L, texts, n, D]. A draw is a function of (seed, key of
 * the text, number of the draw) only, and each text has its own state, so the values of a text do
 * not depend on the other texts of the batch.
 * Source: Kong et al. 2025 (arXiv 2502.01567), 3; Kingma, Welling 2014 (arXiv 1312.6114); Burda,
 * Grosse, Salakhutdinov 2016 (arXiv 1509.00519). */
#pragma once

#include "lib/train/backprop.h"

struct posterior {
    const struct config *c;
    struct backend *b;
    size_t texts;         /* capacity */
    float *mean, *spread; /* mu; log sigma^2 */
    float *eps, *z;       /* the last draw */
    float *step[2];       /* gradients of mean and spread */
    float *moment[4];     /* AdamW: two of the mean, two of the spread */
    void *block, *own;    /* the memory of the arrays: block from the back end of a host, own from
                           * the host beside a device */
};
/* A fit by AdamW (beta 0.9, 0.999; no decay). The learning rate falls from `rate` to a tenth of it
 * along a cosine. */
struct posterior_fit {
    size_t steps;
    double rate;
    uint64_t seed;
};
#define POSTERIOR_RATE 0.34 /* as in the authors' code */

/* -1: no memory of the back end. config is borrowed. */
int posterior_make(struct posterior *posterior, const struct config *config,
                   struct backend *backend, size_t texts);
void posterior_free(struct posterior *posterior);
/* Bytes that posterior_make() allocates from the back end; 0 on a device. */
size_t posterior_bytes(const struct config *config, const struct backend *backend, size_t texts);

/* Resets each of the `texts` texts to a state near the prior: mu = 0.01 eps, sigma = 1. keys
 * [texts]. The authors' code begins with log sigma^2 = -5, where each value has a KL of 2 nats from
 * the prior. A few steps do not remove this KL, so values that the text does not need would loosen
 * the bound. */
void posterior_start(struct posterior *posterior, uint64_t seed, const uint64_t *keys,
                     size_t texts);
/* z = mu + sigma eps, where eps is draw number `draw`. */
void posterior_draw(struct posterior *posterior, uint64_t seed, const uint64_t *keys, size_t texts,
                    uint64_t draw);
/* One step of descent, by the gradient at the last draw. step counts from 1. `in` has the texts,
 * with weight 1 on each scored token. Sets in->z. */
void posterior_step(struct posterior *posterior, struct backprop *backprop, struct train_batch *in,
                    double rate, int64_t step);
/* All steps of a fit, from the current state. `round` numbers the fits of one text, so that each
 * fit uses new draws. bound [seqs] or NULL: an estimate of -ELBO (nats) of the state before the
 * last step, by one draw to which the state was not fitted; not written if fit->steps is 0. */
void posterior_run(struct posterior *posterior, struct backprop *backprop, struct train_batch *in,
                   const struct posterior_fit *fit, const uint64_t *keys, uint64_t round,
                   double *bound);

/* For text number `text` of `texts`, in nats: KL(q || p), and log q(z) of the last draw. */
double posterior_kl(const struct posterior *posterior, size_t texts, size_t text);
double posterior_log_q(const struct posterior *posterior, size_t texts, size_t text);
/* The first number of a draw that no fit uses; for generating and scoring. */
#define POSTERIOR_FRESH (UINT64_C(1) << 48)
/* nats: an upper bound of -log p(x) for the only text of a batch, by `samples` draws with numbers
 * from POSTERIOR_FRESH on: -ELBO, or (iwae 1) the tighter bound. se: the standard error of the
 * bound; NaN with one draw. work: samples doubles. */
struct posterior_bound {
    double nats, se;
};
struct posterior_bound posterior_score(struct posterior *posterior, struct backprop *backprop,
                                       struct train_batch *in, size_t samples, int iwae,
                                       uint64_t seed, uint64_t key, double *work);
