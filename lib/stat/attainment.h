/* attainment.h - the Pareto performance of a set of points, as a curve and as a number. Lower cost
 * and higher `good` are better. A point with a NaN is ignored. Over bootstrap draws, the quantiles
 * of attainment_best() at a budget are the attainment surfaces of the set; the quantiles of
 * attainment_volume() are the interval of its hypervolume.
 *
 * Source: Grunert da Fonseca, Fonseca, Hall, EMO 2001 (attainment); Zitzler, Thiele, PPSN 1998
 * (hypervolume).
 */
#ifndef STAT_ATTAINMENT_H
#define STAT_ATTAINMENT_H

#include <stddef.h>

/* max good[i] over the points with cost[i] <= budget; -INFINITY: there is none. */
double attainment_best(const double *cost, const double *good, size_t n, double budget);

/* The reference corners of a volume; what lies outside them does not count. */
struct attainment_box { double cost_best, cost_worst, good_best, good_worst; };

/* Share of the box, 0 to 1, that the points dominate: area over x = log(cost / cost_best) /
 * log(cost_worst / cost_best) and y = (good - good_worst) / (good_best - good_worst). NaN: the box
 * is empty or a cost of it is not positive. on[n], order[n] are work. Time: O(n log n + f^2) for f
 * points on the front. */
double attainment_volume(const double *cost, const double *good, size_t n,
                         const struct attainment_box *box, unsigned char *on, size_t *order);

#endif
