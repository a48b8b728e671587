/* evidence.h - reads the records of a run from which claims are made: times by prompt and launch,
 * qualities by prompt, memory by point, crossovers, self-tests, fitness checks. The order of the
 * records does not matter. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/analysis/records/broken.h"
#include "lib/analysis/records/pairs.h"

/* The sums over the answers to a prompt: of values, scored tokens, scored bytes, and the number of
 * answers. */
enum { EVIDENCE_VALUES, EVIDENCE_TOKENS, EVIDENCE_BYTES, EVIDENCE_ANSWERS, EVIDENCE_SUMS };

struct evidence {
    struct pairs times;
    json_t *points;   /* point -> settings of its records (about.h) */
    json_t *quality;  /* point -> metric -> id of a prompt -> array of EVIDENCE_SUMS sums */
    json_t *directions; /* metric -> member `direction` of its records */
    json_t *scored;   /* point -> workload (about.h) of its qualities -> true */
    json_t *graded;   /* metric -> true: some value is neither 0 nor 1 */
    json_t *tasks;    /* id -> task */
    json_t *answers;  /* point -> id -> hash of the token ids */
    json_t *metrics;  /* point -> metric -> record */
    json_t *kinds;    /* crossover, check, fitness, method, ranking, machine -> list of records */
    int64_t unnamed;  /* points whose weights are unknown: `unnamed` of weights.h */
    struct broken broken; /* records that could not be used */
};

/* Reads every path ("-": standard input; n = 0: standard input). A broken record, and a record in
 * the place of a different one, is noted in evidence->broken and skipped. -1: a file is missing
 * (EXIT_NO_INPUT), reading failed, a point has two origins (identity.h), or times come from two
 * machines (EXIT_BAD_DATA). limit 0: all records. */
int evidence_load(struct evidence *evidence, const char *const *paths, size_t n, int64_t limit,
                  struct err *e);
void evidence_free(struct evidence *evidence);

/* The records of a kind (see `kinds`), and the settings of a point. Borrowed; NULL: none. */
const json_t *evidence_list(const struct evidence *evidence, const char *kind);
const json_t *evidence_about(const struct evidence *evidence, const char *point);
/* The value of a metric of a point; NaN: none. */
double evidence_metric(const struct evidence *evidence, const char *point, const char *metric);
/* Sum number `which` (EVIDENCE_VALUES, ...) of quality[point][metric][id]. */
double evidence_sum(const json_t *sums, int which);
/* 1: the qualities of both points name their sets of prompts, and have none in common. */
int evidence_other_prompts(const struct evidence *evidence, const char *a, const char *b);
/* 1: the prompt belongs to the task (NULL: every prompt does). */
int evidence_is_of(const struct evidence *evidence, const char *id, const char *task);
