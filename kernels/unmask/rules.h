/* rules.h - the rules by which answers of a denoising step become final. A rule is one file in this
 * folder, one row of UNMASK_RULES, and one row of UNMASK_PARAMETERS for each parameter.
 *
 * Option names, choices and record fields are made from these rows (lib/setting/system_llada.c);
 * host and device compile the same source. */
#pragma once

#include "kernels/unmask/credit.h"
#include "kernels/unmask/d2f.h"
#include "kernels/unmask/dawn.h"
#include "kernels/unmask/dynamic.h"
#include "kernels/unmask/entropy_bound.h"
#include "kernels/unmask/factor.h"
#include "kernels/unmask/hierarchical.h"
#include "kernels/unmask/joint.h"
#include "kernels/unmask/klass.h"
#include "kernels/unmask/less.h"
#include "kernels/unmask/localleap.h"
#include "kernels/unmask/origin.h"
#include "kernels/unmask/prophet.h"
#include "kernels/unmask/s2d2.h"
#include "kernels/unmask/saber.h"
#include "kernels/unmask/sched.h"
#include "kernels/unmask/schedule.h"
#include "kernels/unmask/slowfast.h"
#include "kernels/unmask/threshold.h"
#include "kernels/unmask/wino.h"

enum unmask_trait {
    UNMASK_PACED = 1,   /* a block ends after the steps of its budget; without this trait it ends
                         * when it is full */
    UNMASK_KEEPS = 2,   /* the rule has a memory for each slot: offers.slot */
    UNMASK_REVISES = 4, /* the rule may turn slots of the block back into masks: offers.back */
    UNMASK_SHADOWS = 8, /* with UNMASK_REVISES: the ids in the block are checked by shadow rows:
                         * masks at the same positions that do not see these ids */
    UNMASK_COMPARES = 16, /* head_row.divergence compares each answer with the slot's last answer */
    UNMASK_IDLES = 32,   /* with UNMASK_PACED: a step may commit nothing, and a step with budget 0
                          * does not end a block that has masks */
    UNMASK_EDITS = 64,   /* with UNMASK_REVISES: the ids in offers.back are replaced by the answers
                          * about their slots, and the rule sets offers.done when a block is done */
    UNMASK_OPENS = 128,  /* several blocks may be open (canvas_open_on of kernels/advance.h) */
    UNMASK_TOPS = 256,   /* answers come with their most likely ids: canvas_loop.top */
    UNMASK_LINKED = 1024, /* a pass also returns the attention between its rows (offers.links), and
                           * answers about the known ids up to the end of the block; known ids are
                           * not masked again */
    UNMASK_CHECKS = 512  /* with UNMASK_SHADOWS: a full block is a draft, and shadow rows see only
                          * the ids before them. Attention is causal up to the first mask of the
                          * block. ~index in offers.back turns a slot back into a mask */
};

/* RULE(enumerator, name, traits, call). The call returns how many answers of the offers `o` become
 * final, with the parameters `p`. */
#define UNMASK_RULES(RULE)                                             \
    RULE(SCHEDULE, schedule, UNMASK_PACED, unmask_schedule(o))         \
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
         unmask_klass(o, p->conf_threshold, p->kl_history))             \
    RULE(DYNAMIC, dynamic, UNMASK_PACED, unmask_dynamic(o, p->threshold)) \
    RULE(ORIGIN, origin, UNMASK_PACED | UNMASK_IDLES, unmask_origin(o)) \
    RULE(JOINT, joint, UNMASK_REVISES | UNMASK_EDITS,                  \
         unmask_joint(o, p->threshold, p->edit_threshold, p->edit_passes)) \
    RULE(LOCALLEAP, localleap, 0,                                      \
         unmask_localleap(o, p->threshold, p->relaxed_threshold, p->leap_radius))                \
    RULE(D2F, d2f, UNMASK_OPENS, unmask_d2f(o, p->threshold, p->ready_share))                     \
    RULE(SCHED, sched, UNMASK_PACED | UNMASK_IDLES | UNMASK_KEEPS,     \
         unmask_sched(o, p->sched_high, p->sched_low, p->sched_rate))  \
    RULE(LESS, less, UNMASK_PACED | UNMASK_IDLES | UNMASK_KEEPS | UNMASK_TOPS,                    \
         unmask_less(o, p->less_sure))                                 \
    RULE(S2D2, s2d2,                                                   \
         UNMASK_REVISES | UNMASK_SHADOWS | UNMASK_EDITS | UNMASK_KEEPS | UNMASK_CHECKS,          \
         unmask_s2d2(o, p->threshold, p->check_span))                  \
    RULE(DAWN, dawn, UNMASK_KEEPS | UNMASK_LINKED,                     \
         unmask_dawn(o, p->threshold, p->dawn_sink, p->dawn_edge, p->dawn_induce, p->dawn_low))
