/* measurement.h - reduces the generation records of one point over one set of prompts to numbers,
 * one record after another, and makes metric records from these numbers. Values are sorted before
 * they are summed, so the order of the records does not matter.
 *
 * Only full batches count for times and rates, because a batch with fewer prompts than its point
 * asks for is work of another size. The answers of such a batch are counted as `partial`. */
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
    json_t *outputs; /* with verify: id -> hash of the tokens; owned */
    struct cells cells;                    /* times of clean and of disturbed answers */
    struct samples samples;                /* values of the metrics for which samples_has() is 1 */
    struct measurement_series of[METRICS]; /* values of metrics neither in samples nor batches */
    struct batches batches;
    int64_t cold, warmup, timed, partial, failed, oom, tainted; /* numbers of answers */
    char *memory_reason[MEMORY_METRICS]; /* why the metric is null; NULL: the records do not say */
    struct roof_limit roof;
    int unjudged; /* 1: goodput is unknown: an answer lacks a time that its limits need */
    int repeated, differs; /* with verify: an id came twice; two outputs of one id differ */
    struct measurement_series first, again; /* with verify: times of the first round of a
                                             * launch, and of later rounds; later rounds would
                                             * be faster if the process cached answers */
    double repeat_ratio, distinct_ratio; /* with verify, after measurement_finish: median time
                                          * again / first; different outputs / ids; NaN */
    struct energy_basis basis;
    const char *no_energy[ENERGY_METRICS]; /* why the metric is null; static */
    char *energy_reason;   /* why joules are null, by the records; NULL: they do not say */
    double work[2];        /* after measurement_finish: the values of PASSES and ROWS */
    int is_steady;         /* after measurement_finish: 1: yes; 0: no; -1: undecided */
    int warmed;            /* 0: some launch was never warm; 1: all were warm; -1: unknown */
    struct measurement *disturbed; /* made from the tainted records; NULL: none. If no record is
                                    * clean, these numbers are used, without intervals */
    int is_disturbed;      /* after measurement_finish: 1: numbers of tainted records are used */
};
struct measurement_work { /* scratch for any number of measurements; begins as zeroes */
    struct samples_limits limits; /* set by the caller */
    struct timing timing; /* the current record */
    double *work;         /* [room] */
    struct measurement_series series; /* the current metric */
    size_t room;
};

void measurement_open(struct measurement *point, const json_t *record);
/* Takes a generation record of the point. The caller reads records through identity_check(), so
 * the settings are those of the point. TIMING_BAD: *e filled (EXIT_BAD_DATA).
 * verify 1: also calls timing_verify(), and compares answers that were repeated. */
enum timing_class measurement_take(struct measurement *point, const json_t *record, int verify,
                                   struct measurement_work *work, struct err *e);
/* To be called after the last record. Sets shares of the roofline, joules, steadiness and work. */
void measurement_finish(struct measurement *point, const struct roof *roof, const struct idle *idle,
                        struct measurement_work *work);
/* The members of the `times` record (cells.h); the caller's reference. NULL: no timed answer. */
json_t *measurement_times(struct measurement *point);
int measurement_has(const struct measurement *point, enum metric key); /* 1: there are values */
/* The members of a metric record; the caller's reference. */
json_t *measurement_metric(struct measurement *point, enum metric key, int verify,
                           struct measurement_work *work);
void measurement_free(struct measurement *point);
void measurement_work_free(struct measurement_work *work);
