/* runset.h - the records of one run in memory, by kind, for the tools that draw and tell.
 *
 * Metrics, summaries of quality, fronts, crossovers, commit and meta records are kept whole; of
 * a generation only its point in time and the outcome are kept, and of a training record its
 * losses, so a million of them fit; prompts are counted by their source and task.
 */
#ifndef ANALYSIS_RECORDS_RUNSET_H
#define ANALYSIS_RECORDS_RUNSET_H

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/places.h"

struct run_point {      /* one generation */
    const json_t *about; /* entry of `configs`; borrowed */
    double wall_s;       /* Unix time of its start; NaN without a meta record */
    double e2e_s;
    const char *prompt_kind; /* `task` of its prompt, else its `source`; "": not said; borrowed */
    int64_t launch;
    int timed; /* phase timed and status ok */
};

struct run_loss {      /* one training record */
    const char *model; /* borrowed */
    double at;         /* tokens seen; steps where these are not said */
    double loss, held; /* of the corpus; of held-out documents; NaN */
    double norm, speed; /* of the gradient; tokens a second; NaN */
    double allocated_mb, resident_mb; /* of the back end, of the process, at most; NaN */
    int by_steps, is_diffusion; /* is_diffusion: as about_is_diffusion() says */
};

struct run_known { uint64_t said; json_t *about; }; /* hash of what about.h names; of `configs` */
enum { RUNSET_KNOWN = 64 };

struct run_source {
    char *path;
    char sha256[65]; /* "" for standard input */
    int64_t records;
};

struct runset {
    json_t *kinds;   /* kind -> array of records */
    json_t *configs; /* point (about.h) -> what its records carry, and passes, rows, prompt, text,
                        and how many answers were timed, oom, failed (timed out, interrupted) */
    struct run_known known[RUNSET_KNOWN]; /* while reading: what generations said of their point */
    json_t *places;  /* "metric", "quality" -> {point and metric: place in that array} */
    struct run_point *points;
    size_t n_points, cap_points;
    struct run_loss *losses;
    size_t n_losses, cap_losses;
    json_t *texts;   /* the texts that points and losses borrow */
    struct run_source *sources;
    size_t n_sources;
    int64_t records, bad; /* bad: lines that could not be read */
    int64_t repeats;      /* identical records that came again and were left out */
    int64_t set_aside;    /* points that were also measured on fewer prompts, which is not shown */
    char first_bad[1024];
    double wall_s; /* while reading: start of the process that wrote what follows */
    struct places looks; /* fitness records by what was looked at: their places in that array */
    struct places met;   /* records that tools pass on, by their contents */
};

/* Reads every path ("-": standard input; n = 0 the same). A broken line is counted in s->bad and
 * passed over. Of several records of one point and metric the one of most prompts is kept, of these
 * the one of most answers, of these the first by workload. -1: a file is missing (EXIT_NO_INPUT)
 * or the medium failed. `limit` 0: all. */
int runset_load(struct runset *s, const char *const *paths, size_t n, int64_t limit,
                struct err *e);
void runset_free(struct runset *s);

/* Array of the records of a kind, perhaps empty; borrowed. */
const json_t *runset_kind(const struct runset *s, const char *kind);
/* The record of `kind` ("metric", or "quality": a summary) for this point and metric; NULL. */
const json_t *runset_find(const struct runset *s, const char *kind, const char *point,
                          const char *metric);
/* What is known about a point; NULL when it was never named. Borrowed. */
const json_t *runset_config(const struct runset *s, const char *point);
/* First non-null member of that name in the meta records, or in the `machine` object of one.
 * NULL. */
const json_t *runset_meta(const struct runset *s, const char *key);
/* The machine on which things were measured: that of a generator's stream, whoever quotes it; else
 * of the first stream that names one. Borrowed; NULL. */
const json_t *runset_machine(const struct runset *s);
/* 1: the meta or parent record is of a tool that measures where it runs. */
int runset_measures(const json_t *meta);

#endif
