/* attainment.h - what a set of points achieves, as a curve and as a number. Cost: lower is better;
 * good: higher is better; a point with a NaN counts for nothing. Over bootstrap draws the quantiles
 * of attainment_best() at a budget are the attainment surfaces of the set, and those of
 * attainment_volume() the interval of its hypervolume.
 *
 * Source: Grunert da Fonseca, Fonseca, Hall, EMO 2001 (attainment); Zitzler, Thiele, PPSN 1998
 * (hypervolume).
 */
#ifndef STAT_ATTAINMENT_H
#define STAT_ATTAINMENT_H

#include <stddef.h>

/* The best quality of the points that cost no more than the budget; -INFINITY: there is none. */
double attainment_best(const double *cost, const double *good, size_t n, double budget);

/* The corners that volumes are measured against: nothing outside them counts. */
struct attainment_box { double cost_best, cost_worst, good_best, good_worst; };

/* Share of the box that the points dominate, with cost on a logarithmic scale: 0 to 1. NaN: the box
 * is empty, or a cost in it is not positive. on[n], order[n] are work. O(n log n) and the square of
 * how many are on the front. */
double attainment_volume(const double *cost, const double *good, size_t n,
                         const struct attainment_box *box, unsigned char *on, size_t *order);

#endif
