/* think.h - autoregressive decoding of a latent thought model (families/ltm.c).
 *
 * First a posterior of the latents z is fitted to each prompt by gradients; the targets are the
 * next tokens of the prompt (lib/train/posterior.h). Then the answer is written, one token per
 * pass, with z fixed. After each `refit` tokens the fit goes on, to prompt and answer. Latents may
 * also be drawn from N(0, I) or a learned prior, read from a file, or be zero; then nothing is
 * fitted.
 *
 * Each text has a ring of slots for keys and values, at most twice the window; with time mixing it
 * has one state. So a token costs the same at every position. A prompt longer than the window is
 * read one window per pass; with time mixing 256 tokens per pass. Keys and values of the latents
 * are computed once per fit. Source: Kong et al. 2025 (arXiv 2502.01567), 3 and 4. */
#pragma once

#include "lib/decode/decoder.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/latent/latent_source.h"
#include "lib/latent/solver.h"
#include "lib/network/network.h"
#include "lib/network/work.h"

/* THINK_POSTERIOR: fitted. THINK_PRIOR: drawn from N(0, I). THINK_DIT: drawn from a learned prior
 * (prior.h). THINK_ZERO: all zero. THINK_FILE: read from a file (latent_file.h). */
enum think_source { THINK_POSTERIOR, THINK_PRIOR, THINK_DIT, THINK_ZERO, THINK_FILE };

struct think {
    size_t max_new;     /* most tokens of an answer, >= 1 */
    double temperature; /* 0: argmax */
    enum think_source source;
    size_t vi_steps;    /* steps of a fit; 0: z is the state at the start of a fit */
    double vi_rate;     /* learning rate of the first step; a tenth of it in the last step */
    int draws;          /* 1: z is a draw of the posterior; 0: its mean */
    size_t refit;       /* tokens between two fits; 0: one fit only */
    int cache;          /* 1: keys and values are cached; 0: every pass computes the whole text */
    int ignore_eos;     /* 1: a stop id does not end the text */
    struct variant variant; /* of the passes over the text */
    const struct latent_source *latents; /* the prior of THINK_DIT, the file of THINK_FILE, and
                                          * `keep`; borrowed; NULL: keep is 0 */
    struct solver solver; /* of THINK_DIT */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* *stop not 0: stop after this pass; may be NULL */
    const struct observer *observer; /* called for each pass; may be NULL */
};

/* Generates `batch` texts together. out[i] (zero on entry) is the answer to in[i]; the caller frees
 * it (generation_free). Every in[i].n must be >= 1, and in[i].n + max_new must fit the context. On
 * a device activations must be F32 (network.h), and THINK_DIT is not possible.
 *
 * The clock begins when ids, cache, activations and (for a fit) the fp32 values of the network are
 * in memory and the passes that will be replayed are recorded. The clock includes the fit: the time
 * to the first token is the fit and the pass over the prompt. vi_ns: time of the fits of the whole
 * batch. decode_ns: the rest of e2e_ns. Draws depend on (seed, key) only. If memory is short,
 * out[i].oom is set for all i. */
void think(const struct network *n, const struct think *how, const struct generation_input *in,
           size_t batch, struct generation *out, struct batch_trace *trace);
/* The memory that think() needs for this batch. Only the lengths in[i].n are read. */
struct memory_estimate think_estimate(const struct network *n, const struct think *how,
                                      const struct generation_input *in, size_t batch);

extern const struct decoder decoder_think;
