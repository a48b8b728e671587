/* entropy_bound.h - commits the j best answers, for the largest j with: the sum of their entropies
 * without the largest one is at most the bound (in nats). Within the bound, the dependence between
 * tokens that are drawn at once may be ignored. The first answer is always committed. Source:
 * Ben-Hamu et al. 2025, "Accelerated Sampling from Masked Diffusion Models via Entropy Bounded
 * Unmasking", arXiv 2505.24857, equation 8. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_entropy_bound(const struct offers *offers, double bound)
{
    double sum = 0, most = 0;
    size_t j = 0;
    while (j < offers->n) {
        double h = (double)offers->answer[offers->pick[j]].entropy;
        sum += h;
        most = h > most ? h : most;
        if (j > 0 && !(sum - most <= bound))
            break;
        j++;
    }
    return j;
}
