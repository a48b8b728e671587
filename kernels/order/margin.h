/* margin.h - slots are ordered by their margin: the probability of the best token less that of the
 * second best, whichever token was drawn. The largest margin comes first. A slot with two about
 * equally probable tokens waits. A best token that is suppressed (`quiet`) is not the best here:
 * the next one is both best and second best, and the margin is 0. Source: Kim et al. 2025, "Train
 * for the Worst, Plan for the Best", arXiv 2502.06768 (top probability margin). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_margin(const struct candidate *candidate)
{
    const struct head_row *row = candidate->answer;
    const float best = (float)exp(row->best_log_prob); /* a float like the other: ties stay ties */
    return candidate->confidence > 0 ? (double)best - (double)row->runner_up_prob : -HUGE_VAL;
}
