/* saber.h - commits every answer whose confidence is above the mean confidence of the committed
 * answers. Then it turns the ids that lost most probability back into masks.
 *
 * Commit: the bound is the larger of `bottom` and the mean of the confidences at which the slots of
 * the canvas were last committed (1 at first). All answers above the bound are committed; if they
 * are fewer than `least`, the `least` best answers. Mask again: among the ids that the block had
 * before this pass, those whose probability fell most since the pass before become masks. Their
 * number is max(least / 2, taken / 8 rounded up), where taken is the number of answers committed
 * now; it is always below taken, so that a block ends within as many passes as it has slots.
 *
 * To find the ids to mask again, the authors' code uses the probability of the slot's best token;
 * this code uses the probability of the id in the slot. The authors' code also considers a slot in
 * the pass that commits it, where there is no earlier pass to compare with; here a slot is
 * considered one pass later. Source: Dong et al. 2025, "Saber", arXiv 2510.18165, and decoding.py
 * of github.com/zhaoyMa/Saber. `bottom` is an addition of this project: bottom 1 with least 1
 * commits tokens one by one. */
#pragma once

#include "kernels/unmask/offers.h"

/* Memory of a canvas: SABER_SUM is the sum of the confidences at which slots were last committed,
 * SABER_SLOTS the number of these slots. Memory of a slot: SABER_NOW is the probability of its id
 * in the last pass, SABER_THEN the confidence at which it was last committed; id[0] is 1 once it
 * was committed. */
enum { SABER_SUM, SABER_SLOTS };
enum { SABER_NOW, SABER_THEN };

/* Records that the answer at index k is committed. */
HOST_DEVICE void unmask_saber_note(const struct offers *offers, size_t k)
{
    struct slot_kept *kept = offers_kept(offers, k);
    offers->kept[SABER_SLOTS] += !kept->id[0];
    offers->kept[SABER_SUM] -= (double)kept->value[SABER_THEN];
    kept->id[0] = 1;
    kept->value[SABER_NOW] = kept->value[SABER_THEN] = (float)offers->confidence[k];
    offers->kept[SABER_SUM] += (double)kept->value[SABER_THEN];
}

HOST_DEVICE size_t unmask_saber_take(const struct offers *offers, double bottom, size_t least)
{
    double slots = offers->kept[SABER_SLOTS],
           mean = slots > 0 ? offers->kept[SABER_SUM] / slots : 1;
    double above = mean > bottom ? mean : bottom;
    size_t sure = 0, taken = 0;
    for (size_t k = 0; k < offers->n; k++)
        sure += offers->confidence[k] > above;
    if (sure < least)
        return least < offers->n ? least : offers->n;
    for (size_t j = 0; j < offers->n; j++)
        if (offers_confidence(offers, j) > above)
            offers_swap(offers, j, taken++);
    return taken;
}

HOST_DEVICE size_t unmask_saber(const struct offers *offers, double bottom, size_t least)
{
    size_t taken = unmask_saber_take(offers, bottom, least), back = (taken + 7) / 8;
    for (size_t j = 0; j < taken; j++)
        unmask_saber_note(offers, (size_t)offers->pick[j]);
    back = back < least / 2 ? least / 2 : back;
    back = back < taken ? back : taken > 0 ? taken - 1 : 0;
    offers_mask_again(offers, back < offers->m ? back : offers->m);
    for (size_t k = offers->n; k < offers->n + offers->m; k++)
        offers_kept(offers, k)->value[SABER_NOW] = (float)offers->confidence[k];
    return taken;
}
