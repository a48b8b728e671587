/* margin.h - the answer with the largest lead over its second best token comes first. A slot with
 * two about equally probable tokens waits. Source: Kim et al. 2025, "Train for the Worst, Plan for
 * the Best", arXiv 2502.06768 (top probability margin). */
#pragma once

#include "kernels/order/candidate.h"

HOST_DEVICE double order_margin(const struct candidate *c)
{
    const struct head_row *a = c->answer;
    return c->confidence > 0 ? (double)a->prob - (double)a->runner_up_prob : -HUGE_VAL;
}
