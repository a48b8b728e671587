/* offers.h - the input of an unmasking rule: the answers about the masked slots of a canvas,
 * ranked.
 *
 * A rule returns how many of the first entries of pick[] become final. It may reorder pick[] first,
 * so it can choose any set of answers. It is called once for each pass whose answers are not
 * ignored. It runs on host and device. On a device one thread runs it, so work that needs many
 * threads (unmask_read()) is done before.
 *
 * With a rule that revises (UNMASK_REVISES), a slot is final only when its block is done. Until
 * then the rule also gets the current probability of each id in the block, and may turn some ids
 * back into masks. A rule that edits (UNMASK_EDITS) gets the best token of these slots instead,
 * replaces some ids by it, and sets *done when the block is done. */
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

/* For a rule with UNMASK_LINKED: how much the rows of the pass attend to each other
 * (kernels/links.h). */
struct linked {
    const float *map;      /* [T, stride] */
    const float *mean;     /* [T] */
    const int32_t *row_of; /* the row of each id, indexed over the ids of all canvases */
    size_t stride;
    int32_t first;         /* index of the canvas's first id; columns of `map` count from the row of
                            * this id */
};

struct offers {
    size_t n;                      /* number of masked slots that were asked about */
    size_t m;                      /* rules that revise: number of slots of the block with an id */
    const struct head_row *answer; /* [n + m] answers about masked slots first, then about slots
                                    * with an id; both in slot order */
    const double *confidence;      /* [n + m] for a masked slot: reading.confidence. For a slot with
                                    * an id: the current probability of the id, or of the answer if
                                    * the rule edits */
    int32_t *pick;                 /* [n] indices of answers, best first by the order */
    int32_t *back;                 /* [m] output: indices (>= n) of the answers whose slots become
                                    * masks again. If the rule edits: index: the slot gets the id
                                    * of the answer; ~index: the slot becomes a mask again */
    size_t *backs;                 /* output: the number of entries in back[]; 0 before the call */
    int32_t *done;                 /* a rule that edits sets it to 1 when the block is done */
    const int32_t *token;          /* the ids of all canvases before this step, indexed by
                                    * `asked` */
    const int32_t *asked;          /* [n + m] for each answer the index in `token` of its slot */
    int32_t first;                 /* index in `token` of the first slot behind the canvas's
                                    * prompt */
    struct slot_kept *slot;        /* the rule's memory of all slots, indexed by `asked`; NULL: it
                                    * has none */
    int32_t block, step;           /* the current block; the number of its steps so far */
    int32_t steps;                 /* steps of the schedule for a block */
    int32_t slots, ahead;          /* slots of a block; masked slots behind the block in the pass */
    int32_t shift;                 /* slots of the first block that belong to the prompt */
    size_t budget;                 /* budget of the schedule for this step */
    struct linked links;           /* UNMASK_LINKED */
    uint64_t key;                  /* key of the draws for this canvas in this step */
    double *kept;                  /* [UNMASK_KEPT] the rule's memory of the canvas; all 0 before
                                    * the first pass. A rule that needs memory per block resets it
                                    * at step 0 */
};

/* The confidence of the j-th best answer. */
HOST_DEVICE double offers_confidence(const struct offers *offers, size_t j)
{
    return offers->confidence[offers->pick[j]];
}

/* The slot of answer k, counted from the end of the prompt. */
HOST_DEVICE int32_t offers_slot(const struct offers *offers, size_t k)
{
    return offers->asked[k] - offers->first;
}

/* The rule's memory of the slot of answer k. */
HOST_DEVICE struct slot_kept *offers_kept(const struct offers *offers, size_t k)
{
    return &offers->slot[offers->asked[k]];
}

/* Exchanges entries j and k of pick[]. */
HOST_DEVICE void offers_swap(const struct offers *offers, size_t j, size_t k)
{
    int32_t was = offers->pick[k];
    offers->pick[k] = offers->pick[j];
    offers->pick[j] = was;
}

/* The current probability of the id that answer k is about, minus value[0] of the rule's memory of
 * the slot. */
HOST_DEVICE double offers_rise(const struct offers *offers, size_t k)
{
    return offers->confidence[k] - (offers->slot ? (double)offers_kept(offers, k)->value[0] : 0);
}

/* Writes to back[] the `count` <= m ids of the block with the least offers_rise(); among equals the
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
