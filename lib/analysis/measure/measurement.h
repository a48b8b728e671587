/* measurement.h - the generation records of one point over one set of prompts, reduced to numbers
 * as they come, and the metric records that these come to. Nothing is summed before it is sorted,
 * so the order of the records leaves no trace.
 *
 * Only full batches count for times and rates: one that holds fewer prompts than its point asks for
 * is work of another size, and its answers are counted as `partial`.
 */
#ifndef ANALYSIS_MEASURE_MEASUREMENT_H
#define ANALYSIS_MEASURE_MEASUREMENT_H

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
    json_t *about;   /* what its records carry (about.h); owned */
    json_t *outputs; /* of measurement_verify: "seed id" -> hash of its tokens; owned */
    struct cells cells;                    /* disturbed answers are in it, too */
    struct samples samples;                /* of the metrics that samples_has() */
    struct measurement_series of[METRICS]; /* of those that neither answers nor batches have */
    struct batches batches;
    int64_t cold, warmup, timed, partial, failed, oom, tainted;
    char *memory_reason[MEMORY_METRICS]; /* why one is null; NULL: not said */
    struct roof_limit roof;
    int repeated, differs; /* measurement_verify: an id came twice; two outputs of one id differ */
    struct measurement_series first, again; /* measurement_verify: times of the first round
                                             * of a launch, and of further ones: what a
                                             * process caches would make these faster */
    double repeat_ratio, distinct_ratio; /* measurement_verify, after measurement_finish: median
                                          * time again / first; different outputs / ids; NaN */
    struct energy_basis basis;
    const char *no_energy[ENERGY_METRICS]; /* why there is none; static */
    char *energy_reason;   /* the same as the records say; NULL: they do not */
    double work[2];        /* after measurement_finish: the typical PASSES and ROWS */
    int is_steady;         /* after measurement_finish: 1, 0, -1 undecided */
    int warmed;            /* 0: some launch was never warm; 1; -1: not said */
    struct measurement *disturbed; /* what tainted records come to; NULL: there are none. Where no
                                    * record is clean its numbers stand in, without intervals */
    int is_disturbed;      /* after measurement_finish: they do */
};
struct measurement_work { /* scratch for any number of measurements; begins as zeroes */
    struct timing timing; /* the record at hand */
    double *work;         /* [room] */
    struct measurement_series series; /* the metric at hand */
    size_t room;
};

void measurement_open(struct measurement *m, const json_t *record);
/* Takes a generation record of its point (about_check). TIMING_BAD: *e filled (EXIT_BAD_DATA).
 * verify: also refuses memory that does not add up, and compares repeats. */
enum timing_class measurement_take(struct measurement *m, const json_t *record, int verify,
                                   struct measurement_work *w, struct err *e);
/* After the last record: shares of the roof, joules, rates. */
void measurement_finish(struct measurement *m, const struct roof *roof, const struct idle *idle,
                        struct measurement_work *w);
/* The members of its `times` record, with what it is about; the caller's reference. NULL: no timed
 * answer. */
json_t *measurement_times(struct measurement *m);
int measurement_has(const struct measurement *m, enum metric f); /* 1: it has values */
/* One metric record; the caller's reference. */
json_t *measurement_metric(struct measurement *m, enum metric f, int verify,
                           struct measurement_work *w);
void measurement_free(struct measurement *m);
void measurement_work_free(struct measurement_work *w);

#endif
