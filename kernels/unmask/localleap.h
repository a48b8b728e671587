/* localleap.h - commits every answer whose confidence reaches the threshold (an anchor), and near
 * an anchor also answers that reach a lower, relaxed threshold.
 *
 * An answer is near an anchor if their slots are at most `radius` apart. The best answer is always
 * committed. Source: Kong et al. 2025, "Accelerating Diffusion LLM Inference via Local Determinism
 * Propagation", arXiv 2510.07081, and get_transfer_index() in a copy of generate.py of its authors
 * (github.com/friedrichor/LocalLeap); dlmserve has the same defaults. */
#pragma once

#include "kernels/unmask/offers.h"

/* Returns 1 if an anchor is near answer k or k is an anchor. Answers are in slot order. */
HOST_DEVICE int unmask_localleap_near(const struct offers *offers, size_t k, double threshold,
                                      double radius)
{
    const int32_t slot = offers_slot(offers, k);
    size_t from = k, to = k;
    while (from > 0 && slot - offers_slot(offers, from - 1) <= radius)
        from--;
    while (to + 1 < offers->n && offers_slot(offers, to + 1) - slot <= radius)
        to++;
    for (size_t i = from; i <= to; i++)
        if (offers->confidence[i] >= threshold)
            return 1;
    return 0;
}

HOST_DEVICE size_t unmask_localleap(const struct offers *offers, double threshold, double relaxed,
                                    double radius)
{
    size_t taken = 0;
    for (size_t j = 0; j < offers->n; j++) {
        const size_t k = (size_t)offers->pick[j];
        const int near = unmask_localleap_near(offers, k, threshold, radius);
        if (j == 0 || offers->confidence[k] >= (near ? relaxed : threshold))
            offers_swap(offers, j, taken++);
    }
    return taken;
}
