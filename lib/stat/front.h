/* front.h - the Pareto front of points with a cost (lower is better) and a quality (higher is
 * better). A point is on the front unless another point is no worse in both and better in one.
 * There is no tolerance: equal points are on the front together or not at all. */
#pragma once

#include <stddef.h>

/* Sets on[i] to 1 if point i is on the front, else to 0. A point with a NaN is not on the front and
 * dominates no point. -0 equals 0. order[n] is work. Time: O(n log n). */
void front_mark(const double *cost, const double *quality, size_t n, unsigned char *on,
                size_t *order);
