/* wino.h - commits many answers, and turns the ids that fail a check back into masks (wide in,
 * narrow out).
 *
 * Draft: every answer above `draft`, or the best answer if there is none; at most 7/10 of the
 * masks, but this limit is at least 5 and at most 20. Verify, if more than one answer was taken:
 * among the ids that the block had before this pass, those whose probability is below `verify`
 * become masks again, the lowest first. Their number is always below the number that the pass
 * before had taken, so a block ends within as many passes as it has slots. The probability for this
 * check comes from a shadow row: a mask at the position of the id that sees the canvas without the
 * id, and without the other shadow rows. Source: Hong et al. 2025, "Wide-In, Narrow-Out", arXiv
 * 2507.18578, and LLaDA/decoding.py of github.com/Feng-Hong/WINO-DLLM. */
#pragma once

#include "kernels/unmask/offers.h"

enum { WINO_FIRST = 30 }; /* assumed number of tokens taken by the pass before the first pass of a
                           * block */

HOST_DEVICE size_t unmask_wino_draft(const struct offers *offers, double draft)
{
    size_t most = 7 * offers->n / 10, taken = 0;
    most = most < 5 ? 5 : most > 20 ? 20 : most;
    for (size_t j = 0; j < offers->n && taken < most; j++)
        if (offers_confidence(offers, j) > draft)
            offers_swap(offers, j, taken++);
    return taken ? taken : offers->n > 0;
}

HOST_DEVICE size_t unmask_wino(const struct offers *offers, double draft, double verify)
{
    size_t before = offers->step ? (size_t)offers->kept[0] : (size_t)WINO_FIRST, low = 0;
    size_t taken = unmask_wino_draft(offers, draft);
    for (size_t k = offers->n; k < offers->n + offers->m; k++)
        low += offers->confidence[k] < verify;
    if (taken > 1 && before > 0)
        offers_mask_again(offers, low < before ? low : before - 1);
    offers->kept[0] = (double)taken;
    return taken;
}
