/* latent_bound.h - how probable a latent thought model finds a text, as a bound.
 *
 *   elbo   -E_q ln p(text|z) + KL(q || p(z)). q is fitted to the text; every draw is independent of
 *          the fit (lib/train/posterior.h). With a learned prior (prior.h), -ln p(z) is replaced
 *          by a bound of it, so the sum is still a bound.
 *          Source: Kong et al. 2025 (arXiv 2502.01567), equation 4.
 *   iwae   -ln of the mean over M draws of p(text|z) p(z) / q(z): lower for larger M.
 *          Source: Burda et al. 2016 (arXiv 1509.00519).
 *
 * Both are upper bounds of -ln p(text), in nats. */
#pragma once

#include "lib/decode/likelihood.h"
#include "lib/train/dit.h"

struct latent_bound_how {
    size_t steps;      /* of the fit */
    double rate;       /* learning rate of its first step */
    size_t samples;    /* draws of z */
    int iwae;          /* 1: iwae; 0: elbo */
    struct dit *prior; /* elbo: p(z) in place of N(0, I); NULL: N(0, I) */
};
/* The bound of ids[1..count) given ids[0]. first must be 1: a bound of a text given another text is
 * not defined (EXIT_BAD_DATA). */
int latent_bound(const struct network *n, const int32_t *ids, size_t count, size_t first,
                 const struct latent_bound_how *how, uint64_t seed, uint64_t key,
                 struct likelihood *out, struct err *e);
