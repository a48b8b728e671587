/* stat.h - numbers about numbers. Every interval is 95 % unless said. Sums are compensated and
 * inputs are sorted first, so the order of records never changes a digit. Nothing allocates: `work`
 * is scratch of the stated size.
 */
#ifndef STAT_STAT_H
#define STAT_STAT_H

#include <stddef.h>
#include <stdint.h>

struct interval { double value, lo, hi; }; /* lo, hi NaN: undefined for this n */

double stat_sum(const double *x, size_t n);   /* Neumaier's compensated sum */
double stat_mean(const double *x, size_t n);
double stat_sd(const double *x, size_t n);    /* n - 1 in the denominator; NaN below 2 */
double stat_median(double *x, size_t n);      /* sorts x */
/* Quantile q with the distribution-free order-statistic interval (binomial ranks). NaN ends when n
 * is too small: median n < 6, p90 n < 29, p95 n < 59, p99 n < 299. Sorts x.
 * Source: Conover, Practical Nonparametric Statistics, 3rd ed., 3.2. */
struct interval stat_quantile(double *x, size_t n, double q, double level);
/* Mean with Student's t interval; NaN ends below 2. For launch means. */
struct interval stat_t(const double *x, size_t n, double level);
/* The same on the scale of logarithms: the geometric mean, and an interval that stays above nought.
 * Where a value is not above nought: the mean without an interval. Equal values are their own mean,
 * to the last bit. x becomes its logarithms. */
struct interval stat_log_t(double *x, size_t n, double level);
double stat_t_quantile(double p, double df); /* df INFINITY: the normal distribution */
double stat_t_outside(double t, double df);  /* P(|T| > |t|) */
/* Least-squares slope of x against 0..n-1 and its standard error (steady-state test). */
void stat_slope(const double *x, size_t n, double *slope, double *se);
/* Least-absolute-deviations line y = a + b x (exact, by weighted medians over pairs; n <= 4096). */
void stat_line(const double *x, const double *y, size_t n, double *a, double *b);
/* Non-decreasing weighted isotonic fit (pool adjacent violators), in place. w NULL: all one.
 * work[2 n]. */
void stat_isotonic(double *y, const double *w, size_t n, double *work);

#endif
