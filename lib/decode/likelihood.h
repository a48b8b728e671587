/* likelihood.h - how probable a network finds a text.
 *
 * ids[0..n) is prompt and text together; ids[first..n) is what is scored, given the rest.
 *   nll    exact, autoregressive: sum over i of -ln p(ids[i] | ids[<i]).
 *   elbo   masked diffusion: E over l ~ U{1..L} and l masked positions of (L/l) sum_masked -ln p;
 *          an upper bound of -ln p(text), independent of any step count.
 *          Source: Nie et al. 2025, "Large Language Diffusion Models", equation 6 and the authors'
 *          get_log_likelihood.py (github.com/ML-GSAI/LLaDA).
 *   kstep  masked diffusion: -ln of the text under the sampler that reveals a random permutation in
 *          K groups; an upper bound for that sampler, lower for larger K.
 *
 * An nll and a bound must never stand in one column without saying so.
 */
#ifndef DECODE_LIKELIHOOD_H
#define DECODE_LIKELIHOOD_H

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

/* Longer than the context: windows of `context` ids that overlap by half; a token is scored in the
 * first window that holds it. first >= 1. */
int likelihood_nll(const struct network *n, const int32_t *ids, size_t count, size_t first,
                   struct likelihood *out, struct err *e);
/* `samples` masks with the official stratified l; drawn by (seed, key). */
int likelihood_elbo(const struct network *n, const int32_t *ids, size_t count, size_t first,
                    size_t samples, uint64_t seed, uint64_t key, struct likelihood *out,
                    struct err *e);
/* Mean over `orders` permutations of K groups (the remainder goes to the earliest). */
int likelihood_kstep(const struct network *n, const int32_t *ids, size_t count, size_t first,
                     size_t steps, size_t orders, uint64_t seed, uint64_t key,
                     struct likelihood *out, struct err *e);

/* What an earlier process found for the record `of`, when its quality record is the next one that
 * was kept (lib/record/resume.h): 1, else 0. */
int likelihood_kept(struct rec_writer *w, const json_t *of, struct likelihood *out);

#endif
