/* think.h - autoregressive decoding of a latent thought model (families/ltm.c).
 *
 * First a posterior of the latents z is fitted to each prompt by gradients; the targets are the
 * next tokens of the prompt (lib/train/posterior.h). Then the answer is written, one token per
 * pass, with z fixed. Latents may also be drawn from N(0, I) or a learned prior, read from a file,
 * or be zero; then nothing is fitted. After each `refit` tokens the latents are fitted further, to
 * prompt and answer.
 *
 * Each text has a ring of slots for keys and values, at most twice the window, or one state with a
 * mixer that recurs. So a token costs the same at every position. A longer prompt is read by
 * windows, or by 256 tokens with a mixer that recurs. Keys and values of the latents are computed
 * once per fit. Source: Kong et al. 2025 (arXiv 2502.01567), 3 and 4. */
#pragma once

#include "lib/decode/decoder.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/latent/latent_source.h"
#include "lib/latent/solver.h"
#include "lib/network/network.h"
#include "lib/network/work.h"

/* PRIOR: N(0, I); DIT: a learned prior (prior.h); FILE: latent_file.h. */
enum think_source { THINK_POSTERIOR, THINK_PRIOR, THINK_DIT, THINK_ZERO, THINK_FILE };

struct think {
    size_t max_new;     /* most tokens of an answer, >= 1 */
    double temperature; /* 0: argmax */
    enum think_source source;
    size_t vi_steps;    /* of a fit; 0: the starting state of a fit */
    double vi_rate;     /* learning rate of the first step; the last has a tenth of it */
    int draws;          /* 1: z is a draw of the posterior; 0: its mean */
    size_t refit;       /* tokens between two fits; 0: one fit only */
    int cache;          /* 1: keys and values are kept; 0: every pass computes the whole text */
    int ignore_eos;     /* 1: a stop id does not end the text */
    struct variant variant; /* of the passes over the text */
    const struct latent_source *latents; /* the prior of THINK_DIT, the file of THINK_FILE;
                                          * borrowed; NULL: none, and no latents are kept */
    struct solver solver; /* of THINK_DIT */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: stop after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* Generates `batch` texts together. out[i] (zero on entry) belongs to in[i]; the caller frees it
 * (generation_free). Every in[i].n >= 1, and in[i].n + max_new fits the context. On a device
 * activations must be F32 (network.h), and THINK_DIT is not possible.
 *
 * The clock begins when ids, cache, activations and, for a fit, the fp32 values of the network are
 * in memory and the passes to be replayed are recorded. It includes the fit: the time to the first
 * token is the fit and the pass over the prompt. vi_ns: the fits of the whole batch; decode_ns: the
 * rest of e2e_ns. Draws depend on (seed, key) only. Memory short: out[i].oom for all. */
void think(const struct network *n, const struct think *how, const struct generation_input *in,
           size_t batch, struct generation *out, struct batch_trace *trace);
/* The memory that such a batch needs, from its shapes; only the lengths of the prompts count. */
struct memory_estimate think_estimate(const struct network *n, const struct think *how,
                                      const struct generation_input *in, size_t batch);

extern const struct decoder decoder_think;
