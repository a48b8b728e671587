/* less.h - commits the answers that are sure, persistent and still (LESS). Sure: confidence of at
 * least `sure`. Persistent: the best token is that of each of the last `history` steps of the
 * block. Still: the Jensen-Shannon divergence (JS) between the slot's distribution now and in the
 * step before is at most a bound, in nats. A distribution is reduced to its HEAD_TOPS best tokens
 * and the sum of the other probabilities. If no answer is sure, persistent and still, the budget of
 * the step is committed, at least one answer.
 *
 * If the steps of a block end before it is full, the authors' code leaves masks; here the last step
 * commits all answers. The authors' sampler for Dream also prefers the leftmost mask and is
 * stricter with the end of the text; this is not built here. Source: Mohamed et al. 2026, "LESS Is
 * More: Mutual-Stability Sampling for Diffusion Language Models", arXiv 2606.16908. Confirmed:
 * stable_less_decode() in llada_sampling/llada_less.py and coarse_topk_js() in less_core.py of
 * github.com/amr-mohamedd/LESS-Is-More. */
#pragma once

#include "kernels/unmask/schedule.h"

/* Memory of a slot. id[0 .. HEAD_TOPS): the best tokens of the last step, plus 1; value[]: their
 * probabilities. id[LESS_RUN]: the number of consecutive steps up to now with this best token.
 * id[LESS_STABLE]: 1 if the answer is persistent and still. */
enum { LESS_RUN = HEAD_TOPS, LESS_STABLE };

/* p (log p - log m), a term of JS. The authors' constant 1e-12 keeps it finite. */
HOST_DEVICE double unmask_less_term(double p, double m)
{
    const double least = 1e-12;
    return p * (log(p + least) - log(m + least));
}

/* JS between the distributions now and before, over the best tokens of both, with all other tokens
 * as one. */
HOST_DEVICE double unmask_less_drift(const struct head_top *now, const struct slot_kept *before)
{
    double sum = 0, p_left = 1, q_left = 1;
    for (int i = 0; i < HEAD_TOPS; i++) {
        double chance = (double)now->prob[i], other = 0, alone = (double)before->value[i];
        for (int j = 0; j < HEAD_TOPS; j++) {
            other = before->id[j] == now->id[i] + 1 ? (double)before->value[j] : other;
            alone = now->id[j] + 1 == before->id[i] ? 0 : alone;
        }
        sum += unmask_less_term(chance, (chance + other) / 2) +
               unmask_less_term(other, (chance + other) / 2) + unmask_less_term(alone, alone / 2);
        p_left -= chance;
        q_left -= (double)before->value[i];
    }
    p_left = p_left > 0 ? p_left : 0;
    q_left = q_left > 0 ? q_left : 0;
    return (sum + unmask_less_term(p_left, (p_left + q_left) / 2) +
            unmask_less_term(q_left, (p_left + q_left) / 2)) / 2;
}

/* Records the best tokens of a slot. first: 1 if this is the first step of the block. */
HOST_DEVICE void unmask_less_note(struct slot_kept *kept, const struct head_top *now, int first,
                                  double drift, double history)
{
    const int same = !first && kept->id[0] == now->id[0] + 1;
    kept->id[LESS_STABLE] =
        same && kept->id[LESS_RUN] >= history && unmask_less_drift(now, kept) <= drift;
    kept->id[LESS_RUN] = same ? kept->id[LESS_RUN] + 1 : 1;
    for (int i = 0; i < HEAD_TOPS; i++) {
        kept->id[i] = now->id[i] + 1;
        kept->value[i] = now->prob[i];
    }
}

HOST_DEVICE size_t unmask_less(const struct offers *offers, double sure)
{
    size_t taken = 0, least = unmask_schedule(offers);
    if (offers->step + 1 >= offers->steps)
        return offers->n;
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) >= sure &&
            offers_kept(offers, (size_t)offers->pick[j])->id[LESS_STABLE])
            offers_swap(offers, j, taken++);
    return taken ? taken : least ? least : offers->n > 0;
}
