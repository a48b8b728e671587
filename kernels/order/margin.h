/* margin.h - the slot whose best token leads most over its second best comes first, whichever token
 * was drawn. A slot with two about equally probable tokens waits. Source: Kim et al. 2025, "Train
 * for the Worst, Plan for the Best", arXiv 2502.06768 (top probability margin). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_margin(const struct candidate *c)
{
    const struct head_row *a = c->answer;
    const float best = (float)exp(a->best_log_prob); /* a float like the other: ties stay ties */
    return c->confidence > 0 ? (double)best - (double)a->runner_up_prob : -HUGE_VAL;
}
