/* schedule.h - commits as many of the best answers as the budget of the step. Source: Nie et al.
 * 2025, "Large Language Diffusion Models", algorithm 5. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_schedule(const struct offers *o)
{
    return o->budget < o->n ? o->budget : o->n;
}
