/* margin.h - the slot whose best token leads most over its second best comes first, whichever token
 * was drawn. A slot with two about equally probable tokens waits. Source: Kim et al. 2025, "Train
 * for the Worst, Plan for the Best", arXiv 2502.06768 (top probability margin). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_margin(const struct candidate *candidate)
{
    const struct head_row *row = candidate->answer;
    const float best = (float)exp(row->best_log_prob); /* a float like the other: ties stay ties */
    return candidate->confidence > 0 ? (double)best - (double)row->runner_up_prob : -HUGE_VAL;
}
