/* measurement.h - the generation records of one point over one set of prompts, reduced to numbers
 * as they come in, and the metric records made from them. Values are sorted before they are summed,
 * so the order of the records does not matter.
 *
 * Only full batches count for times and rates: a batch with fewer prompts than its point asks for
 * is work of another size. Its answers are counted as `partial`. */
#pragma once

#include <jansson.h>

#include "lib/analysis/measure/cells.h"
#include "lib/analysis/measure/idle.h"
#include "lib/analysis/measure/metrics.h"
#include "lib/analysis/measure/roof.h"
#include "lib/analysis/measure/samples.h"
#include "lib/analysis/measure/timing.h"
#include "lib/base/err.h"
#include "lib/stat/batches.h"

struct measurement_series { struct launch_sample *s; size_t n, cap; };
struct measurement {
    json_t *about;   /* the settings of its records (about.h); owned */
    json_t *outputs; /* with verify: "seed id" -> hash of the tokens; owned */
    struct cells cells;                    /* disturbed answers too */
    struct samples samples;                /* of the metrics of which samples_has() is 1 */
    struct measurement_series of[METRICS]; /* of metrics that are neither in samples nor batches */
    struct batches batches;
    int64_t cold, warmup, timed, partial, failed, oom, tainted;
    char *memory_reason[MEMORY_METRICS]; /* why it is null; NULL: the records do not say */
    struct roof_limit roof;
    int unjudged; /* 1: the limits of goodput need a time of an answer that is not known */
    int repeated, differs; /* with verify: an id came twice; two outputs of one id differ */
    struct measurement_series first, again; /* with verify: times of the first round of a
                                             * launch and of later rounds, which would be
                                             * faster if the process cached answers */
    double repeat_ratio, distinct_ratio; /* with verify, after measurement_finish: median time
                                          * again / first; different outputs / ids; NaN */
    struct energy_basis basis;
    const char *no_energy[ENERGY_METRICS]; /* why the metric is null; static */
    char *energy_reason;   /* the reason of the records; NULL: none */
    double work[2];        /* after measurement_finish: PASSES and ROWS */
    int is_steady;         /* after measurement_finish: 1, 0, -1 undecided */
    int warmed;            /* 0: some launch was never warm; 1: all were; -1: unknown */
    struct measurement *disturbed; /* the tainted records; NULL: none. If no record is clean, its
                                    * numbers are used, without intervals */
    int is_disturbed;      /* after measurement_finish: 1: those numbers are used */
};
struct measurement_work { /* scratch for any number of measurements; begins as zeroes */
    struct samples_limits limits; /* set by the caller */
    struct timing timing; /* the current record */
    double *work;         /* [room] */
    struct measurement_series series; /* the current metric */
    size_t room;
};

void measurement_open(struct measurement *point, const json_t *record);
/* Takes a generation record of the point (about_check). TIMING_BAD: *e filled (EXIT_BAD_DATA).
 * verify: also refuses memory numbers that do not add up, and compares repeats. */
enum timing_class measurement_take(struct measurement *point, const json_t *record, int verify,
                                   struct measurement_work *work, struct err *e);
/* To be called after the last record: sets shares of the roofline, joules and rates. */
void measurement_finish(struct measurement *point, const struct roof *roof, const struct idle *idle,
                        struct measurement_work *work);
/* The members of the `times` record (cells.h); the caller's reference. NULL: no timed answer. */
json_t *measurement_times(struct measurement *point);
int measurement_has(const struct measurement *point, enum metric key); /* 1: it has values */
/* The members of a metric record; the caller's reference. */
json_t *measurement_metric(struct measurement *point, enum metric key, int verify,
                           struct measurement_work *work);
void measurement_free(struct measurement *point);
void measurement_work_free(struct measurement_work *work);
