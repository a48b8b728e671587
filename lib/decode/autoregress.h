/* autoregress.h - left to right, one token a pass, or several where they are guessed ahead: how
 * LLaMA writes.
 *
 * Guesses (speculative decoding) are made by a rule or by a smaller model. One pass answers the
 * last id of a text and each guess behind it; the longest run of guesses that are what would have
 * been chosen anyway becomes text, and one more id. An id is chosen by argmax, or at a temperature
 * by argmax of logit + T * Gumbel noise, the noise being a function of (seed, key, index of the
 * token) alone: so what would have been chosen is known, and the text is, id by id, the one that is
 * written without guesses with the same seed, and distributed as the model says. That holds
 * wherever a result does not depend on the rows beside it (ref, cpu: kernels/ops.h); on a device
 * sums are rounded by the shape of a pass, as they are with other batch sizes.
 * A model that drafts draws with the same noise. It is accepted with the probability that the two
 * Gumbel-max draws agree, which is at least (1 - d) / (1 + d) for distributions at distance d in
 * total variation; the rejection rule of Leviathan and Chen reaches 1 - d, but draws other texts
 * than the model alone, and wants rows of probabilities of both models.
 * Source: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318);
 * the common noise: Daliri, Musco, Suresh 2024 (arXiv 2408.07978). */
#ifndef DECODE_AUTOREGRESS_H
#define DECODE_AUTOREGRESS_H

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"
#include "lib/decode/sample.h"

struct autoregress {
    size_t max_new;       /* tokens at most, >= 1 */
    struct sample sample;
    int cache;            /* 1: K and V are kept; 0: every pass computes the whole text again */
    int ignore_eos;       /* 1: a stop id is a token like any other */
    size_t alive;         /* texts in a pass at most; 0: all */
    size_t lookup;        /* guesses of lookup.h a text and pass, at most; 0: none */
    size_t lookup_ngram;  /* >= 1 */
    const struct network *draft; /* makes draft_tokens guesses in place of lookup; NULL: none. Of
                                  * the same vocabulary, on the same back end */
    size_t draft_tokens;
    struct variant variant; /* of the passes */
    int prepare;          /* 1: its kinds of passes are prepared before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* Writes `batch` texts together, `alive` of them at once. Prompts may differ in length: each has
 * positions from 0 and its own slots, there are no padding rows, and a text that ends leaves the
 * batch; the next one that waits takes its place, and its prompt goes into a pass with the tokens
 * of the others. out[i] (zero on entry) belongs to in[i]; the caller frees it (generation_free).
 * Every in[i].n >= 1, and in[i].n + max_new fits the context.
 *
 * The clock begins when ids, cache and activations are in memory and, with `prepare`, each kind of
 * pass that can come has been run once, also those of fewer texts where some may end before others.
 * That changes nothing in what is written. Without a cache every pass is longer than the one before
 * and is of a kind of its own, and so may be one with guesses or a prompt that joins: only the
 * kernels and choices that they share are settled. An ended text's e2e_ns is the end of the pass
 * that made its last token or its stop id. The times of a text that had to wait count from
 * admit_ns, when its first pass was described. What one pass adds to a text is one event. Guessing
 * is inside the clock; the first pass of a text has no guesses. Memory short: out[i].oom for all.
 */
void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace);
/* The memory that such a batch needs, by its shapes; of the prompts only their lengths count. */
struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch);

#endif
