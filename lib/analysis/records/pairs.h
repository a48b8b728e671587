/* pairs.h - reads `times` records into tables, and computes the ratio of the times of two points
 * over the prompts and launches that both have (lib/stat/paired.h). Every ratio of times in this
 * project is made here.
 *
 *     pairs_take(&pairs, record, &e)                           for each record of the input
 *     llama = pairs_find(&pairs, point)                        the times of a point
 *     pairs_ratio(llama, llada, &of, 0.95)                     value, interval or reason
 *
 * Launches of two points are paired if they have the same launch number. If the points have no
 * number in common, but equally many launches, the launches are paired in order, provided that the
 * numbers of each pair are one apart: such launches are neighbours in the schedule. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/stat/paired.h"

enum pairs_clock { PAIRS_WALL, PAIRS_CPU, PAIRS_CLOCKS };
extern const char *const pairs_clocks[PAIRS_CLOCKS]; /* "e2e_ns", "cpu_ns" */

struct pairs_point {
    json_t *record;              /* owned; the texts below are borrowed from it */
    const char *point, *workload;
    size_t prompts, launches;
    const char **id, **task;     /* [prompts]; ids ascend; task NULL: none; lists owned */
    int64_t *launch;             /* [launches], ascending; owned */
    double *ns[PAIRS_CLOCKS];    /* [launches][prompts]; NaN: no time; owned */
};
struct pairs { struct pairs_point *v; size_t n, cap; }; /* begins as zeroes */

/* 1: taken; 0: a record of another kind; -1: malformed, or a second record of its point and
 * workload (EXIT_BAD_DATA). */
int pairs_take(struct pairs *pairs, const json_t *record, struct err *e);
/* The times of a point (about_point()). If it has several workloads, the one with most prompts
 * counts, and of two with as many the first by name. NULL: none. */
const struct pairs_point *pairs_find(const struct pairs *pairs, const char *point);

/* Which cells to use: one clock, and the prompts of one task (NULL: all). */
struct pairs_of { enum pairs_clock clock; const char *task; };

/* The cells of n points, aligned over all prompts and launches that any of them has:
 * [n][launches][prompts], ns; NaN: no time. The caller frees the table. NULL and *launches 0: no
 * launches can be paired, or two points have other prompts (about_other_prompts()). */
double *pairs_table(const struct pairs_point *const *point, size_t n, const struct pairs_of *of,
                    size_t *launches, size_t *prompts);
/* The reason why the ratio of two points has no value: `reason` of paired_ratio(), or its cause if
 * the records tell it, PAIRED_PROMPTS or PAIRED_MISSING. NULL: `reason` is NULL. */
const char *pairs_reason(const struct pairs_point *base, const struct pairs_point *other,
                         const struct pairs_of *of, const char *reason);
/* The ratio other / base with its interval of this level. base and other may be NULL: no times. */
struct paired pairs_ratio(const struct pairs_point *base, const struct pairs_point *other,
                          const struct pairs_of *of, double level);
/* The mean time of a point in ns: the geometric mean over prompts of the geometric mean over
 * launches. NaN: no times, or more than a tenth of the prompts have no time. */
double pairs_mean(const struct pairs_point *point, const struct pairs_of *of);
/* pairs_mean() with its 95 % interval: Student's t over launches. The value of a launch is the
 * mean, over its prompts, of log time minus the mean log time of the prompt. A launch counts if at
 * least half of its prompts have a time. lo, hi NaN: fewer than LAUNCH_LEAST launches count. */
struct interval pairs_time(const struct pairs_point *point, const struct pairs_of *of);
void pairs_free(struct pairs *pairs);
