/* schedule.h - commits the best answers, as many as the budget of the step. Source: Nie et al.
 * 2025, "Large Language Diffusion Models", algorithm 5. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_schedule(const struct offers *offers)
{
    return offers->budget < offers->n ? offers->budget : offers->n;
}
