/* dynamic.h - commits every answer above the threshold, and at least as many of the best as the
 * budget of the step; the last step of a block commits all. Where the authors' code has more slots
 * due than masks left, it also writes over known tokens; here it does not. Source: Cheng et al.
 * 2025, "SDAR", arXiv 2510.06303, and low_confidence_dynamic in generate.py of
 * github.com/JetAstra/SDAR. */
#pragma once

#include "kernels/unmask/offers.h"

HOST_DEVICE size_t unmask_dynamic(const struct offers *offers, double threshold)
{
    size_t least = offers->step + 1 < offers->steps && offers->budget < offers->n ? offers->budget
                                                                                  : offers->n,
           sure = 0;
    for (size_t k = 0; k < offers->n; k++)
        sure += offers->confidence[k] > threshold;
    if (sure < least)
        return least;
    for (size_t j = 0, taken = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) > threshold)
            offers_swap(offers, j, taken++);
    return sure;
}
