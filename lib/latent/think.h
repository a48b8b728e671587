/* think.h - left to right under latent thoughts: how a latent thought model (families/ltm.c)
 * writes.
 *
 * First a posterior of the latents z is fitted to each prompt by gradients, the next tokens of the
 * prompt itself being the targets (lib/train/posterior.h); then the answer is written a token a
 * pass with z fixed. Latents may also be drawn from their prior, N(0, I) or a learned one, or be
 * zero: then nothing is fitted. With `refit` they are fitted anew, from what they are, to prompt
 * and answer after each so many tokens.
 *
 * Each text has a ring of slots for keys and values of at most twice the window, or with a mixer
 * that recurs one state, whatever its length, so a token costs the same at every position; a longer
 * prompt is read a window, or 256 tokens, at a time.
 * Latents become keys and values once a fit.
 * Source: Kong et al. 2025 (arXiv 2502.01567), 3 and 4.
 */
#ifndef LATENT_THINK_H
#define LATENT_THINK_H

#include "lib/decode/decoder.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/latent/latent_source.h"
#include "lib/latent/solver.h"
#include "lib/network/network.h"
#include "lib/network/work.h"

/* dit: of the prior that was learned (prior.h); file: given (latent_file.h). */
enum think_source { THINK_POSTERIOR, THINK_PRIOR, THINK_DIT, THINK_ZERO, THINK_FILE };

struct think {
    size_t max_new;     /* tokens at most, >= 1 */
    double temperature; /* 0: argmax */
    enum think_source source;
    size_t vi_steps;    /* of a fit; 0: the state that a fit begins with */
    double vi_rate;     /* of the first step; the last one has a tenth of it */
    int draws;          /* 1: z is a draw of the posterior; 0: its mean */
    size_t refit;       /* tokens after which z is fitted anew; 0: never */
    int cache;          /* 1: keys and values are kept; 0: every pass computes the whole text */
    int ignore_eos;     /* 1: a stop id is a token like any other */
    struct variant variant; /* of the passes over the text */
    const struct latent_source *latents; /* the prior of THINK_DIT, the file of THINK_FILE;
                                          * borrowed; NULL: none, and no latents are kept */
    struct solver solver; /* of THINK_DIT */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* Writes `batch` texts together. out[i] (zero on entry) belongs to in[i]; the caller frees it
 * (generation_free). Every in[i].n >= 1, and in[i].n + max_new fits the context. On a device
 * activations are F32 (network.h), and nothing is drawn of a learned prior.
 *
 * The clock begins when ids, cache, activations and, for a fit, the fp32 values of the network are
 * in memory, and passes that will come again are recorded. Fitting is inside it: the first token's
 * time holds the fit and the pass over the prompt. vi_ns is what fits took, of the whole batch;
 * decode_ns the rest of e2e_ns. What is drawn depends on (seed, key) alone. Memory short:
 * out[i].oom for all. */
void think(const struct network *n, const struct think *how, const struct generation_input *in,
           size_t batch, struct generation *out, struct batch_trace *trace);
/* The memory that such a batch needs, by its shapes; of the prompts only their lengths count. */
struct memory_estimate think_estimate(const struct network *n, const struct think *how,
                                      const struct generation_input *in, size_t batch);

extern const struct decoder decoder_think;

#endif
