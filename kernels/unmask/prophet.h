/* prophet.h - commits as many answers as the schedule says until the answers are settled: once the
 * best logit leads the second best by `gap` on average over the masks, all answers become final. In
 * the second third of the steps two thirds of the gap are enough, in the last third one third.
 * Source: Li et al. 2025, "Diffusion Language Models Know the Answer Before Decoding", arXiv
 * 2508.19982 (Prophet; thresholds 7.5, 5.0, 2.5). */
#pragma once

#include "kernels/unmask/schedule.h"

HOST_DEVICE size_t unmask_prophet(const struct offers *offers, double gap)
{
    double sum = 0;
    int32_t third = offers->steps > 0 ? 3 * offers->step / offers->steps : 0;
    for (size_t k = 0; k < offers->n; k++)
        sum += (double)offers->answer[k].gap;
    int settled = sum >= (double)offers->n * gap * (3 - third) / 3;
    return settled ? offers->n : unmask_schedule(offers);
}
