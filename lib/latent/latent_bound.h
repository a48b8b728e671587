/* latent_bound.h - upper bounds of -ln p(text) of a latent thought model, in nats. The probability
 * itself is an integral over all latents z and cannot be computed.
 *
 *   elbo   -E_q ln p(text|z) + KL(q || p(z)). q is fitted to the text; every draw is independent of
 *          the fit (lib/train/posterior.h). With a learned prior (prior.h), an upper bound of
 *          -ln p(z) replaces -ln p(z), so the sum is still an upper bound.
 *          Source: Kong et al. 2025 (arXiv 2502.01567), equation 4.
 *   iwae   -ln of the mean over M draws of p(text|z) p(z) / q(z): lower for larger M.
 *          Source: Burda et al. 2016 (arXiv 1509.00519). */
#pragma once

#include "lib/decode/likelihood.h"
#include "lib/train/dit.h"

struct latent_bound_how {
    size_t steps;      /* of the fit */
    double rate;       /* learning rate of the first step of the fit */
    size_t samples;    /* draws of z */
    int iwae;          /* 1: iwae; 0: elbo */
    struct dit *prior; /* the learned p(z), with iwae 0; NULL: N(0, I) */
};
/* *out = the bound of ids[1..count) given ids[0], with its standard error. `seed` and `key` (of the
 * text) determine the draws. first must be 1: the difference of two bounds bounds no text given
 * another text. -1: EXIT_BAD_DATA (first, or count does not fit the context), EXIT_FAILED_RECORDS
 * (memory), EXIT_INTERNAL (the bound is not finite). */
int latent_bound(const struct network *n, const int32_t *ids, size_t count, size_t first,
                 const struct latent_bound_how *how, uint64_t seed, uint64_t key,
                 struct likelihood *out, struct err *e);
