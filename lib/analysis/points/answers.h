/* answers.h - the token ids of every answer, by point: how many prompts do two points answer with
 * different tokens? This shows what another number format, batch size or instruction set changes in
 * the text, beside its quality.
 *
 * Timed records with status ok count; each point, workload and id once. If there are several seeds,
 * the smallest counts, because the prompt is the unit and other launches add no prompts. Answers of
 * random weights are left out. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/points/points.h"

struct answer {
    int32_t *ids;  /* [n] */
    int32_t *step; /* [n] the pass, from 1, after which each id can be read; 0: unknown */
    size_t n;
    double seed; /* NaN: none */
};
struct answers {
    json_t *index; /* point and workload -> {id: place in v} */
    struct answer *v;
    size_t n, cap;
};

/* 1: taken; 0: not a generation; -1: bad token_ids (EXIT_BAD_DATA). */
int answers_take(struct answers *answers, const json_t *record, struct err *e);
void answers_free(struct answers *answers);

/* Two answers to one prompt. */
struct answers_pair {
    const char *prompt; /* id; borrowed */
    double ids;         /* number of ids of the longer answer */
    double differing;   /* positions where they differ or only one has an id */
    double first;       /* the first such position, from 1; NaN: none */
    double step;        /* the pass after which either can be read there; NaN: none, unknown */
};
/* The *n prompts that both points answered, sorted by id; the caller frees. */
struct answers_pair *answers_pairs(const struct answers *answers, const struct point *one,
                                   const struct point *rival, size_t *n);
