/* samples.h - what the answers of one point came to, kept small until all are there: a row of
 * numbers for each answer, and eight bytes for each gap between two emissions of it.
 */
#ifndef ANALYSIS_SAMPLES_H
#define ANALYSIS_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/metrics.h"
#include "lib/stat/launch.h"

enum { SAMPLES_COLUMNS = 14 };
struct samples_answer {
    int64_t launch, round, seq;
    double value[SAMPLES_COLUMNS]; /* NaN: none */
    size_t gaps;
};
struct samples { /* begins as zeroes */
    struct samples_answer *v;
    size_t n, cap;
    uint64_t *gap;             /* of all answers, in their order */
    size_t n_gaps, cap_gaps;
    struct launch_sample *odd; /* gaps that do not fit into 64 bits */
    size_t n_odd, cap_odd;
};

/* Begins an answer; what follows is of it. */
void samples_begin(struct samples *s, int64_t launch, int64_t round, int64_t seq);
/* Its value of a metric that an answer has once. */
void samples_set(struct samples *s, enum metric f, double value);
/* A gap of ITL and VISIBLE_GAP: time for each of so many tokens. */
void samples_add_gap(struct samples *s, double ns_per_token, double tokens);

/* 1: the values of a metric lie here. */
int samples_has(enum metric f);
/* The values of a metric as launch_summarize takes them. Returns how many; out NULL: only that. */
size_t samples_of(const struct samples *s, enum metric f, struct launch_sample *out);
/* out[n]: the answers with their E2E, as launch_turns_steady takes them. */
void samples_turns(const struct samples *s, struct launch_turn *out);
void samples_free(struct samples *s);

#endif
