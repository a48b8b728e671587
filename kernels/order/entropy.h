/* entropy.h - first the answer whose distribution over the vocabulary has the least entropy.
 * Source: Ben-Hamu et al. 2025, "Accelerated Sampling from Masked Diffusion Models via Entropy
 * Bounded Unmasking", arXiv 2505.24857. */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_entropy(const struct candidate *candidate)
{
    return candidate->confidence > 0 ? -(double)candidate->answer->entropy : -HUGE_VAL;
}