/* PARAMETER(name, type INT or REAL, the rules that read it, rare, least value, most value, default,
 * help text). rare: 1 if only --help-all lists the option. */
#define UNMASK_PARAMETERS(PARAMETER)                                                              \
    PARAMETER(threshold, REAL, threshold|dynamic|joint|localleap|d2f|s2d2|dawn, 0, 0, 1, "0.9",   \
              "commit each token whose confidence is at least this; dynamic, joint, d2f, s2d2: "  \
              "above this")                                                                       \
    PARAMETER(factor, REAL, factor, 1, 0, 1000, "1",                                              \
              "commit the j best tokens; j is the largest number for which the j-th confidence "  \
              "is at least 1 - factor / (j + 1)")                                                 \
    PARAMETER(entropy_bound, REAL, entropy_bound, 1, 0, 1000, "0.1",                              \
              "commit tokens while the sum of their entropies, without the largest, is at most "  \
              "this, in nats")                                                                    \
    PARAMETER(upper, REAL, hierarchical, 1, 0, 1, "0.92",                                         \
              "commit all tokens above this confidence")                                          \
    PARAMETER(lower, REAL, hierarchical, 1, 0, 1, "0.62",                                         \
              "in each run of masks, commit the best token above this confidence")                \
    PARAMETER(gap, REAL, prophet, 1, 0, 1e6, "7.5",                                               \
              "commit all tokens when the mean gap between the best two logits is at least "      \
              "this")                                                                             \
    PARAMETER(credit_threshold, REAL, credit, 1, 0, 1, "0.9",                                     \
              "commit each token whose confidence, with credits, is at least this")               \
    PARAMETER(credit_weight, REAL, credit, 1, 0, 1000, "0.7",                                     \
              "weight of credits: a logit gains weight * ln(1 + credit)")                         \
    PARAMETER(credit_decay, REAL, credit, 1, 0, 1, "0.8",                                         \
              "share of a credit that is left after each pass")                                   \
    PARAMETER(credit_power, REAL, credit, 1, 0, 1000, "0.2",                                      \
              "credit that a pass gives to its best token: probability ^ power")                  \
    PARAMETER(slowfast_sure, REAL, slowfast, 1, 0, 1, "0.85",                                     \
              "fast phase: commit all tokens of the span above this confidence")                  \
    PARAMETER(slowfast_reach, REAL, slowfast, 1, 0, 1, "0.1",                                     \
              "slow phase: the span ends after the last token above this confidence")             \
    PARAMETER(saber_floor, REAL, saber, 1, 0, 1, "0",                                             \
              "commit tokens whose confidence is above this and above the mean of committed "     \
              "tokens")                                                                           \
    PARAMETER(saber_least, INT, saber, 1, 1, 1e6, "2", "fewest tokens that a pass commits")       \
    PARAMETER(wino_draft, REAL, wino, 1, 0, 1, "0.6", "commit all tokens above this confidence")  \
    PARAMETER(wino_verify, REAL, wino, 1, 0, 1, "0.9",                                            \
              "mask a token again if its probability, computed without itself, is below this")    \
    PARAMETER(conf_threshold, REAL, klass, 1, 0, 1, "0.9",                                        \
              "commit stable tokens above this confidence")                                       \
    PARAMETER(kl_threshold, REAL, klass, 1, 0, 1000, "0.01",                                      \
              "a token is stable if its distribution is closer than this to that of the pass "    \
              "before, in nats")                                                                  \
    PARAMETER(kl_history, INT, klass, 1, 0, 1e6, "2",                                             \
              "passes in a row in which the distribution of a token must be stable")              \
    PARAMETER(edit_threshold, REAL, joint, 1, 0, 1, "0.9",                                        \
              "replace an id of the block by another token whose probability is above this")      \
    PARAMETER(edit_passes, INT, joint, 1, 1, 1e6, "16",                                           \
              "most passes over a block that has no mask left; such passes only edit")            \
    PARAMETER(relaxed_threshold, REAL, localleap, 1, 0, 1, "0.75",                                \
              "commit tokens of at least this confidence if they are near a token whose "         \
              "confidence reaches --threshold")                                                   \
    PARAMETER(leap_radius, INT, localleap, 1, 0, 1e6, "4",                                        \
              "tokens at most this many positions away are near")                                 \
    PARAMETER(open_share, REAL, d2f, 1, 0, 1, "0.1",                                              \
              "open a block when this share of the block before has tokens")                      \
    PARAMETER(ready_share, REAL, d2f, 1, 0, 1, "0.95",                                            \
              "if this share of the block before has tokens, each pass commits one token of the " \
              "block or more")                                                                    \
    PARAMETER(sched_high, REAL, sched, 1, 0, 1e6, "7.5",                                          \
              "from the second step on, commit all tokens when the mean gap of the best two "     \
              "logits reaches a bound; the bound falls from this")                                \
    PARAMETER(sched_low, REAL, sched, 1, 0, 1e6, "2.5",                                           \
              "the bound of --sched-high in the last step")                                       \
    PARAMETER(sched_rate, REAL, sched, 1, 0, 1000, "0",                                           \
              "the bound falls by exp(-rate * share of the steps); 0: along a cosine")            \
    PARAMETER(less_sure, REAL, less, 1, 0, 1, "0.75",                                             \
              "commit stable tokens of at least this confidence")                                 \
    PARAMETER(less_drift, REAL, less, 1, 0, 1, "0.04",                                            \
              "a token is stable if its distribution is at most this far from that of the step "  \
              "before, in nats")                                                                  \
    PARAMETER(less_history, INT, less, 1, 1, 1e6, "2",                                            \
              "steps before this one in which the token must have been the best")                 \
    PARAMETER(check_span, INT, s2d2, 1, 1, 1e6, "1",                                              \
              "check drafts where at least this many masks are side by side; elsewhere commit "   \
              "by --threshold")                                                                   \
    PARAMETER(dawn_sink, REAL, dawn, 1, 0, 1, "0.01",                                             \
              "nothing depends on a position to which the canvas attends more than this")         \
    PARAMETER(dawn_edge, REAL, dawn, 1, 0, 1, "0.07",                                             \
              "a position depends on another to which it attends by at least this")               \
    PARAMETER(dawn_induce, REAL, dawn, 1, 0, 1, "0.7",                                            \
              "commit tokens of at least this confidence that depend on a known token of at "     \
              "least --threshold")                                                                \
    PARAMETER(dawn_low, REAL, dawn, 1, 0, 1, "0.7",                                               \
              "commit tokens of at least this confidence that do not depend on each other")
