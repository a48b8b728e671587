/* origin.h - commits each answer with probability 1 - s/t, by a seeded draw. The time t falls from
 * 1 to 0.001 in equal steps; s is the time of the next step. The last step commits all answers;
 * other steps may commit none. Source: Ye et al. 2025, "Dream 7B", arXiv 2508.15487, and the
 * algorithm `origin` of its generation_utils.py. */
#pragma once

#include "kernels/unmask/offers.h"
#include "lib/base/philox.h"

HOST_DEVICE size_t unmask_origin(const struct offers *offers)
{
    const double step = (1 - 1e-3) / offers->steps, share = step / (1 - step * offers->step);
    size_t taken = 0;
    if (offers->step + 1 >= offers->steps)
        return offers->n;
    for (size_t j = 0; j < offers->n; j++) {
        uint64_t slot = (uint64_t)offers_slot(offers, (size_t)offers->pick[j]);
        if (philox_unit(philox_at(offers->key, slot, 0)) < share)
            offers_swap(offers, j, taken++);
    }
    return taken;
}
