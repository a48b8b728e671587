/* autoregress.h - autoregressive decoding (LLaMA): one token per pass, or several with guesses.
 *
 * Guesses (speculative decoding) come from a rule or from a smaller model. One pass computes the
 * answers to the last id of a text and to each guess after it. Guesses are accepted up to the first
 * that differs from the id that the model chooses; that id is added too. The model chooses by
 * argmax, or at a temperature by argmax of logit + T * Gumbel noise, where the noise is a function
 * of (seed, key, index of the token) only. So the text is, id by id, the text without guesses with
 * the same seed, and is distributed as the model says. This holds where a result does not depend on
 * the other rows (ref, cpu: kernels/ops.h). On a device rounding depends on the shape of a pass, as
 * it does with other batch sizes.
 * A draft model draws with the same noise. A guess is accepted with the probability that the two
 * Gumbel-max draws agree: at least (1 - d) / (1 + d) for distributions at distance d in total
 * variation. The rejection rule of Leviathan and Chen reaches 1 - d, but generates other texts than
 * the model alone and needs rows of probabilities of both models.
 * Source: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318);
 * the common noise: Daliri, Musco, Suresh 2024 (arXiv 2408.07978). */
#ifndef DECODE_AUTOREGRESS_H
#define DECODE_AUTOREGRESS_H

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"
#include "lib/decode/sample.h"

struct autoregress {
    size_t max_new;       /* most tokens of an answer, >= 1 */
    struct sample sample;
    int cache;            /* 1: keep K and V; 0: every pass computes the whole text again */
    int ignore_eos;       /* 1: a stop id does not end the text */
    size_t alive;         /* most texts in a pass; 0: all */
    size_t lookup;        /* most guesses of lookup.h per text and pass; 0: none */
    size_t lookup_ngram;  /* >= 1 */
    const struct network *draft; /* makes draft_tokens guesses instead of lookup; NULL: none.
                                  * Same vocabulary, same back end */
    size_t draft_tokens;
    struct variant variant; /* of the passes */
    int prepare;          /* 1: run each kind of pass once before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: stop after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* Generates `batch` texts, `alive` of them at a time. Prompts may differ in length: each has
 * positions from 0 and its own slots, and there are no padding rows. A finished text leaves the
 * batch; the next waiting text takes its place, and its prompt shares a pass with the tokens of the
 * others. out[i] (zero on entry) belongs to in[i]; the caller frees it (generation_free). Every
 * in[i].n >= 1, and in[i].n + max_new fits the context.
 *
 * The clock begins when ids, cache and activations are in memory and, with `prepare`, each kind of
 * pass that can come has been run once, including passes of fewer texts where some may end early.
 * Preparing does not change the text. Without a cache each pass is longer than the one before and
 * thus of its own kind; so may be a pass with guesses or with a joining prompt. For those, only the
 * shared kernels and choices are prepared. e2e_ns of a text is the end of the pass that made its
 * last token or its stop id. The times of a text that waited count from admit_ns, when its first
 * pass was described. The tokens that one pass adds to a text are one event. The clock includes
 * guessing; the first pass of a text has no guesses. Memory short: out[i].oom for all. */
void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace);
/* The memory that such a batch needs, from its shapes; only the lengths of the prompts count. */
struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch);

#endif
