/* trend.h - straight lines by least squares. */
#pragma once

#include <stddef.h>

/* The line y = at + slope x; [lo, hi] is the interval of the slope. `at` has the unit of y; slope,
 * lo and hi have the unit of y / x. */
struct trend { double at, slope, lo, hi; };

/* slope = sum (x - mean x)(y - mean y) / sum (x - mean x)^2; the interval by Student's t with n - 2
 * degrees of freedom at the two-sided `level` (0.95). Given logarithms, the slope is the exponent
 * of a power law. slope NaN: fewer than two different x; lo, hi NaN: fewer than three points.
 * Source: Draper, Smith, Applied Regression Analysis (1998), chapter 1. */
struct trend trend_fit(const double *x, const double *y, size_t n, double level);
