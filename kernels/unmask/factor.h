/* factor.h - with confidences c_1, c_2, ... in order, commits the j best, where j is the longest
 * run with c_j >= 1 - factor / (j + 1). The first is always committed. With factor 1, committing j
 * tokens at once equals committing them one by one. Source: Wu et al. 2025, "Fast-dLLM", arXiv
 * 2505.22618, theorem 1 and its factor decoding. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_factor(const struct offers *offers, double factor)
{
    size_t j = offers->n > 0;
    while (j < offers->n && !(offers_confidence(offers, j) < 1 - factor / (double)(j + 2)))
        j++;
    return j;
}
