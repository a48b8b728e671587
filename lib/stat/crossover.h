/* crossover.h - where a curve measured at a few step counts meets a level. Inside the measured
 * range the answer is interpolated; outside it is -INFINITY (met before the first point) or
 * INFINITY (not met by the last), never extrapolated. Nothing allocates.
 *
 * Source: isotonic regression by pool-adjacent-violators, Barlow et al. 1972.
 */
#ifndef STAT_CROSSOVER_H
#define STAT_CROSSOVER_H

#include <stddef.h>

enum { CROSSOVER_MAX = 256 }; /* points of one curve */
#define CROSSOVER_RESIDUAL 0.02 /* a line within 2 % of every point is believed */

/* First x at which the non-decreasing fit through (x[i], y[i]) reaches zero, linear between
 * points. x ascends, n <= CROSSOVER_MAX. NaN when n = 0. */
double crossover_rise(const double *x, const double *y, size_t n);

/* How the cost of a sweep depends on its step count: a line a + b*steps where that fits within 2 %,
 * else linear pieces through the isotonic fit. */
struct crossover_cost {
    int line;        /* 1: a, b hold; 0: pieces */
    double a, b;
    double residual; /* largest |cost - (a + b*steps)| / cost; NaN below 3 points */
    size_t n;
    double steps[CROSSOVER_MAX], cost[CROSSOVER_MAX]; /* the points; isotonic when pieces */
};
/* line: 1 or 0 forces the form (bootstrap draws use that of the measured values); -1 decides it. */
void crossover_fit(struct crossover_cost *c, const double *steps, const double *cost, size_t n,
                   int line);
/* Step count at which the cost reaches `level`: below it the sweep is cheaper. */
double crossover_cost_meets(const struct crossover_cost *c, double level);

/* Model-free: the last point below zero before the first at or above it. below NaN: none is
 * below; above NaN: none is above. Reads the points as they are, from the left. */
void crossover_bracket(const double *x, const double *y, size_t n, double *below, double *above);

/* Step counts to add between lo and hi so that no gap is wider than so many octaves (factors of
 * two): evenly in log2, rounded. out[] holds at most max. Returns how many. */
size_t crossover_between(double lo, double hi, double octaves, double *out, size_t max);

#endif
