/* threshold.h - every answer whose confidence reaches the threshold, and at least the best one.
 * Source: Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618, algorithm 1. */
#ifndef KERNELS_UNMASK_THRESHOLD_H
#define KERNELS_UNMASK_THRESHOLD_H

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_threshold(const struct offers *o, double threshold)
{
    size_t taken = 0;
    for (size_t j = 0; j < o->n; j++)
        if (offers_confidence(o, j) >= threshold)
            offers_swap(o, j, taken++);
    return taken ? taken : o->n > 0;
}

#endif
