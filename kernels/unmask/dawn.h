/* dawn.h - commits three kinds of answers: sure answers, answers that depend on a sure slot, and
 * answers that do not depend on each other (DAWN).
 *
 * Slot i depends on slot j if the attention of i to j is at least `edge`, as a mean over heads and
 * the last layers (kernels/links.h). Nothing depends on a slot to which the canvas attends by more
 * than `sink` on average. The rule commits
 *   sure      answers of at least the threshold
 *   induced   answers of at least `induce` whose slot depends on a slot with a known id, up to the
 *             end of the block. The best token of that slot must have at least the threshold; it
 *             may differ from the id
 *   apart     candidates are answers of at least `low` that are neither sure nor induced, and do
 *             not depend on a slot that is both sure and induced. The best candidate is taken. Then
 *             the best candidate is taken that depends on no taken candidate and on which no taken
 *             candidate depends, until there is none
 * If there is no answer of these kinds, the rule commits the best answer.
 *
 * If a candidate is left out, the authors' code also overwrites the first id of the prompt; this
 * code does not. Source: Luo et al. 2026, "DAWN: Dependency-Aware Fast Inference for Diffusion
 * LLMs", arXiv 2602.06953. Confirmed: get_transfer_index_dawn() in llada/generate.py and
 * select_parallel_tokens_conflict_mis() in llada/gdllm_utils.py of github.com/lizhuo-luo/DAWN. */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a slot. DAWN_INDUCED: 1 if the slot depends on a known id whose best token has at least
 * the threshold. DAWN_STATE: the kind of the slot's answer in this step (enum dawn_state). */
enum { DAWN_INDUCED, DAWN_STATE };
enum dawn_state { DAWN_OUT, DAWN_SURE, DAWN_LED, DAWN_BOTH, DAWN_NODE };

/* 1: the slot of answer i depends on the slot of answer j. */
HOST_DEVICE int unmask_dawn_depends(const struct linked *linked, const int32_t *asked, size_t i,
                                    size_t j, double sink, double edge)
{
    const int32_t row = linked->row_of[asked[i]], key = linked->row_of[asked[j]];
    const int32_t first = linked->row_of[linked->first];
    return row != key && !((double)linked->mean[key] > sink) &&
           (double)linked->map[(size_t)row * linked->stride + (size_t)(key - first)] >= edge;
}

HOST_DEVICE int32_t *unmask_dawn_state(const struct offers *offers, size_t k)
{
    return &offers_kept(offers, k)->id[DAWN_STATE];
}

HOST_DEVICE size_t unmask_dawn(const struct offers *offers, double threshold, double sink,
                               double edge, double induce, double low)
{
    size_t taken = 0;
    for (size_t k = 0; k < offers->n; k++) {
        const int sure = offers->confidence[k] >= threshold;
        const int led = offers->confidence[k] >= induce && offers_kept(offers, k)->id[DAWN_INDUCED];
        *unmask_dawn_state(offers, k) = sure && led                    ? DAWN_BOTH
                                        : sure                         ? DAWN_SURE
                                        : led                          ? DAWN_LED
                                        : offers->confidence[k] >= low ? DAWN_NODE
                                                                       : DAWN_OUT;
    }
    for (size_t k = 0; k < offers->n; k++)
        for (size_t j = 0; j < offers->n && *unmask_dawn_state(offers, k) == DAWN_NODE; j++)
            if (*unmask_dawn_state(offers, j) == DAWN_BOTH &&
                unmask_dawn_depends(&offers->links, offers->asked, k, j, sink, edge))
                *unmask_dawn_state(offers, k) = DAWN_OUT;
    for (size_t j = 0; j < offers->n; j++) { /* best first */
        const size_t k = (size_t)offers->pick[j];
        const int32_t state = *unmask_dawn_state(offers, k);
        for (size_t i = 0; i < offers->n && state == DAWN_NODE; i++)
            if (i != k && *unmask_dawn_state(offers, i) == DAWN_NODE &&
                (unmask_dawn_depends(&offers->links, offers->asked, k, i, sink, edge) ||
                 unmask_dawn_depends(&offers->links, offers->asked, i, k, sink, edge)))
                *unmask_dawn_state(offers, i) = DAWN_OUT;
        if (state != DAWN_OUT)
            offers_swap(offers, j, taken++);
    }
    return taken ? taken : offers->n > 0;
}
