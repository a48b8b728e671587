/* margin.h - orders slots by their margin: the probability of the best token less that of the
 * second best, whichever token was drawn. The largest margin comes first, so a slot with two about
 * equally probable tokens waits. If the token with the best logit is suppressed (head_query.quiet),
 * the second best one counts as both best and second best, and the margin is 0. Source: Kim et al.
 * 2025, "Train for the Worst, Plan for the Best", arXiv 2502.06768 (top probability margin). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_margin(const struct candidate *candidate)
{
    const struct head_row *row = candidate->answer;
    const float best = (float)exp(row->best_log_prob); /* a float, as runner_up_prob is, so that
                                                        * equal probabilities tie */
    return candidate->confidence > 0 ? (double)best - (double)row->runner_up_prob : -HUGE_VAL;
}
