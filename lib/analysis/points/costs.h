/* costs.h - what points cost against each other, as ratios of pairs (lib/stat/paired.h) and in
 * draws. Times come from `times` records, prompt by prompt and launch by launch; any other cost,
 * and times of an input without such records, from the launch values of the metric records, in
 * pairs of launches. A disturbed or a single launch gives no ratio.
 */
#ifndef ANALYSIS_POINTS_COSTS_H
#define ANALYSIS_POINTS_COSTS_H

#include <stdint.h>

#include "lib/analysis/records/pairs.h"
#include "lib/analysis/points/points.h"

struct costs {
    const struct pairs *times;
    const char *metric;      /* the cost */
    const char *task;        /* of these prompts alone; NULL: all */
    int higher;              /* more is better: the ratio is that of 1 / cost */
    double level;
    uint64_t seed;           /* of the draws */
    size_t draws;
};

/* 1: the prompts are in the ratios, beside the launches. */
int costs_by_prompt(const struct costs *c);
/* `other` over `base`; without an interval it has a reason. draw[d * stride]: its logarithm in draw
 * d, NaN without one; NULL: none is wanted. Points of the same launches and prompts move together.
 */
struct paired costs_ratio(const struct costs *c, const struct point *base,
                          const struct point *other, double *draw, size_t stride);

#endif
