/* couple.h - computes the costs of a point relative to its base, as `compare` writes them. Times
 * are compared prompt by prompt in the same launches (lib/analysis/records/pairs.h), by both
 * clocks. Other costs are compared launch by launch (lib/stat/ratio.h), if no launch was disturbed.
 * Memory peaks are maxima, so they have a ratio and no interval. */
#pragma once

#include "lib/analysis/records/contrast.h"
#include "lib/analysis/records/pairs.h"
#include "lib/analysis/points/points.h"

/* A cost of both points, and its ratio. */
struct couple_cost {
    const char *metric;   /* borrowed; NULL: one of the points lacks this cost */
    double base, value;   /* NaN: not measured, or disturbed */
    struct ratio ratio;   /* value / base */
    double holm;          /* p adjusted for all couples (Holm); NaN: none */
};

enum { COUPLE_COSTS = 2 }; /* the cost; if the cost is time, also processor time */
struct couple {
    const struct point *point, *base;
    const char *setting; /* "int8"; borrowed */
    struct couple_cost cost[COUPLE_COSTS];
};

/* Sets the costs of n couples of points of `all`. The p values of one cost are adjusted over all
 * couples (Holm). level: of the intervals, 0.95. */
void couple_find_costs(struct couple *couple, size_t n, const struct points *all,
                       const struct pairs *times, double level);
/* The ratio of the metric beside the cost (points.h), over launches. This ratio does not count as a
 * further test, so its p is not adjusted. */
struct couple_cost couple_beside(const struct couple *k, const struct points *all, double level);
/* Sets both values, the ratio and the wanted launches in a record that has the member `metric`. */
void couple_put(json_t *record, const struct couple_cost *cost, const struct contrast_goal *goal);
