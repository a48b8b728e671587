/* factor.h - commits the j best answers. With confidences c_1 >= c_2 >= ..., j is the length of the
 * longest run from the first on in which c_j >= 1 - factor / (j + 1). The first answer is always
 * committed. With factor 1, committing j tokens at once equals committing them one by one. Source:
 * Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618, theorem 1 and its factor decoding. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_factor(const struct offers *offers, double factor)
{
    size_t j = offers->n > 0;
    while (j < offers->n && !(offers_confidence(offers, j) < 1 - factor / (double)(j + 2)))
        j++;
    return j;
}
