/* fit.h - straight lines by least squares. */
#ifndef STAT_FIT_H
#define STAT_FIT_H

#include <stddef.h>

struct fit { double at, slope, lo, hi; }; /* y = at + slope x; Student's interval of the slope */

/* NaN slope: fewer than two places; NaN interval: fewer than three points. Of logarithms the slope
 * is the exponent of a power law. */
struct fit fit_line(const double *x, const double *y, size_t n, double level);

#endif
