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
    UNMASK_PACED = 1,   /* a block has as many steps as its budget; else it ends when full */
    UNMASK_KEEPS = 2,   /* the rule has a memory of each slot: offers.slot */
    UNMASK_REVISES = 4, /* the rule may mask slots of the block again: offers.back */
    UNMASK_SHADOWS = 8, /* it asks about their ids at rows that do not see them */
    UNMASK_COMPARES = 16 /* answers have head_row.divergence from the slot's last answer */
};

/* RULE(enumerator, name, traits, call). The call returns how many answers of `o` become final, by
 * the parameters `p`. A replay is a schedule with a recorded budget. */
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
    PARAMETER(threshold, threshold, 0, 1, "0.9", "commit at this confidence or more")       \
    PARAMETER(factor, factor, 0, 1000, "1", "commit j where (j + 1)(1 - c_j) <= factor") \
    PARAMETER(entropy_bound, entropy_bound, 0, 1000, "0.1",                              \
              "limit for the sum of entropies without the largest, nats")                \
    PARAMETER(upper, hierarchical, 0, 1, "0.92", "commit all above this confidence")     \
    PARAMETER(lower, hierarchical, 0, 1, "0.62",                                         \
              "commit the best of each run of masks above this confidence")              \
    PARAMETER(gap, prophet, 0, 1e6, "7.5",                                               \
              "commit all when best minus second logit averages this")                   \
    PARAMETER(credit_threshold, credit, 0, 1, "0.9",                                     \
              "commit at this confidence or more, credits included")                     \
    PARAMETER(credit_weight, credit, 0, 1000, "0.7", "add weight * ln(1 + credit) to a logit")  \
    PARAMETER(credit_decay, credit, 0, 1, "0.8", "share of a credit left after each pass")      \
    PARAMETER(credit_power, credit, 0, 1000, "0.2", "credit of the best token a pass: p ^ power")  \
    PARAMETER(slowfast_sure, slowfast, 0, 1, "0.85",                                     \
              "fast phase: commit all of the span above this confidence")                \
    PARAMETER(slowfast_reach, slowfast, 0, 1, "0.1",                                     \
              "slow phase: end the span behind the last answer above this")              \
    PARAMETER(saber_floor, saber, 0, 1, "0",                                             \
              "lower limit for the mean confidence that commits")                        \
    PARAMETER(saber_least, saber, 1, 1e6, "2", "tokens committed each pass, at least")   \
    PARAMETER(wino_draft, wino, 0, 1, "0.6", "commit above this confidence")             \
    PARAMETER(wino_verify, wino, 0, 1, "0.9",                                            \
              "mask an id again below this probability in a shadow row")                 \
    PARAMETER(conf_threshold, klass, 0, 1, "0.9",                                        \
              "commit stable answers above this confidence")                             \
    PARAMETER(kl_threshold, klass, 0, 1000, "0.01",                                      \
              "stable: divergence from the last pass below this, nats")                  \
    PARAMETER(kl_history, klass, 0, 1e6, "2", "stable: for so many passes in a row")
/* Parameters that refine another parameter; they are no axis of their own. */
#define UNMASK_REFINEMENTS(PARAMETER)                                                    \
    PARAMETER(threshold_decay, threshold, 0, 1, "0",                                     \
              "share by which the threshold falls as the block fills")

#define UNMASK_ENUMERATOR(ENUM, name, traits, taken) UNMASK_##ENUM,
enum unmask { UNMASK_RULES(UNMASK_ENUMERATOR) UNMASK_COUNT };
#undef UNMASK_ENUMERATOR

#define UNMASK_MEMBER(name, rule, least, most, standard, meaning) double name;
struct unmask_params {
    UNMASK_PARAMETERS(UNMASK_MEMBER)
    UNMASK_REFINEMENTS(UNMASK_MEMBER)
};
#undef UNMASK_MEMBER

/* The rule's reading of an answer, before ranking; on a device one thread per answer. s: the rule's
 * memory of the slot, or NULL. */
HOST_DEVICE struct reading unmask_read(enum unmask rule, const struct unmask_params *p,
                                       const struct head_row *a, struct slot_kept *s)
{
    if (rule == UNMASK_CREDIT)
        return unmask_credit(a, s, p->credit_weight, p->credit_decay, p->credit_power);
    const struct reading plain = {a->id, exp(a->log_prob)};
    return plain;
}

/* The number of the first entries of o->pick that become final. */
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

/* Not 0 if the rule has one of the traits. */
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

/* 1 if a block has as many steps as its budget. */
HOST_DEVICE int unmask_paced(enum unmask rule)
{
    return unmask_has(rule, UNMASK_PACED) != 0;
}

#endif
