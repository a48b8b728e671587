/* pairs.h - `times` records as tables, and the ratio of the times of two points over the prompts
 * and launches that both have (lib/stat/paired.h). Every ratio of times in this project is made
 * here.
 *
 *     pairs_take(&p, record, &e)                               for each record of the input
 *     pairs_ratio(&p, llama, llada, &of)                       value, interval or reason
 *
 * Launches of two points are paired if they have the same number: that of their pair. If no number
 * is common, launches that are neighbours in the schedule are paired (numbers one apart, equally
 * many on both sides). */
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

/* 1: taken; 0: another kind; -1: malformed, or a point that came before (EXIT_BAD_DATA). */
int pairs_take(struct pairs *pairs, const json_t *record, struct err *e);
/* The times of a point (about_point()); of several workloads that with most prompts. NULL: none. */
const struct pairs_point *pairs_find(const struct pairs *pairs, const char *point);

/* The cells to use: one clock, and the prompts of a task (NULL: all). */
struct pairs_of { enum pairs_clock clock; const char *task; };

/* The cells of n points over all prompts and launches that any of them has, aligned:
 * [n][launches][prompts], ns; NaN: no time. The caller frees it. *launches 0: no launches are
 * paired. */
double *pairs_table(const struct pairs_point *const *point, size_t n, const struct pairs_of *of,
                    size_t *launches, size_t *prompts);
/* other / base; either may be NULL: no times. */
struct paired pairs_ratio(const struct pairs_point *base, const struct pairs_point *other,
                          const struct pairs_of *of, double level);
/* The geometric mean over prompts of a point's times, each the geometric mean over launches; ns.
 * NaN: no times, or more than a tenth of the prompts have none. */
double pairs_mean(const struct pairs_point *point, const struct pairs_of *of);
void pairs_free(struct pairs *pairs);
