/* confidence.h - the most probable answer first. Source: Nie et al. 2025, "Large Language Diffusion
 * Models", low-confidence remasking; Chang et al. 2022 (MaskGIT). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_confidence(const struct candidate *candidate)
{
    return candidate->confidence;
}
