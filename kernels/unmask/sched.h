/* sched.h - commits as many answers as the schedule says until the answers are settled; then it
 * commits all answers (SchED).
 *
 * From the second step on, all answers become final when two things hold: every mask has the same
 * best token as in the step before, and the mean lead of the best logit over the second best is at
 * least tau(t), where t = step / (steps - 1). tau falls from `high` to `low`:
 *     rate 0   along a cosine: low + (high - low) (1 + cos(pi t)) / 2
 *     rate > 0 exponentially:  low + (high - low) exp(-rate t)
 * The authors also try a straight line, which is not built here. Their code has one block and the
 * step budgets of Dream (--pace timesteps), with which the first steps may commit nothing. Here
 * each block has its own steps. Source: Mohamed et al. 2025, "Fast-Decoding Diffusion Language
 * Models via Progress-Aware Confidence Schedules", arXiv 2512.02892. Confirmed:
 * dream_sampling/sched.py of github.com/amr-mohamedd/SchED, with the settings of its
 * eval/examples/eval_dream.sh (mean over masks, no change of a best token). */
#pragma once

#include "kernels/unmask/schedule.h"

/* Memory of a slot: the best token of the last step, plus 1. */
enum { SCHED_BEST };

HOST_DEVICE double unmask_sched_bound(const struct offers *offers, double high, double low,
                                      double rate)
{
    const double pi = 3.141592653589793;
    const double t = offers->steps > 1 ? (double)offers->step / (offers->steps - 1) : 1;
    return low + (high - low) * (rate > 0 ? exp(-rate * t) : (1 + cos(pi * t)) / 2);
}

HOST_DEVICE size_t unmask_sched(const struct offers *offers, double high, double low, double rate)
{
    double sum = 0;
    int same = offers->step > 0;
    for (size_t k = 0; k < offers->n; k++) {
        struct slot_kept *kept = offers_kept(offers, k);
        same &= kept->id[SCHED_BEST] == offers->answer[k].id + 1;
        kept->id[SCHED_BEST] = offers->answer[k].id + 1;
        sum += (double)offers->answer[k].gap;
    }
    const double bound = unmask_sched_bound(offers, high, low, rate);
    return same && sum >= (double)offers->n * bound ? offers->n : unmask_schedule(offers);
}