/* Parameters that refine another one. No sweep uses them as its axis. */
#define UNMASK_REFINEMENTS(PARAMETER)                                                             \
    PARAMETER(threshold_decay, REAL, threshold, 1, 0, 1, "0",                                     \
              "--threshold falls by this share until the block is full")

#define UNMASK_ENUMERATOR(ENUM, name, traits, taken) UNMASK_##ENUM,
enum unmask { UNMASK_RULES(UNMASK_ENUMERATOR) UNMASK_COUNT };
#undef UNMASK_ENUMERATOR

#define UNMASK_MEMBER(name, ...) double name;
struct unmask_params {
    UNMASK_PARAMETERS(UNMASK_MEMBER)
    UNMASK_REFINEMENTS(UNMASK_MEMBER)
};
#undef UNMASK_MEMBER

/* The id and the confidence that the rule reads from an answer, before the answers are ranked. On a
 * device one thread reads one answer. kept: the rule's memory of the slot, or NULL. */
HOST_DEVICE struct reading unmask_read(enum unmask rule, const struct unmask_params *params,
                                       const struct head_row *row, struct slot_kept *kept)
{
    if (rule == UNMASK_CREDIT)
        return unmask_credit(row, kept, params->credit_weight, params->credit_decay,
                             params->credit_power);
    const struct reading plain = {row->id, exp(row->log_prob)};
    return plain;
}

/* Calls the rule. Returns how many of the first entries of o->pick become final. */
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

/* Returns the traits that the rule has, among `traits`; 0: none. */
HOST_DEVICE int unmask_has(enum unmask rule, int traits)
{
#define UNMASK_CASE(ENUM, name, rule_traits, taken) \
    case UNMASK_##ENUM: return (rule_traits) & traits;
    switch (rule) {
        UNMASK_RULES(UNMASK_CASE)
    case UNMASK_COUNT: break;
    }
#undef UNMASK_CASE
    return 0;
}

/* 1 if a block ends after the steps of its budget (UNMASK_PACED). */
HOST_DEVICE int unmask_paced(enum unmask rule)
{
    return unmask_has(rule, UNMASK_PACED) != 0;
}
