/* dynamic.h - commits every answer above the threshold, or the best answers by the budget of the
 * step if these are more. The last step of a block commits all answers. If the budget is larger
 * than the number of masks, the authors' code also writes over known tokens; this code does not.
 * Source: Cheng et al. 2025, "SDAR", arXiv 2510.06303, and low_confidence_dynamic in generate.py of
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
