/* random.h - a random order. Source: Nie et al. 2025, random remasking. */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_random(const struct candidate *candidate)
{
    return philox_unit(philox_at(candidate->seed, candidate->key, 0));
}
