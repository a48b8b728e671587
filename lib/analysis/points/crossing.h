/* crossing.h - makes records of the results of pareto. A place outside the measured range is
 * censored: its member is null, and a second member names the side: "below" the least measured work
 * or "above" the most.
 *
 * A crossover is a place in the order of its series (points.h). `over` names the unit of this
 * order: steps, passes or rows. `at`, `lo`, `hi` and `bracket` are in this unit. `bracket_values`
 * has the values of the axis at the bracket, `points` all points of the series as [{value, at}]. If
 * `over` is steps, the member `steps` repeats `at`. */
#pragma once

#include <jansson.h>

#include "lib/analysis/points/points.h"
#include "lib/stat/contest.h"
#include "lib/stat/ratio.h"

struct crossing_series { const struct point *v; size_t n; }; /* the points of a sweep, in order */

struct crossing {
    const char *name;        /* "X_lat", "X_q", "X_par" */
    double at, lo, hi;       /* +-INFINITY: censored; NaN: not known (see the reasons) */
    double below, above;     /* the measured points around `at`; NaN: none on that side */
    double probability, p_below, p_above; /* shares of draws: exists, censored below, above */
    const char *interval_reason; /* why lo and hi are NaN */
    int exists;              /* 1: yes, 0: no, -1: undecided */
    const char *reason;      /* why exists is not 1; NULL: exists is 1 */
    const char *method;
};
/* Why a series can have no crossover: its work was not measured, or all its points do the same
 * work. NULL: a crossover is possible. */
const char *crossing_obstacle(const struct crossing_series *series);
/* Why no LLaMA is a rival of the point `of`: the settings in which the closest LLaMA differs. For
 * example "LLaMA has contract answer, this one fixed". The caller frees. */
char *crossing_no_rival(const struct points *all, const struct point *of);

/* {name, llada, llama, axis, series, over, ..., exists, at, steps, lo, hi, level, bracket,
 * censored, probability, ..., method, reason}; the caller's reference. llama NULL: there is no
 * rival. */
json_t *crossing_record(const struct crossing *crossing, const struct crossing_series *series,
                        const struct point *llama, double level);

struct standing { /* how a point stands to the Pareto front */
    const char *cost_metric, *quality_metric;
    int cost_higher, quality_higher;  /* 1: more is better */
    double cost_lo, cost_hi, quality, quality_lo, quality_hi; /* NaN: no interval */
    double share; /* share of draws in which the point is on the front */
    int on;       /* 1: the point is on the measured front */
    const struct ratio *ratio; /* cost of the point / cost of the point `base` */
    const char *base, *task;   /* base NULL: no point has enough launches; task NULL: all */
    size_t draws, prompts, excluded_points, excluded_prompts;
};
/* The members of a `front` record. If the ratio has no interval, p_front, class and on_front are
 * null, because the costs cannot be compared. The caller's reference. */
json_t *crossing_front(const struct point *point, const struct standing *standing, double level);

/* The members of a `suggest` record: the values along the axis that should be measured too (if they
 * are step counts, also as `steps`), and the number of prompts that would narrow X_q. quality NULL:
 * cost alone. The caller's reference. */
json_t *crossing_suggest(const struct crossing_series *series, const struct point *llama,
                         const char *quality, const struct contest_result *result,
                         const struct contest_advice *advice);

/* Sets the member KEY to the value. An infinite value becomes null with KEY_censored, NaN becomes
 * null with KEY_reason. */
void crossing_set(json_t *j, const char *key, double value, const char *reason);
