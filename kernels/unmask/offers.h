/* offers.h - what a rule of unmasking sees: the answers to the masked slots of a canvas, ranked.
 *
 * A rule says how many of the first in pick[] become final. It may change the order of pick[]
 * before, so any set of answers can be chosen. It is asked once a pass that counts, and runs on
 * host and device alike, there on one thread: all that is many was computed before.
 *
 * By a rule that revises, a slot is final for good only when its block is done: until then the rule
 * is also told what probability the ids of the block have now, and may mask some of them again.
 */
#ifndef KERNELS_UNMASK_OFFERS_H
#define KERNELS_UNMASK_OFFERS_H

#include <math.h>

#include "kernels/ops.h"
#include "lib/base/device.h"

enum { UNMASK_KEPT = 4, SLOT_KEPT = 4 };

/* What a rule remembers of a slot. All 0 before the first pass. */
struct slot_kept {
    int32_t id[SLOT_KEPT];
    float value[SLOT_KEPT];
};
/* What a rule makes of the answer to a masked slot: the id that it may commit, and how sure it is.
 */
struct reading {
    int32_t id;
    double confidence;
};

struct offers {
    size_t n;                      /* masked slots that were asked about */
    size_t m;                      /* by rules that revise: slots of the block that hold an id */
    const struct head_row *answer; /* [n + m] masked slots first, each sort in the order of slots */
    const double *confidence;      /* [n + m] of the readings; of an id: its probability now */
    int32_t *pick;                 /* [n] places of answers, best first by the order */
    int32_t *back;                 /* [m] the first *backs: places, from n on, of ids that are */
    size_t *backs;                 /* masked again; 0 before the rule is asked */
    const int32_t *asked;          /* [n + m] ids of all canvases that the answers are about */
    int32_t first;                 /* of these, the first behind the canvas's prompt */
    struct slot_kept *slot;        /* of all canvases, by `asked`; NULL: the rule keeps nothing */
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
    return o->asked[k] - o->first;
}

/* What the rule remembers of that slot. */
HOST_DEVICE struct slot_kept *offers_kept(const struct offers *o, size_t k)
{
    return &o->slot[o->asked[k]];
}

/* The j-th best answer becomes the k-th. */
HOST_DEVICE void offers_swap(const struct offers *o, size_t j, size_t k)
{
    int32_t was = o->pick[k];
    o->pick[k] = o->pick[j];
    o->pick[j] = was;
}

/* The probability that the id of place k has now, less the first value that the rule remembers of
 * its slot. */
HOST_DEVICE double offers_rise(const struct offers *o, size_t k)
{
    return o->confidence[k] - (o->slot ? (double)offers_kept(o, k)->value[0] : 0);
}

/* Of the ids of the block the `count` <= m that rise least are masked again; of equals the first.
 */
HOST_DEVICE void offers_mask_again(const struct offers *o, size_t count)
{
    double last = -HUGE_VAL;
    size_t at = 0, end = o->n + o->m;
    for (size_t j = 0; j < count; j++) {
        double least = 0;
        size_t next = end;
        for (size_t k = o->n; k < end; k++) {
            double rise = offers_rise(o, k);
            int is_left = rise > last || (rise == last && k > at);
            if (is_left && (next == end || rise < least)) {
                least = rise;
                next = k;
            }
        }
        o->back[(*o->backs)++] = (int32_t)next;
        last = least;
        at = next;
    }
}

#endif
