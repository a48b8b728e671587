/* credit.h - commits a token sooner when it was the best answer in pass after pass. A slot has a
 * credit for each token. Each pass multiplies a slot's credits by `decay` and adds p^power to the
 * credit of the slot's best token, where p is the probability of that token. A token with logit l
 * and credit c then has the logit l + weight ln(1 + c), and the threshold rule uses the softmax of
 * these new logits. So the committed token may be only the second best of this pass.
 *
 * Only the logits of the two best tokens are known here. The softmax is computed from the
 * probabilities p_i of these two:
 *     p_i (1 + c_i)^weight / Z,    Z = 1 + sum over the two of p_i ((1 + c_i)^weight - 1)
 * This is exact if no other token has credit. If token k has credit but is not one of the two, Z is
 * too small by p_k ((1 + c_k)^weight - 1), and token k cannot be committed in this pass. A slot
 * remembers its CREDITS largest credits. Source: Wang et al. 2025, "CreditDecoding", arXiv
 * 2510.06133; inclusionAI, dInfer (github.com/inclusionAI/dInfer),
 * CreditThresholdParallelDecoder. */
#pragma once

#include "kernels/unmask/threshold.h"

enum { CREDITS = 4 };

/* (1 + credit)^weight; 1 for a token without credit. */
HOST_DEVICE double unmask_credit_of(const struct slot_kept *kept, int32_t id, double weight)
{
    for (int i = 0; i < CREDITS; i++)
        if (kept->value[i] > 0 && kept->id[i] == id)
            return pow(1 + (double)kept->value[i], weight);
    return 1;
}

HOST_DEVICE void unmask_credit_give(struct slot_kept *kept, int32_t id, double decay, double gift)
{
    int at = -1, least = 0;
    for (int i = 0; i < CREDITS; i++) {
        kept->value[i] = (float)(decay * (double)kept->value[i]);
        if (kept->value[i] > 0 && kept->id[i] == id)
            at = i;
        if (kept->value[i] < kept->value[least])
            least = i;
    }
    if (at < 0 && gift > (double)kept->value[least]) {
        at = least;
        kept->id[at] = id;
        kept->value[at] = 0;
    }
    if (at >= 0)
        kept->value[at] = (float)((double)kept->value[at] + gift);
}

/* The reading of the answer `row`. The probability of the second best token is computed from the
 * best one and the gap of the logits in double, so it is as exact as the best one and never
 * larger. */
HOST_DEVICE struct reading unmask_credit(const struct head_row *row, struct slot_kept *kept,
                                         double weight, double decay, double power)
{
    double p = exp(row->log_prob), q = row->runner_up_prob > 0 ? p * exp(-(double)row->gap) : 0;
    unmask_credit_give(kept, row->id, decay, p > 0 ? pow(p, power) : 0);
    double first = p * unmask_credit_of(kept, row->id, weight);
    double second = q * unmask_credit_of(kept, row->runner_up, weight);
    double all = 1 + (first - p) + (second - q);
    const struct reading best = {row->id, first / all}, other = {row->runner_up, second / all};
    return second > first ? other : best;
}
