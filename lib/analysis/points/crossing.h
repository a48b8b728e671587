/* crossing.h - what pareto found, as records. Computation outside what was measured is censored:
 * null, with the side "below" (the least measured) or "above" (the most) beside it.
 *
 * A crossover is a place on the order of its series (points.h), named by `over`: steps, passes or
 * rows. `at`, `lo`, `hi` and `bracket` are in that unit; `bracket_values` are the values along the
 * axis of the points at the bracket, and `points` all of the series as [{value, at}]. Where `over`
 * is steps, the member `steps` repeats `at`.
 */
#ifndef ANALYSIS_POINTS_CROSSING_H
#define ANALYSIS_POINTS_CROSSING_H

#include <jansson.h>

#include "lib/analysis/points/points.h"
#include "lib/stat/contest.h"
#include "lib/stat/ratio.h"

struct crossing_series { const struct point *v; size_t n; }; /* the points of a sweep, in order */

struct crossing {
    const char *name;        /* "X_lat", "X_q", "X_par" */
    double at, lo, hi;       /* +-INFINITY: censored; NaN: not known (see the reasons) */
    double below, above;     /* bracket of measured points; NaN: open on that side */
    double probability, p_below, p_above; /* shares of draws: exists, censored below, above */
    const char *interval_reason; /* why lo and hi are NaN */
    int exists;              /* 1, 0: it does not, -1: nobody can say */
    const char *reason;      /* why it does not, or why nobody can say; NULL: it does */
    const char *method;
};
/* Why a series can have no crossovers at all: nothing measured orders it, or all its points do the
 * same work. NULL: it can. */
const char *crossing_obstacle(const struct crossing_series *s);
/* How the LLaMA differs that is nearest to suiting as a rival of `of`: "LLaMA has contract answer,
 * this one fixed". The caller's. */
char *crossing_no_rival(const struct points *all, const struct point *of);

/* {name, llada, llama, axis, series, over, ..., exists, at, steps, lo, hi, level, bracket,
 * censored, probability, ..., method, reason}; the caller's reference. llama NULL: there is no
 * rival. */
json_t *crossing_record(const struct crossing *c, const struct crossing_series *s,
                        const struct point *llama, double level);

struct standing { /* a point and its place against the front */
    const char *cost_metric, *quality_metric;
    int cost_higher, quality_higher;  /* 1: more is better */
    double cost_lo, cost_hi, quality, quality_lo, quality_hi; /* NaN: no interval */
    double share; /* of draws in which it is on the front */
    int on;       /* it is on the measured one */
    const struct ratio *ratio; /* of its cost to that of the point `base` */
    const char *base, *task;   /* NULL: no point has enough launches; all tasks */
    size_t draws, prompts, excluded_points, excluded_prompts;
};
/* The members of a `front` record; without a ratio it has no place. The caller's reference. */
json_t *crossing_front(const struct point *p, const struct standing *s, double level);

/* predicted_at: where the series would cost as much as the rival if every point took the least time
 * that the machine's limits allow (points.h, roof). Only of e2e_ns. */
void crossing_predict(json_t *j, const struct crossing_series *s, const struct point *llama,
                      const char *cost_metric);

/* The members of a `suggest` record: which values along the axis to add (for steps also as `steps`)
 * and how many prompts would narrow X_q. quality NULL: cost alone. */
json_t *crossing_suggest(const struct crossing_series *s, const struct point *llama,
                         const char *quality, const struct contest_result *r,
                         const struct contest_advice *a);

/* key: number, or null with `key`_censored or `key`_reason. */
void crossing_set(json_t *j, const char *key, double value, const char *reason);

#endif
