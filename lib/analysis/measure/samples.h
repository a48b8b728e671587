/* samples.h - what the answers of one point came to, kept small (column.h) until all are there: the
 * numbers of each answer, and each gap between two emissions of it.
 */
#ifndef ANALYSIS_MEASURE_SAMPLES_H
#define ANALYSIS_MEASURE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/measure/metrics.h"
#include "lib/base/column.h"
#include "lib/stat/launch.h"

struct samples_answer { /* NaN: none */
    int64_t launch, round, seq; /* below 2^53 */
    double e2e, ttft, ttft_commit, ttf_block, tpot, longest_gap; /* ns */
    double tokenize, prepare;                                    /* ns */
    double to_eos, words, steps, rows, committed, canvas;
};
enum { SAMPLES_COLUMNS = 18 };
struct samples { /* begins as zeroes */
    struct column of[SAMPLES_COLUMNS];
    size_t n;
    struct column gap_ns, gap_tokens; /* of all answers, in their order */
    struct launch_sample *odd;        /* gaps that do not come back from these two */
    size_t n_odd, cap_odd;
};

/* Takes an answer and its gaps, as events_gaps has them: time for each of so many tokens. */
void samples_add(struct samples *s, const struct samples_answer *a, const double *ns_per_token,
                 const double *tokens, size_t gaps);

/* 1: the values of a metric lie here. */
int samples_has(enum metric f);
/* The values of a metric as launch_summarize takes them. Returns how many; out NULL: only that. */
size_t samples_of(const struct samples *s, enum metric f, struct launch_sample *out);
/* out[n]: the answers with their E2E, as launch_turns_steady takes them. */
void samples_turns(const struct samples *s, struct launch_turn *out);
void samples_free(struct samples *s);

#endif
