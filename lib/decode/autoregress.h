/* autoregress.h - autoregressive decoding (LLaMA): one token per pass, or several with guesses.
 *
 * Guesses (speculative decoding) come from the text (lookup.h), from a smaller model, or from the
 * model itself if it also fills masks. One pass runs the last id of a text and the guesses after
 * that id, so the model chooses an id after each of these. Guesses are accepted until one differs
 * from the model's choice; this choice is added too.
 *
 * The model chooses by argmax, or at a temperature by argmax of logit + T * Gumbel noise. The noise
 * depends only on (seed, key, index of the token). So the ids are those that the model generates
 * without guesses with the same seed. This holds where a result does not depend on the other rows
 * (ref, cpu: kernels/ops.h). On a device, rounding depends on the shape of a pass.
 *
 * A draft model draws with the same noise. A guess is accepted if the two draws agree: with
 * probability (1 - d) / (1 + d) or more, where d is the total variation distance of the two
 * distributions. The rejection rule of Leviathan and Chen reaches 1 - d, but its texts differ from
 * those of the model alone, and it needs all probabilities of both models.
 * Source: Leviathan, Kalman, Matias 2023 (arXiv 2211.17192); Chen et al. 2023 (arXiv 2302.01318);
 * the common noise: Daliri, Musco, Suresh 2024 (arXiv 2408.07978). */
#pragma once

#include "kernels/sample.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"

struct autoregress {
    size_t max_new;       /* most tokens of an answer, >= 1 */
    struct sample sample;
    int cache;            /* 1: keep K and V; 0: every pass computes the whole text again */
    int ignore_eos;       /* 1: a stop id does not end the text */
    size_t alive;         /* most texts in a pass; 0: all */
    int arrivals;         /* 1: inputs come at their due_ns; 0: when there is a seat for them */
    size_t lookup;        /* most guesses of lookup.h per text and pass; 0: none */
    size_t lookup_ngram;  /* >= 1 */
    const struct network *draft; /* the model that guesses instead of lookup; NULL: none. It has the
                                  * vocabulary and the back end of the main model. With config.taps
                                  * it reads layers of the main model, all before the last one, and
                                  * has the same width */
    size_t draft_tokens;         /* guesses of `draft` per text and pass; at most config.drafts if
                                  * `draft` fills masks */
    size_t self_draft;    /* > 0: tokens that the model guesses by filling masks (config.two_ways);
                           * needs a cache. 0: none */
    struct variant variant; /* of the passes */
    int prepare;          /* 1: run each kind of pass once before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: stop after this pass; may be NULL */
    const struct observer *observer; /* called after each pass; may be NULL */
};

/* Generates `batch` texts, `alive` of them at a time. Prompts may differ in length: each has
 * positions from 0 and its own slots, and there are no padding rows. A finished text leaves the
 * batch; the next waiting text takes its place, and its prompt shares a pass with the tokens of the
 * others. out[i] (zero on entry) belongs to in[i]; the caller frees it (generation_free). Every
 * in[i].n >= 1, and in[i].n + max_new fits the context.
 *
 * The clock begins when ids, cache and activations are in memory. With `prepare`, each kind of pass
 * that can come has then been run once, also with fewer texts where some may end early; this does
 * not change the text. Passes without a cache, with guesses or with a joining prompt have too many
 * kinds: for those, only the shared kernels and choices are prepared.
 *
 * e2e_ns of a text is the end of the pass that made its last token or its stop id. The times of a
 * text that waited count from admit_ns, when its first pass was described. With `arrivals` the
 * times of all texts count from due_ns, so they include the wait for a seat. Seats may then be
 * empty; if all are empty, the batch sleeps until the next text comes. The tokens that one pass
 * adds to a text are one event. The clock includes guessing; the first pass of a text has no
 * guesses. If memory is short, out[i].oom is 1 for every text. */
void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace);
/* Estimates the memory of such a batch from shapes; of the prompts only the lengths count. */
struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch);
