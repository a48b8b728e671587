/* threshold.h - commits every answer whose confidence reaches the threshold, and at least the best
 * one.
 *
 * With decay > 0 the threshold falls while slots become final. It is then
 *     threshold * (1 - decay * (1 - r)),  r = masked / all,
 * where r counts the slots of the block and the masked slots behind it in the pass. fma makes the
 * rounding independent of the compiler. Source: Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618,
 * algorithm 1; the decay: "Streaming-dLLM", arXiv 2601.17917 (context_aware_threshold of its
 * code). */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_threshold(const struct offers *offers, double threshold, double decay)
{
    size_t taken = 0;
    if (decay > 0 && (int64_t)offers->n < offers->slots)
        threshold *= fma(
            -decay, ((double)offers->slots - (double)offers->n) / (offers->slots + offers->ahead),
            1.0);
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) >= threshold)
            offers_swap(offers, j, taken++);
    return taken ? taken : offers->n > 0;
}
