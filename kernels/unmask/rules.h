/* rules.h - the rules by which answers of a denoising step become final. One rule is one file in
 * this folder, one row here, and one row for each of its parameters.
 *
 * All names, choices, options and record fields above kernels/ are made from these rows
 * (lib/decode/diffuse/settings.c). Host and device compile the same source.
 */
#ifndef KERNELS_UNMASK_RULES_H
#define KERNELS_UNMASK_RULES_H

#include "kernels/unmask/credit.h"
#include "kernels/unmask/entropy_bound.h"
#include "kernels/unmask/factor.h"
#include "kernels/unmask/hierarchical.h"
#include "kernels/unmask/klass.h"
#include "kernels/unmask/prophet.h"
#include "kernels/unmask/saber.h"
#include "kernels/unmask/schedule.h"
#include "kernels/unmask/slowfast.h"
#include "kernels/unmask/threshold.h"
#include "kernels/unmask/wino.h"

enum unmask_trait {
    UNMASK_PACED = 1,   /* a block has the steps of its budget; else it ends when it is full */
    UNMASK_KEEPS = 2,   /* the rule remembers something of each slot: offers.slot */
    UNMASK_REVISES = 4, /* it may mask slots of the block again: offers.back */
    UNMASK_SHADOWS = 8, /* and asks about their ids at rows that do not see them */
    UNMASK_COMPARES = 16 /* answers come with head_row.divergence, from their slot's last one */
};

/* RULE(enumerator, name, traits, how many it takes of `o` by the parameters `p`). A replay is a
 * schedule that was recorded instead of computed: it differs in its budget alone. */
#define UNMASK_RULES(RULE)                                             \
    RULE(SCHEDULE, schedule, UNMASK_PACED, unmask_schedule(o))         \
    RULE(REPLAY, replay, UNMASK_PACED, unmask_schedule(o))             \
    RULE(THRESHOLD, threshold, 0, unmask_threshold(o, p->threshold, p->threshold_decay)) \
    RULE(FACTOR, factor, 0, unmask_factor(o, p->factor))               \
    RULE(ENTROPY_BOUND, entropy_bound, 0, unmask_entropy_bound(o, p->entropy_bound)) \
    RULE(HIERARCHICAL, hierarchical, 0, unmask_hierarchical(o, p->upper, p->lower))  \
    RULE(PROPHET, prophet, UNMASK_PACED, unmask_prophet(o, p->gap))    \
    RULE(CREDIT, credit, UNMASK_KEEPS, unmask_threshold(o, p->credit_threshold, 0))  \
    RULE(SLOWFAST, slowfast, 0, unmask_slowfast(o, p->slowfast_reach, p->slowfast_sure))     \
    RULE(SABER, saber, UNMASK_KEEPS | UNMASK_REVISES,                  \
         unmask_saber(o, p->saber_floor, (size_t)p->saber_least))      \
    RULE(WINO, wino, UNMASK_REVISES | UNMASK_SHADOWS,                  \
         unmask_wino(o, p->wino_draft, p->wino_verify))                \
    RULE(KLASS, klass, UNMASK_KEEPS | UNMASK_COMPARES,                 \
         unmask_klass(o, p->conf_threshold, p->kl_history))
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
              "commit all when the best logits lead by this on average")                 \
    PARAMETER(credit_threshold, credit, 0, 1, "0.9",                                     \
              "commit from this confidence on, credits included")                        \
    PARAMETER(credit_weight, credit, 0, 1000, "0.7", "a logit gains weight * ln(1 + credit)")   \
    PARAMETER(credit_decay, credit, 0, 1, "0.8", "what is left of a credit a pass later")       \
    PARAMETER(credit_power, credit, 0, 1000, "0.2", "a pass gives its best token p ^ power")    \
    PARAMETER(slowfast_sure, slowfast, 0, 1, "0.85",                                     \
              "when fast, commit all of the span above this confidence")                 \
    PARAMETER(slowfast_reach, slowfast, 0, 1, "0.1",                                     \
              "when slow, the span ends behind the last answer above this")              \
    PARAMETER(saber_floor, saber, 0, 1, "0",                                             \
              "commit above the mean of what was committed, or this when it is higher")  \
    PARAMETER(saber_least, saber, 1, 1e6, "2", "and at least so many a pass")            \
    PARAMETER(wino_draft, wino, 0, 1, "0.6", "commit above this confidence")             \
    PARAMETER(wino_verify, wino, 0, 1, "0.9",                                            \
              "mask again what has less than this without itself")                       \
    PARAMETER(conf_threshold, klass, 0, 1, "0.9",                                        \
              "commit above this confidence what is stable, too")                        \
    PARAMETER(kl_threshold, klass, 0, 1000, "0.01",                                      \
              "stable: closer than this to the pass before, nats")                       \
    PARAMETER(kl_history, klass, 0, 1e6, "2", "for so many passes in a row")
/* And those that refine another one: no axis of their own. */
#define UNMASK_REFINEMENTS(PARAMETER)                                                    \
    PARAMETER(threshold_decay, threshold, 0, 1, "0",                                     \
              "the threshold falls by this share as the block fills")

#define UNMASK_ENUMERATOR(ENUM, name, traits, taken) UNMASK_##ENUM,
enum unmask { UNMASK_RULES(UNMASK_ENUMERATOR) UNMASK_COUNT };
#undef UNMASK_ENUMERATOR

#define UNMASK_MEMBER(name, rule, least, most, standard, meaning) double name;
struct unmask_params {
    UNMASK_PARAMETERS(UNMASK_MEMBER)
    UNMASK_REFINEMENTS(UNMASK_MEMBER)
};
#undef UNMASK_MEMBER

/* What the rule makes of an answer, before any is ranked; on a device each answer has a thread. s:
 * what it remembers of the slot, or NULL. */
HOST_DEVICE struct reading unmask_read(enum unmask rule, const struct unmask_params *p,
                                       const struct head_row *a, struct slot_kept *s)
{
    if (rule == UNMASK_CREDIT)
        return unmask_credit(a, s, p->credit_weight, p->credit_decay, p->credit_power);
    const struct reading plain = {a->id, exp(a->log_prob)};
    return plain;
}

/* How many of the first in o->pick become final. */
HOST_DEVICE size_t unmask_count(enum unmask rule, const struct unmask_params *p,
                                const struct offers *o)
{
#define UNMASK_CASE(ENUM, name, traits, taken) \
    case UNMASK_##ENUM: return taken;
    switch (rule) {
        UNMASK_RULES(UNMASK_CASE)
    case UNMASK_COUNT: break;
    }
#undef UNMASK_CASE
    return 0;
}

/* Not 0: the rule has one of the traits. */
HOST_DEVICE int unmask_has(enum unmask rule, int traits)
{
#define UNMASK_CASE(ENUM, name, its, taken) \
    case UNMASK_##ENUM: return (its) & traits;
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
    return unmask_has(rule, UNMASK_PACED) != 0;
}

#endif
