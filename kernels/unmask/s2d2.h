/* s2d2.h - drafts a block in one pass and lets the model check the draft in the next pass, as if it
 * wrote from left to right (S2D2). It needs a block-causal model.
 *
 * With blocks of one token a block-causal model is autoregressive, and this is the reference of the
 * check.
 *   draft  a pass fills all masks of the block. The first run is the neighbouring masks from the
 *          first mask on.
 *   check  the next pass has a check row for each slot of the first run: a mask that sees only the
 *          ids before it, drafts included. The check answers with the id that the model writes with
 *          blocks of one token.
 * Drafts become final from the left as long as the check gives the same id. The first id that
 * differs replaces its draft and becomes final too. All later drafts, also those behind the run,
 * become masks again. So each final id is the id that blocks of one token give. If the run is
 * shorter than `span`, nothing is checked: the answers above the threshold become final, at least
 * the best one. Their ids may differ from the ids of blocks of one token. Within a full block
 * attention is causal.
 *
 * The authors accept a draft with probability min(1, q/p), where p is its probability in the draft
 * and q in the check; if it is refused, they draw an id from the positive part of q - p. Here p and
 * q are 1 for the best token, as in their code with top-k 1. Source: Han et al. 2026, "S2D2: Fast
 * Decoding for Diffusion LLMs via Training-Free Self-Speculation", arXiv 2603.25702. Confirmed:
 * SDAR/generate_ssd_policy.py of github.com/phymhan/S2D2 with --draft_ver --cache_ver,
 * do_verify_policy mask_span_length, and as many denoising steps as the block has slots. Other
 * policies of that code decide by entropies; if p is 1, they too depend only on the length of the
 * run. */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a slot, id[S2D2_DRAFT]. 0: the slot has no draft. 1: its id is a draft that the next
 * pass checks. 2: its id is a draft behind the run, which is not checked. */
enum { S2D2_DRAFT };

/* The number of neighbouring masks from the first one on. Masked slots are in slot order. */
HOST_DEVICE size_t unmask_s2d2_run(const struct offers *offers)
{
    size_t run = offers->n > 0;
    while (run < offers->n && offers_slot(offers, run) == offers_slot(offers, run - 1) + 1)
        run++;
    return run;
}

HOST_DEVICE size_t unmask_s2d2_draft(const struct offers *offers, double threshold, double span)
{
    const size_t run = unmask_s2d2_run(offers);
    const int checks = (double)run >= span;
    size_t taken = 0;
    for (size_t k = 0; k < offers->n; k++)
        offers_kept(offers, k)->id[S2D2_DRAFT] = checks ? 1 + (k >= run) : 0;
    if (checks)
        return offers->n;
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) > threshold)
            offers_swap(offers, j, taken++);
    taken = taken ? taken : offers->n > 0;
    *offers->done = taken == offers->n;
    return taken;
}

HOST_DEVICE size_t unmask_s2d2(const struct offers *offers, double threshold, double span)
{
    int agrees = 1;
    if (offers->n > 0)
        return unmask_s2d2_draft(offers, threshold, span);
    *offers->done = 1;
    for (size_t k = 0; k < offers->m; k++) {
        int32_t *draft = &offers_kept(offers, k)->id[S2D2_DRAFT];
        const int same = offers->answer[k].id == offers->token[offers->asked[k]];
        const int is_checked = *draft == 1 && agrees;
        if (*draft && !is_checked)
            *offers->done = 0;
        if (*draft && !(is_checked && same))
            offers->back[(*offers->backs)++] = is_checked ? (int32_t)k : ~(int32_t)k;
        agrees &= !is_checked || same;
        *draft = 0;
    }
    return 0;
}
