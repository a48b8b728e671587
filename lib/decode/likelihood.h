/* likelihood.h - the likelihood of a text under a network.
 *
 * ids[0..n) is prompt and text together; ids[first..n) is scored, given the rest. L = n - first.
 *   nll    exact, autoregressive: sum over i of -ln p(ids[i] | ids[<i]).
 *   elbo   masked diffusion: E over l ~ U{1..L} and l masked positions of (L/l) sum_masked -ln p;
 *          an upper bound of -ln p(text), independent of any step count.
 *          Source: Nie et al. 2025, "Large Language Diffusion Models", equation 6 and the authors'
 *          get_log_likelihood.py (github.com/ML-GSAI/LLaDA).
 *   kstep  masked diffusion: -ln of the text under the sampler that reveals a random permutation in
 *          K groups; an upper bound for that sampler, lower for larger K.
 *
 * Never show an nll and a bound in one column without a label. Bounds of latent models are in
 * lib/latent/latent_bound.h. The functions that score return -1 with *e filled if they cannot. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/rec.h"
#include "lib/network/pass.h"

struct likelihood {
    double nats;   /* the sum; NaN logits are an error, not a number */
    double se;     /* standard error over samples or permutations; 0 for nll, NaN when unknown */
    size_t scored; /* tokens */
};

/* A text longer than the context is read in windows of `context` ids that overlap by half; a token
 * is scored in the first window that holds it. first >= 1. */
int likelihood_nll(const struct network *n, const int32_t *ids, size_t count, size_t first,
                   struct likelihood *out, struct err *e);
/* Draws `samples` masks by (seed, key), with l stratified as in the official code. */
int likelihood_elbo(const struct network *n, const int32_t *ids, size_t count, size_t first,
                    size_t samples, uint64_t seed, uint64_t key, struct likelihood *out,
                    struct err *e);
/* Mean over `orders` permutations in K = `steps` groups; the first L mod K groups have one id
 * more. */
int likelihood_kstep(const struct network *n, const int32_t *ids, size_t count, size_t first,
                     size_t steps, size_t orders, uint64_t seed, uint64_t key,
                     struct likelihood *out, struct err *e);

/* Returns 1 and fills *out if an interrupted run already scored the record `of`: its quality record
 * is then the next kept record (lib/record/resume.h). Else returns 0. */
int likelihood_kept(struct rec_writer *writer, const json_t *of, struct likelihood *out);
