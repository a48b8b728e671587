/* sample.h - one token from a row of logits, filtered as Hugging Face's generate() does. */
#ifndef DECODE_SAMPLE_H
#define DECODE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Applied in this order: temperature, top-k, top-p. */
struct sample {
    double temperature; /* 0: argmax, and the filters do nothing */
    size_t top_k;       /* 0: off. Logits below the k-th largest are out; ties with it stay */
    double top_p;       /* 1: off. A token is out when the tokens more likely than it already hold
                         * p of the mass that top-k left; the most likely one always stays */
};

/* 1 when top-k or top-p can change the result, so that the whole row of logits is needed. */
int sample_needs_logits(const struct sample *s, size_t V);
/* Draws from softmax(logits / T) over the tokens that stay: argmax of logit + T * Gumbel noise, the
 * noise of id v being a function of (seed, key, v) alone. It is the noise that ops.head uses, so a
 * filter that removes nothing changes nothing. Ties go to the lowest id.
 * logits [V], borrowed; work [V] scratch. Cost O(V + kept log V).
 * Source: generation/logits_process.py of https://github.com/huggingface/transformers (order and
 * ties of the filters); Gumbel-max: Maddison, Tarlow, Minka 2014 (arXiv 1411.0030). */
int32_t sample_draw(const float *logits, size_t V, const struct sample *s, uint64_t seed,
                    uint64_t key, int32_t *work);

#endif
