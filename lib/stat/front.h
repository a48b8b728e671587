/* front.h - the Pareto front of points with a cost (lower is better) and a quality (higher is
 * better). A point is on the front unless another is no worse in both and better in one. Equal
 * points are on it together or not at all; there is no tolerance.
 */
#ifndef STAT_FRONT_H
#define STAT_FRONT_H

#include <stddef.h>

/* on[i] = 1 or 0. A point with a NaN is off and dominates nothing. -0 equals 0. order[n] is work.
 * O(n log n). */
void front_mark(const double *cost, const double *quality, size_t n, unsigned char *on,
                size_t *order);

#endif
