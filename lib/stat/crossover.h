/* crossover.h - the place where a curve, measured at a few step counts, meets a level. Inside the
 * measured range the place is interpolated. Otherwise it is -INFINITY (the level is met before the
 * first point) or INFINITY (not yet at the last point). Nothing is extrapolated or allocated.
 *
 * Source: Barlow et al. 1972 (isotonic regression by pool-adjacent-violators). */
#pragma once

#include <stddef.h>

enum { CROSSOVER_MAX = 256 }; /* points of one curve */
#define CROSSOVER_RESIDUAL 0.02 /* a cost line is used if it lies within 2 % of every point */

/* The first x at which the non-decreasing isotonic fit of (x[i], y[i]) reaches zero. The fit is
 * linear between points. x ascends, n <= CROSSOVER_MAX. NaN when n = 0. */
double crossover_rise(const double *x, const double *y, size_t n);

/* The cost of a sweep by its step count: the line a + b * steps where it fits within 2 %, else the
 * isotonic fit, linear between points. */
struct crossover_cost {
    int line;        /* 1: a, b hold; 0: isotonic fit */
    double a, b;     /* a in the unit of the cost, b in this unit a step */
    double residual; /* largest |cost - (a + b * steps)| / cost; NaN below 3 points */
    size_t n;
    double steps[CROSSOVER_MAX], cost[CROSSOVER_MAX]; /* the points; fitted when line is 0 */
};
/* Fits the cost of n points; steps ascend. line: -1 chooses the form; 1 (a line, if it rises) or 0
 * (isotonic) sets it. Bootstrap draws use the form of the measured values. */
void crossover_fit(struct crossover_cost *crossover_cost, const double *steps, const double *cost,
                   size_t n, int line);
/* The step count at which the cost equals `level`. With fewer steps the sweep costs less. */
double crossover_cost_meets(const struct crossover_cost *cost, double level);

/* The measured points around the first crossing, without a fit: *above is the first x with y >= 0
 * (NaN: none), *below is the x before it (NaN: none). */
void crossover_bracket(const double *x, const double *y, size_t n, double *below, double *above);

/* Writes step counts between lo and hi to out[], at most max of them, and returns how many. They
 * are evenly spaced in log2, rounded, and leave no gap wider than `octaves` (factors of two). */
size_t crossover_between(double lo, double hi, double octaves, double *out, size_t max);
