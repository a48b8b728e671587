/* sample.h - draws one token from a row of logits, with the filters of Hugging Face's
 * generate(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Applied in this order: temperature, top-k, top-p. */
struct sample {
    double temperature; /* 0: argmax; the filters have no effect */
    size_t top_k;       /* 0: off. Removes logits below the k-th largest; ties stay */
    double top_p;       /* 1: off. Removes a token when the more likely tokens already hold p of
                         * the mass left by top-k; the most likely token stays */
};

/* 1 when top-k or top-p can change the result; then the whole row of logits is needed. */
int sample_needs_logits(const struct sample *s, size_t V);
/* Draws from softmax(logits / T) over the tokens that stay: argmax of logit + T * Gumbel noise. The
 * noise of id v is a function of (seed, key, v) only and equals that of ops.head, so a filter that
 * removes no token does not change the result. Ties go to the lowest id.
 * logits [V], borrowed; work [V] scratch. Cost O(V + kept log V).
 * Source: generation/logits_process.py of https://github.com/huggingface/transformers (order and
 * ties of the filters); Gumbel-max: Maddison, Tarlow, Minka 2014 (arXiv 1411.0030). */
int32_t sample_draw(const float *logits, size_t V, const struct sample *s, uint64_t seed,
                    uint64_t key, int32_t *work);
