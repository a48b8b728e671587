/* crossing.h - what pareto found, as records. Steps outside what was measured are censored: null,
 * with the side "below" (the fewest steps measured) or "above" (the most) beside them.
 */
#ifndef ANALYSIS_CROSSING_H
#define ANALYSIS_CROSSING_H

#include <jansson.h>

#include "lib/analysis/points.h"

struct crossing {
    const char *name;        /* "X_lat", "X_q", "X_par" */
    double at, lo, hi;       /* steps; +-INFINITY: censored; NaN: not known (see the reasons) */
    double below, above;     /* bracket of measured steps; NaN: open on that side */
    double probability, p_below, p_above; /* shares of draws: exists, censored below, above */
    const char *interval_reason; /* why lo and hi are NaN */
    const char *reason;      /* why it does not exist; NULL: it does */
    const char *method;
};

/* {name, llada, llama, batch, ..., exists, steps, lo, hi, level, bracket, censored, probability,
 * ..., method, reason}; the caller's reference. llama NULL: there is no rival. */
json_t *crossing_record(const struct crossing *c, const struct point *llada,
                        const struct point *llama, double level);

/* The members that say which two meet: llada, llama, llada_series, llama_config, batch, device,
 * gen_length. */
void crossing_set_pair(json_t *j, const struct point *llada, const struct point *llama);

struct standing { /* a point and its place against the front */
    const char *cost_metric, *quality_metric;
    int cost_higher, quality_higher;  /* 1: more is better */
    double cost_lo, cost_hi, quality, quality_lo, quality_hi; /* NaN: no interval */
    double share; /* of draws in which it is on the front */
    int on;       /* it is on the measured one */
    size_t draws, prompts, excluded_points, excluded_prompts;
};
/* The members of a `front` record; the caller's reference. */
json_t *crossing_front(const struct point *p, const struct standing *s, double level);

/* The members of a `suggest` record: which steps to add and how many prompts would narrow X_q,
 * whose interval is `octaves` wide (NaN: none). quality NULL: cost alone. */
json_t *crossing_suggest(const struct point *llada, const struct point *llama, const char *quality,
                         const double *steps, size_t n, double prompts, double octaves,
                         int at_least);

/* key: number, or null with `key`_censored or `key`_reason. */
void crossing_set(json_t *j, const char *key, double value, const char *reason);

#endif
