/* costs.h - ratios of the costs of two points, over pairs (lib/stat/paired.h), with draws. Times
 * come from `times` records, by prompt and launch. Any other cost, and times without such records,
 * come from the launch values of the metric records, paired by launch. Launch values give no ratio
 * if a batch of the point was disturbed. Fewer than LAUNCH_LEAST launches give no ratio. */
#pragma once

#include <stdint.h>

#include "lib/analysis/records/pairs.h"
#include "lib/analysis/points/points.h"

struct costs {
    const struct pairs *times;
    const char *metric;      /* the cost */
    const char *task;        /* only prompts of this task; NULL: all */
    int higher;              /* 1: more is better; then the ratio is one of 1 / cost */
    double level;            /* of intervals, 0.95 */
    uint64_t seed;           /* of the draws */
    size_t draws;
};

/* 1: ratios are over prompts and launches; 0: over launches. */
int costs_by_prompt(const struct costs *costs);
/* The ratio other / base, with a reason if it has no interval. Sets draw[d * stride] to the
 * logarithm of the ratio in draw d (NaN without an interval); draw NULL: no draws. Ratios over the
 * same launches and prompts are correlated in the draws. */
struct paired costs_ratio(const struct costs *costs, const struct point *base,
                          const struct point *other, double *draw, size_t stride);
/* The fastest autoregressive point (fastest.h) with the device, load, model, formats and template
 * of `plain`, by ratios to `plain` that have an interval. Appends to the array `among` the configs
 * of all points with such a ratio, `plain` last; none if there is no other. */
const struct point *costs_fastest(const struct costs *costs, const struct points *all,
                                  const struct point *plain, json_t *among);
