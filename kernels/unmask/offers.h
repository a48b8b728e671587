/* offers.h - the input of an unmasking rule: the answers about the masked slots of a canvas,
 * ranked.
 *
 * A rule returns how many of the first entries of pick[] become final. It may reorder pick[] first,
 * so it can choose any set of answers. It is called once for each pass that counts. It runs on host
 * and device, there on one thread: work on many values was done before.
 *
 * With a rule that revises, a slot is final only when its block is done. Until then the rule also
 * gets the current probability of each id of the block, and may mask some of them again. A rule
 * that edits gets the best token of these slots instead, puts it in place of some ids, and says
 * when the block is done. */
#pragma once

#include <math.h>

#include "kernels/ops.h"
#include "lib/base/host_device.h"

enum { UNMASK_KEPT = 4, SLOT_KEPT = HEAD_TOPS + 2 };

/* A rule's memory of a slot. All 0 before the first pass. */
struct slot_kept {
    int32_t id[SLOT_KEPT];
    float value[SLOT_KEPT];
};
/* A rule's reading of the answer about a masked slot: the id that it may commit, and its
 * confidence. */
struct reading {
    int32_t id;
    double confidence;
};

/* How much rows of the pass attend to each other (kernels/links.h): UNMASK_LINKED. */
struct linked {
    const float *map;      /* [T, stride] */
    const float *mean;     /* [T] */
    const int32_t *row_of; /* the row of an id of all canvases */
    size_t stride;
    int32_t first;         /* index of the canvas's first id; keys of the map count from its row */
};

struct offers {
    size_t n;                      /* number of masked slots that were asked about */
    size_t m;                      /* rules that revise: number of slots of the block with an id */
    const struct head_row *answer; /* [n + m] masked slots first; each kind in slot order */
    const double *confidence;      /* [n + m] of the readings. For a slot with an id: the present
                                    * probability of the id; if the rule edits, of the answer */
    int32_t *pick;                 /* [n] indices of answers, best first by the order */
    int32_t *back;                 /* [m] the first *backs: indices (>= n) of the ids that become */
    size_t *backs;                 /* masks again (or are edited; then ~index: a mask again); *backs
                                    * is 0 before the call */
    int32_t *done;                 /* a rule that edits sets it to 1 when the block is done */
    const int32_t *token;          /* the ids of all canvases before the pass, by `asked` */
    const int32_t *asked;          /* [n + m] the ids (of all canvases) that the answers are
                                    * about */
    int32_t first;                 /* index there of the first id behind the canvas's prompt */
    struct slot_kept *slot;        /* of all canvases, indexed by `asked`; NULL: no memory */
    int32_t block, step;           /* the block being filled; the steps it has had */
    int32_t steps;                 /* steps of the schedule for a block */
    int32_t slots, ahead;          /* slots of a block; masked slots behind it in the pass */
    int32_t shift;                 /* slots of the first block that belong to the prompt */
    size_t budget;                 /* budget of the schedule for this step */
    struct linked links;           /* UNMASK_LINKED */
    uint64_t key;                  /* of draws of this canvas in this step */
    double *kept;                  /* [UNMASK_KEPT] the rule's memory of the canvas: 0 before the
                                    * first pass. A block begins at step 0 */
};

/* The confidence of the j-th best answer. */
HOST_DEVICE double offers_confidence(const struct offers *offers, size_t j)
{
    return offers->confidence[offers->pick[j]];
}

/* The slot of answer k, from the end of the prompt. */
HOST_DEVICE int32_t offers_slot(const struct offers *offers, size_t k)
{
    return offers->asked[k] - offers->first;
}

/* The rule's memory of that slot. */
HOST_DEVICE struct slot_kept *offers_kept(const struct offers *offers, size_t k)
{
    return &offers->slot[offers->asked[k]];
}

/* Moves the j-th best answer to place k. */
HOST_DEVICE void offers_swap(const struct offers *offers, size_t j, size_t k)
{
    int32_t was = offers->pick[k];
    offers->pick[k] = offers->pick[j];
    offers->pick[j] = was;
}

/* The current probability of the id at index k, minus the first value in the rule's memory of its
 * slot. */
HOST_DEVICE double offers_rise(const struct offers *offers, size_t k)
{
    return offers->confidence[k] - (offers->slot ? (double)offers_kept(offers, k)->value[0] : 0);
}

/* Masks again the `count` <= m ids of the block whose probability rose least; among equals the
 * first. */
HOST_DEVICE void offers_mask_again(const struct offers *offers, size_t count)
{
    double last = -HUGE_VAL;
    size_t at = 0, end = offers->n + offers->m;
    for (size_t j = 0; j < count; j++) {
        double least = 0;
        size_t next = end;
        for (size_t k = offers->n; k < end; k++) {
            double rise = offers_rise(offers, k);
            int is_left = rise > last || (rise == last && k > at);
            if (is_left && (next == end || rise < least)) {
                least = rise;
                next = k;
            }
        }
        offers->back[(*offers->backs)++] = (int32_t)next;
        last = least;
        at = next;
    }
}
