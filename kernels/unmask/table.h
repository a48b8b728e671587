/* table.h - the rules by which answers of a denoising step become final. One rule = one file here,
 * one row for it, and one for each of its parameters.
 *
 * All names, choices, options and record fields above are made from these rows
 * (lib/decode/diffuse-settings.c); host and device compile the same source.
 */
#ifndef KERNELS_UNMASK_TABLE_H
#define KERNELS_UNMASK_TABLE_H

#include "kernels/unmask/entropy_bound.h"
#include "kernels/unmask/factor.h"
#include "kernels/unmask/hierarchical.h"
#include "kernels/unmask/prophet.h"
#include "kernels/unmask/schedule.h"
#include "kernels/unmask/threshold.h"

/* RULE(enumerator, name, paced, how many it takes of `o` by the parameters `p`). paced 1: a block
 * has the steps of its budget; 0: it ends when it is full. A replay is a schedule that was recorded
 * instead of computed: it differs in its budget alone. */
#define UNMASK_RULES(RULE)                                             \
    RULE(SCHEDULE, schedule, 1, unmask_schedule(o))                    \
    RULE(REPLAY, replay, 1, unmask_schedule(o))                        \
    RULE(THRESHOLD, threshold, 0, unmask_threshold(o, p->threshold, p->threshold_decay)) \
    RULE(FACTOR, factor, 0, unmask_factor(o, p->factor))               \
    RULE(ENTROPY_BOUND, entropy_bound, 0, unmask_entropy_bound(o, p->entropy_bound)) \
    RULE(HIERARCHICAL, hierarchical, 0, unmask_hierarchical(o, p->upper, p->lower))  \
    RULE(PROPHET, prophet, 1, unmask_prophet(o, p->gap))
/* PARAMETER(name, rule, least, most, default, meaning) */
#define UNMASK_PARAMETERS(PARAMETER)                                                     \
    PARAMETER(threshold, threshold, 0, 1, "0.9", "commit from this confidence on")       \
    PARAMETER(factor, factor, 0, 1000, "1", "commit j when (j + 1)(1 - c_j) <= factor")  \
    PARAMETER(entropy_bound, entropy_bound, 0, 1000, "0.1",                              \
              "commit while the entropies but the largest sum to no more, nats")         \
    PARAMETER(upper, hierarchical, 0, 1, "0.92", "commit all above this confidence")     \
    PARAMETER(lower, hierarchical, 0, 1, "0.62",                                         \
              "and above this one the best of each run of masks")                        \
    PARAMETER(gap, prophet, 0, 1e6, "7.5",                                               \
              "commit all when the best logits lead by this on average")
/* And those that refine another one: no axis of their own. */
#define UNMASK_REFINEMENTS(PARAMETER)                                                    \
    PARAMETER(threshold_decay, threshold, 0, 1, "0",                                     \
              "the threshold falls by this share as the block fills")

#define UNMASK_ENUMERATOR(ENUM, name, paced, taken) UNMASK_##ENUM,
enum unmask { UNMASK_RULES(UNMASK_ENUMERATOR) UNMASK_COUNT };
#undef UNMASK_ENUMERATOR

#define UNMASK_MEMBER(name, rule, least, most, standard, meaning) double name;
struct unmask_params {
    UNMASK_PARAMETERS(UNMASK_MEMBER)
    UNMASK_REFINEMENTS(UNMASK_MEMBER)
};
#undef UNMASK_MEMBER

/* How many of the first in o->pick become final. */
HOST_DEVICE size_t unmask_count(enum unmask rule, const struct unmask_params *p,
                                const struct offers *o)
{
#define UNMASK_CASE(ENUM, name, paced, taken) \
    case UNMASK_##ENUM: return taken;
    switch (rule) {
        UNMASK_RULES(UNMASK_CASE)
    case UNMASK_COUNT: break;
    }
#undef UNMASK_CASE
    return 0;
}

/* 1: a block has the steps of its budget. */
HOST_DEVICE int unmask_paced(enum unmask rule)
{
#define UNMASK_CASE(ENUM, name, paced, taken) \
    case UNMASK_##ENUM: return paced;
    switch (rule) {
        UNMASK_RULES(UNMASK_CASE)
    case UNMASK_COUNT: break;
    }
#undef UNMASK_CASE
    return 0;
}

#endif
