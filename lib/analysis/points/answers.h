/* answers.h - stores the token ids of every answer, by point, and compares the answers of two
 * points. The comparison shows what another number format, batch size or instruction set changes in
 * the text, beside its quality.
 *
 * Only timed records with status ok count. A point, workload and id counts once; if it has several
 * seeds, the record with the smallest seed counts, because the prompt is the unit and other
 * launches add no prompts. Answers of random weights are left out. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/points/points.h"

struct answer {
    int32_t *ids;  /* [n] */
    int32_t *step; /* [n] the pass, from 1, after which each id can be read; 0: unknown */
    size_t n;
    double seed; /* NaN: the record has none */
};
struct answers {
    json_t *index; /* point and workload -> {id: place in v} */
    struct answer *v;
    size_t n, cap;
};

/* 1: taken, or left out as described above; 0: not a generation; -1: bad token_ids
 * (EXIT_BAD_DATA). */
int answers_take(struct answers *answers, const json_t *record, struct err *e);
void answers_free(struct answers *answers);

/* Two answers to one prompt, compared. */
struct answers_pair {
    const char *prompt; /* id; borrowed */
    double ids;         /* number of ids of the longer answer */
    double differing;   /* number of positions where the ids differ or only one answer has an id */
    double first;       /* the first such position, from 1; NaN: none */
    double step;        /* the pass after which either id at `first` can be read; NaN: unknown */
};
/* The pairs for the *n prompts that both points answered with the same seed, sorted by id; the
 * caller frees. */
struct answers_pair *answers_pairs(const struct answers *answers, const struct point *one,
                                   const struct point *rival, size_t *n);
