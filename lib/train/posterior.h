/* posterior.h - latent thoughts of given texts: q(z|x) = N(mu, diag sigma^2), fitted to each text
 * by gradients while the network stays as it is.
 *
 *     p(z) = N(0, I),  ELBO = E_q log p(x|z) - KL,  KL = 1/2 sum (mu^2 + sigma^2 - 1 - log sigma^2)
 *     z = mu + sigma eps,  g = d(-log p(x|z))/dz
 *     d(-ELBO)/d mu = g + mu,   d(-ELBO)/d log sigma^2 = 1/2 (g eps sigma + sigma^2 - 1)
 *
 * A step draws eps anew, and what an estimate is made of is drawn again: with one eps for all of
 * them mu and sigma settle on that draw, and what looks like an ELBO exceeds log p(x). So an
 * estimate here is a bound: in the mean of its draws, -ELBO; -log of the mean of p(x|z) p(z) / q(z)
 * (IWAE), whose expectation lies between the two.
 *
 * The state is of the host, whatever computes the gradients: it is L n D values a text, a few
 * thousand beside the millions of operations that a step costs for each, its noise is the host's,
 * and so the same gradients make the same fit everywhere. On a device a step sends z, repeats a
 * record of the pass there and back, and reads g.
 *
 * Values lie as struct train_batch.z wants them: [L, texts, n, D]. What is drawn is a function of
 * (seed, key of the text, number of the draw) alone, and every text has its own state, so a text's
 * numbers do not depend on those beside it.
 * Source: Kong et al. 2025 (arXiv 2502.01567), 3; Kingma, Welling 2014 (arXiv 1312.6114); Burda,
 * Grosse, Salakhutdinov 2016 (arXiv 1509.00519).
 */
#ifndef TRAIN_POSTERIOR_H
#define TRAIN_POSTERIOR_H

#include "lib/train/backprop.h"

struct posterior {
    const struct config *c;
    struct backend *b;
    size_t texts;         /* there is room for */
    float *mean, *spread; /* mu; log sigma^2 */
    float *eps, *z;       /* the last draw */
    float *step[2];       /* gradients of the first two */
    float *moment[4];     /* of AdamW: of the mean, of the spread */
    void *block, *own;    /* of the back end; beside a device */
};
/* How it is fitted: AdamW (0.9, 0.999; no decay), from `rate` down to a tenth along a cosine. */
struct posterior_fit {
    size_t steps;
    double rate;
    uint64_t seed;
};
#define POSTERIOR_RATE 0.34 /* of the authors' code */

/* -1: no memory of the back end. c is borrowed. */
int posterior_make(struct posterior *p, const struct config *c, struct backend *b, size_t texts);
void posterior_free(struct posterior *p);
/* That posterior_make asks the back end for; of a device nothing. */
size_t posterior_bytes(const struct config *c, const struct backend *b, size_t texts);

/* Each text of a batch of `texts` begins anew, next to the prior: mu = 0.01 eps, sigma = 1. (The
 * authors' code begins with log sigma^2 = -5, 2 nats a value from the prior, which few steps never
 * take back: a value that the text does not need then loosens the bound all the same.) keys
 * [texts]. */
void posterior_start(struct posterior *p, uint64_t seed, const uint64_t *keys, size_t texts);
/* z = mu + sigma eps; eps is draw number `draw`. */
void posterior_draw(struct posterior *p, uint64_t seed, const uint64_t *keys, size_t texts,
                    uint64_t draw);
/* One step down from the last draw; step counts from 1. `in` holds the texts with a weight of 1
 * where a token is scored; its z is set. */
void posterior_step(struct posterior *p, struct backprop *t, struct train_batch *in, double rate,
                    int64_t step);
/* All steps of a fit, from the state there is. The draws of several fits differ in `round`. bound
 * [seqs], may be NULL: the one-draw estimate of -ELBO of the state before the last step, which knew
 * nothing of that draw; without a step it stays as it is. */
void posterior_run(struct posterior *p, struct backprop *t, struct train_batch *in,
                   const struct posterior_fit *fit, const uint64_t *keys, uint64_t round,
                   double *bound);

double posterior_kl(const struct posterior *p, size_t texts, size_t text); /* nats */
/* log q(z) of the last draw. */
double posterior_log_q(const struct posterior *p, size_t texts, size_t text);
/* log p(z) - log q(z) of the last draw. */
double posterior_weight(const struct posterior *p, size_t texts, size_t text);
/* The first draw that no step of a fit has: for what is written or scored. */
#define POSTERIOR_FRESH (UINT64_C(1) << 48)
/* -log p(x) by `samples` draws, numbers POSTERIOR_FRESH.., for the one text of a batch: the bound
 * from above, or with `iwae` the tighter one, and its standard error (NaN by one draw). work:
 * [samples]. */
struct posterior_bound {
    double nats, se;
};
struct posterior_bound posterior_score(struct posterior *p, struct backprop *t,
                                       struct train_batch *in, size_t samples, int iwae,
                                       uint64_t seed, uint64_t key, double *work);

#endif
