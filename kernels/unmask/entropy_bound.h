/* entropy_bound.h - commits the longest run of best answers whose entropies, without the largest of
 * them, sum to at most the bound. Within the bound, the dependence between tokens drawn at once may
 * be ignored. The first answer is always committed. Source: Ben-Hamu et al. 2025, "Accelerated
 * Sampling from Masked Diffusion Models via Entropy Bounded Unmasking", arXiv 2505.24857, equation
 * 8. */
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
