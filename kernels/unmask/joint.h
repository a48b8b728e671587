/* joint.h - commits every answer above the threshold, and replaces ids of the block while it has
 * masks and after it is full.
 *
 * Commit: every answer whose confidence is above `threshold`, or the best one if there is none.
 * Edit: the pass also computes the best token for each slot of the block that has an id. If this
 * token differs from the id and has a probability above `edit`, it replaces the id. A block without
 * masks ends after a pass that edits nothing, or after `most` passes that found no mask. Prompts
 * are never edited. With `edit` 1 no id is replaced, but a full block still takes one more pass.
 * Source: Bie et al. 2026, "LLaDA2.1", arXiv 2602.08676, and generate() in modeling_llada2_moe.py
 * of its authors (copy: dllm/pipelines/llada21 of github.com/ZHZisZZ/dllm); joint_threshold.py of
 * SGLang is the same rule. */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a canvas: the number of passes over the current block that found no mask. */
enum { JOINT_FULL };

HOST_DEVICE size_t unmask_joint(const struct offers *offers, double threshold, double edit,
                                double most)
{
    size_t taken = 0;
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) > threshold)
            offers_swap(offers, j, taken++);
    for (size_t k = offers->n; k < offers->n + offers->m; k++)
        if (offers->answer[k].id != offers->token[offers->asked[k]] && offers->confidence[k] > edit)
            offers->back[(*offers->backs)++] = (int32_t)k;
    offers->kept[JOINT_FULL] = offers->step == 0 ? 0 : offers->kept[JOINT_FULL];
    if (offers->n == 0)
        offers->kept[JOINT_FULL]++;
    *offers->done = offers->n == 0 && (*offers->backs == 0 || offers->kept[JOINT_FULL] >= most);
    return taken ? taken : offers->n > 0;
}
