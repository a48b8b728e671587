/* autoregress.h - left to right, one token a pass: how LLaMA writes. */
#ifndef DECODE_AUTOREGRESS_H
#define DECODE_AUTOREGRESS_H

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/network.h"
#include "lib/decode/sample.h"

struct autoregress {
    size_t max_new;       /* tokens at most, >= 1 */
    struct sample sample;
    int cache;            /* 1: K and V are kept; 0: every pass computes the whole text again */
    int ignore_eos;       /* 1: a stop id is a token like any other */
    int prepare;          /* 1: its kinds of passes are prepared before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
};

/* Writes `batch` texts together. Prompts may differ in length: each has positions from 0 and its
 * own slots, there are no padding rows, and a text that ends leaves the batch. out[i] (zero on
 * entry) belongs to in[i]; the caller frees it (generation_free). Every in[i].n >= 1, and
 * in[i].n + max_new fits the context.
 *
 * The clock begins when ids, cache and activations are in memory and, with `prepare`, each kind of
 * pass that can come has been run once, also those of fewer texts where some may end before others.
 * That changes nothing in what is written. Without a cache every pass is longer than the one before
 * and is of a kind of its own: only the kernels and choices that they share are settled. An ended
 * text's e2e_ns is the end of the pass that made its last token or its stop id. Memory short:
 * out[i].oom for all. */
void autoregress(const struct network *n, const struct autoregress *how,
                 const struct generation_input *in, size_t batch, struct generation *out,
                 struct batch_trace *trace);
/* The memory that such a batch needs, by its shapes; of the prompts only their lengths count. */
struct memory_estimate autoregress_estimate(const struct network *n, const struct autoregress *how,
                               const struct generation_input *in, size_t batch);

#endif
