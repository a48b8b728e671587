/* answers.h - the token ids of every answer, by point, so that two points can be asked how far they
 * agree prompt by prompt: what another number format, batch size or instruction set changes in what
 * is written, not only in how good it is.
 *
 * Counted are timed records with status ok, each point, workload and id once, of several seeds the
 * smallest: the prompt is the unit, and the launches of a prompt are no further prompts. Not those
 * of random weights.
 */
#ifndef ANALYSIS_POINTS_ANSWERS_H
#define ANALYSIS_POINTS_ANSWERS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/points/points.h"

struct answer {
    int32_t *ids;  /* [n] */
    int32_t *step; /* [n] the pass, from 1, by which a reader has each; 0: not told */
    size_t n;
    double seed; /* NaN: not said */
};
struct answers {
    json_t *index; /* point and workload -> {id: place in v} */
    struct answer *v;
    size_t n, cap;
};

/* 1: taken; 0: no generation; -1: its token_ids are none (EXIT_BAD_DATA). */
int answers_take(struct answers *a, const json_t *record, struct err *e);
void answers_free(struct answers *a);

/* Two answers to one prompt. */
struct answers_pair {
    const char *prompt; /* identity; borrowed */
    double ids;         /* of the longer one */
    double differing;   /* places at which they differ, or only one has an id */
    double first;       /* place of the first of them, from 1; NaN: none */
    double step;        /* the pass by which a reader of either can have it; NaN: none, not told */
};
/* The prompts that both points answered, in an order of their own; *n of them, the caller's. */
struct answers_pair *answers_pairs(const struct answers *a, const struct point *x,
                                   const struct point *y, size_t *n);

#endif
