/* left_to_right.h - the leftmost slot first: all answers are equal, and among equals the lowest
 * position comes first. An autoregressive model decodes in this order. */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_left_to_right(const struct candidate *candidate)
{
    return candidate->confidence > 0 ? 0 : -HUGE_VAL;
}
