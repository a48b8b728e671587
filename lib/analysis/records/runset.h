/* runset.h - loads the records of one run into memory, by kind, for the tools that draw and report.
 *
 * Metrics, summaries of quality, fronts, crossovers, commit and meta records are kept whole. Of a
 * generation only time and outcome are kept, of a training record only the losses, so that a
 * million of these records fit. Prompts are counted by source and task. Records of another software
 * stack (about_stack()) are in the list RUNSET_FOREIGN and in no other list. Metrics of points
 * whose prompts arrive are in the list RUNSET_LOADED and in no other list. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/analysis/records/broken.h"
#include "lib/analysis/records/identity.h"
#include "lib/analysis/records/source.h"
#include "lib/base/err.h"
#include "lib/base/places.h"

struct run_point {      /* one generation */
    const json_t *about; /* entry of `configs`; borrowed */
    double wall_s;       /* Unix time of the start; NaN without a meta record */
    double e2e_s;
    int64_t launch;
    int timed; /* 1: phase timed and status ok */
};

struct run_loss {      /* one training record */
    const char *model; /* borrowed */
    double at;         /* tokens seen so far; if by_steps, steps */
    double loss, held; /* nats a token: on the corpus, on held-out documents; NaN: unknown */
    double norm, speed; /* gradient norm; tokens a second; NaN: unknown */
    double allocated_mb, resident_mb; /* peaks of the back end, of the process; NaN: unknown */
    int by_steps, is_diffusion; /* is_diffusion: about_is_diffusion() */
};

struct run_source {
    char *path;
    char sha256[65]; /* "" for standard input */
    int64_t records;
};

/* The list of metrics, summaries of quality and comparisons of other software stacks. */
#define RUNSET_FOREIGN "another stack"
/* The list of metrics of points whose prompts arrive (arrival_rate above 0). Their times include a
 * queue, so only the figure and the section on such loads show them (loads.h). */
#define RUNSET_LOADED "arriving prompts"

struct runset {
    json_t *kinds;   /* kind -> array of records */
    json_t *configs; /* point (about.h) -> settings of its records, passes, rows, one example (id,
                        prompt, text), and numbers of answers: timed, oom, failed (any other) */
    json_t *places;  /* "metric", "quality" -> {point and metric: place in that array} */
    struct run_point *points;
    size_t n_points, cap_points;
    struct run_loss *losses;
    size_t n_losses, cap_losses;
    json_t *texts;   /* texts that points and losses borrow */
    struct run_source *sources;
    size_t n_sources;
    int64_t records;
    struct broken broken; /* lines and records that could not be used */
    int64_t repeats;      /* identical records that were left out */
    int64_t set_aside;    /* points of which a measurement on fewer prompts was left out */
    int64_t unnamed;      /* points whose weights are unknown: `unnamed` of weights.h */
    double wall_s; /* while reading: start of the process that wrote the next records */
    struct places looks; /* what a fitness record checked -> its place in kinds["fitness"] */
    struct places met;   /* hashes of records that tools pass on, to find repeats */
    struct identity identity; /* used only while reading, as `source` */
    struct source source;
};

/* Reads every path ("-": standard input; n = 0: standard input). A broken line is counted in
 * set->broken and skipped. If several records have the same point and metric, the one with most
 * prompts is kept; on a tie, the one with most answers; then the first by workload. -1: a file is
 * missing (EXIT_NO_INPUT), reading failed, a point has two origins (identity.h), or metrics come
 * from two machines (EXIT_BAD_DATA).
 * limit: at most this many records are read; 0: all. */
int runset_load(struct runset *set, const char *const *paths, size_t n, int64_t limit,
                struct err *e);
void runset_free(struct runset *set);

/* The array of the records of a kind; NULL if there are none. Borrowed. */
const json_t *runset_kind(const struct runset *set, const char *kind);
/* The record of `kind` ("metric", or "quality" for a summary) with this point and metric; NULL:
 * none. Borrowed. */
const json_t *runset_find(const struct runset *set, const char *kind, const char *point,
                          const char *metric);
/* The settings of a point; NULL: no record names it. Borrowed. */
const json_t *runset_config(const struct runset *set, const char *point);
/* The comparison record of the point with its base, whose members `by` and `metric` are these.
 * Records about answers that differ (effect disagreement) do not count. NULL: none. Borrowed. */
const json_t *runset_comparison(const struct runset *set, const char *by, const char *point,
                                const char *metric);
/* The first non-null member `key` of the meta records or of their `machine` objects; NULL: none. */
const json_t *runset_meta(const struct runset *set, const char *key);
/* The machine that was measured: the `machine` of the first meta or parent record for which
 * runset_measures() is 1, else of the first meta record that has one. NULL: none. Borrowed. */
const json_t *runset_machine(const struct runset *set);
/* 1: the meta or parent record comes from a tool that measures the machine on which it runs. */
int runset_measures(const json_t *meta);
