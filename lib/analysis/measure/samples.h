/* samples.h - stores the times and counts of each answer of one point, and each gap between two
 * emissions of an answer, until the point is summarized. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/measure/metrics.h"
#include "lib/stat/launch.h"

struct samples_answer { /* NaN: not known */
    int64_t launch, round, seq; /* below 2^53 */
    double e2e, ttft, ttft_commit, ttf_block, tpot, longest_gap; /* ns */
    double tokenize, prepare;                                    /* ns */
    double to_eos, words, steps, rows, committed, canvas;
    double emissions; /* 0: not known */
    size_t gaps; /* set by samples_add() */
};
struct samples_gap { double ns, tokens; }; /* ns per token; the number of tokens is its weight */
struct samples { /* begins as zeroes */
    struct samples_answer *answer; /* [n]; owned */
    struct samples_gap *gap;       /* [gaps]: the gaps of answer 0, of answer 1, ...; owned */
    size_t n, cap, gaps, cap_gaps;
};

/* Limits of latency, in ns, that an answer must keep to count as good: for the first token, and for
 * the mean time of each later token (tpot; AIPerf calls this ITL). 0: no limit. */
enum { SAMPLES_TTFT, SAMPLES_ITL, SAMPLES_LIMITS };
struct samples_limits { double ns[SAMPLES_LIMITS]; };
int samples_are_limited(const struct samples_limits *limits); /* 1: there is a limit */
/* 1: the answer keeps the limits; 0: it does not; NaN: there are no limits, or a time that decides
 * is not known. An answer whose tokens came all at once has no time per token and keeps that limit.
 * An answer without tokens has no first token and fails the limit on the first token. */
double samples_is_good(const struct samples_answer *answer, const struct samples_limits *limits);

/* Takes an answer and its gaps from events_gaps(): ns per token, and the number of tokens. */
void samples_add(struct samples *samples, const struct samples_answer *answer,
                 const double *ns_per_token, const double *tokens, size_t gaps);

/* 1: a struct samples has the values of the metric. */
int samples_has(enum metric metric);
/* Writes the values of a metric for launch_summarize() to out (NULL: writes nothing). Returns how
 * many. */
size_t samples_of(const struct samples *samples, enum metric metric, struct launch_sample *out);
/* Writes the E2E time of all answers for launch_turns_steady() to out[samples->n]. */
void samples_turns(const struct samples *samples, struct launch_turn *out);
void samples_free(struct samples *samples);
