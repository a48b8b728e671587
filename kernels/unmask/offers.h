/* offers.h - what a rule of unmasking sees: the answers to the masked slots of a canvas, ranked.
 *
 * A rule says how many of the first in pick[] become final. It may change the order of pick[]
 * before, so any set of answers can be chosen. It is asked once a pass that counts, and runs on
 * host and device alike, there on one thread: all that is many was computed before.
 */
#ifndef KERNELS_UNMASK_OFFERS_H
#define KERNELS_UNMASK_OFFERS_H

#include "kernels/ops.h"
#include "lib/base/device.h"

enum { UNMASK_KEPT = 4 };

struct offers {
    size_t n;                      /* masked slots that were asked about */
    const struct head_row *answer; /* [n] in the order of their slots */
    const double *confidence;      /* [n] of the answers, exp(log_prob) */
    int32_t *pick;                 /* [n] places of answers, best first by the order */
    const int32_t *row, *origin;   /* for offers_slot */
    int32_t first;
    int32_t block, step;           /* the block being filled; the steps that it has had */
    int32_t steps;                 /* that the schedule gives a block */
    int32_t slots, ahead;          /* of a block; behind it, masked, in the pass */
    size_t budget;                 /* of the schedule for this step */
    double *kept;                  /* [UNMASK_KEPT] of the rule and the canvas: 0 before the first
                                    * pass, then what the rule leaves. A block begins at step 0 */
};

/* The confidence of the j-th best answer. */
HOST_DEVICE double offers_confidence(const struct offers *o, size_t j)
{
    return o->confidence[o->pick[j]];
}

/* The slot of answer k, from the end of the prompt. */
HOST_DEVICE int32_t offers_slot(const struct offers *o, size_t k)
{
    return o->origin[o->row[k]] - o->first;
}

/* The j-th best answer becomes the k-th. */
HOST_DEVICE void offers_swap(const struct offers *o, size_t j, size_t k)
{
    int32_t was = o->pick[k];
    o->pick[k] = o->pick[j];
    o->pick[j] = was;
}

#endif
