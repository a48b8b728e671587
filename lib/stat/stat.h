/* stat.h - sums, quantiles, intervals and lines. Sums are compensated, so their rounding error does
 * not grow with n; a caller whose values come in any order sorts them first. No function allocates:
 * `work` is scratch of the stated size. Results have the unit of x. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct interval { double value, lo, hi; }; /* lo, hi NaN: undefined for this n */

/* Source: Neumaier 1974 (compensated sum). */
double stat_sum(const double *x, size_t n);
double stat_mean(const double *x, size_t n);  /* sum x / n; NaN: n = 0 */
double stat_sd(const double *x, size_t n);    /* sqrt(sum (x - mean)^2 / (n - 1)); NaN below 2 */
double stat_median(double *x, size_t n);      /* sorts x; NaN: n = 0 */
/* Quantile `share` by type 7 of Hyndman and Fan, with the distribution-free interval between order
 * statistics (binomial ranks). lo, hi are NaN if n is too small; at level 0.95: median n < 6, p90
 * n < 29, p95 n < 59, p99 n < 299. Sorts x.
 * Source: Conover, Practical Nonparametric Statistics, 3rd ed., 3.2. */
struct interval stat_quantile(double *x, size_t n, double share, double level);
/* mean +- t sd / sqrt(n); t: the two-sided quantile of `level` with n - 1 degrees of freedom. lo,
 * hi are NaN if n < 2. */
struct interval stat_t(const double *x, size_t n, double level);
/* exp of stat_t() of log x: the geometric mean and an interval above zero. If a value is not above
 * zero, the result is the arithmetic mean without an interval. If all values are equal, the result
 * is exactly their value. x is replaced by its logarithms. */
struct interval stat_log_t(double *x, size_t n, double level);
/* Quantile `chance` of Student's t distribution; df INFINITY: of the normal distribution. */
double stat_t_quantile(double chance, double df);
double stat_t_outside(double t, double df);  /* P(|T| > |t|) */
/* Least-squares slope of x against 0..n-1 and its standard error. */
void stat_slope(const double *x, size_t n, double *slope, double *se);
/* The line y = at_zero + per_unit x of least absolute deviations. It is exact: weighted medians of
 * the slopes between pairs of points. n <= 4096. */
void stat_line(const double *x, const double *y, size_t n, double *at_zero, double *per_unit);
/* The non-decreasing fit of y[n] that minimizes sum (y - fit)^2, in place. work[2 n].
 * Source: Barlow et al. 1972 (pool adjacent violators). */
void stat_isotonic(double *y, size_t n, double *work);
