/* origin.h - commits each answer with probability 1 - s/t, where t falls from 1 to 0.001 in equal
 * steps and s is the next time; the last step commits all. A step may commit nothing. Source: Ye et
 * al. 2025, "Dream 7B", arXiv 2508.15487, and the algorithm `origin` of its generation_utils.py. */
#pragma once

#include "kernels/unmask/offers.h"
#include "lib/base/philox.h"

HOST_DEVICE size_t unmask_origin(const struct offers *o)
{
    const double step = (1 - 1e-3) / o->steps, share = step / (1 - step * o->step);
    size_t taken = 0;
    if (o->step + 1 >= o->steps)
        return o->n;
    for (size_t j = 0; j < o->n; j++) {
        uint64_t slot = (uint64_t)offers_slot(o, (size_t)o->pick[j]);
        if (philox_unit(philox_at(o->key, slot, 0)) < share)
            offers_swap(o, j, taken++);
    }
    return taken;
}
