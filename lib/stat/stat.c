/* stat.c - sums, intervals and lines; see stat.h.
 *
 * One special function gives all intervals: the regularised incomplete beta I_x(a, b). Student's
 * distribution and the binomial distribution (for ranks of order statistics) are computed from it,
 * so both are exact at any n without tables. */
#include "lib/stat/stat.h"
#include "lib/base/order.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

double stat_sum(const double *x, size_t n)
{
    double sum = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        double t = sum + x[i];
        lost += fabs(sum) >= fabs(x[i]) ? (sum - t) + x[i] : (x[i] - t) + sum;
        sum = t;
    }
    return sum + lost;
}

double stat_mean(const double *x, size_t n)
{
    return n ? stat_sum(x, n) / (double)n : NAN;
}

double stat_sd(const double *x, size_t n)
{
    if (n < 2)
        return NAN;
    double mean = stat_mean(x, n), sum = 0, lost = 0;
    for (size_t i = 0; i < n; i++) { /* Kahan: all terms are >= 0 */
        double y = (x[i] - mean) * (x[i] - mean) - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    return sqrt(sum / (double)(n - 1));
}

/* Quantile q of sorted x by type 7 of Hyndman and Fan: linear between ranks. */
static double interpolate(const double *x, size_t n, double q)
{
    double place = q * (double)(n - 1);
    size_t i = (size_t)place;
    if (i + 1 >= n)
        return x[n - 1];
    return x[i] + (place - (double)i) * (x[i + 1] - x[i]);
}

/* Sorts x; skips qsort() if x is sorted already. */
static void sort(double *x, size_t n)
{
    size_t i = 1;
    while (i < n && x[i - 1] <= x[i])
        i++;
    if (i < n)
        qsort(x, n, sizeof *x, order_reals);
}

double stat_median(double *x, size_t n)
{
    if (!n)
        return NAN;
    sort(x, n);
    return interpolate(x, n, 0.5);
}

/* Continued fraction of the incomplete beta, by Lentz's method. Source: DLMF 8.17.22. */
static double beta_fraction(double alpha, double beta, double x)
{
    const double tiny = 1e-300;
    double upper = 1, lower = 1 - (alpha + beta) * x / (alpha + 1);
    lower = 1 / (fabs(lower) < tiny ? tiny : lower);
    double product = lower;
    for (int term = 1; term < 10000; term++) {
        double k = term, even = k * (beta - k) * x / ((alpha + 2 * k - 1) * (alpha + 2 * k));
        double odd = -(alpha + k) * (alpha + beta + k) * x /
                     ((alpha + 2 * k) * (alpha + 2 * k + 1));
        double step = 1;
        for (int half = 0; half < 2; half++) {
            double change = half ? odd : even;
            lower = 1 + change * lower;
            upper = 1 + change / upper;
            lower = 1 / (fabs(lower) < tiny ? tiny : lower);
            upper = fabs(upper) < tiny ? tiny : upper;
            step = upper * lower;
            product *= step;
        }
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return product;
}

/* The regularised incomplete beta I_x(a, b), a and b > 0. */
static double beta_inc(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* P(T > t), t >= 0, for T with Student's distribution. */
static double t_tail(double t, double df)
{
    if (isinf(df))
        return 0.5 * erfc(t / sqrt(2));
    return 0.5 * beta_inc(df / 2, 0.5, df / (df + t * t));
}

double stat_t_quantile(double chance, double df)
{
    if (!(chance > 0 && chance < 1) || !(df > 0))
        return NAN;
    double tail = chance < 0.5 ? chance : 1 - chance, lo = 0, hi = 1;
    while (t_tail(hi, df) > tail && hi < 1e300)
        hi *= 2;
    for (int i = 0; i < 200 && hi - lo > 1e-15 * hi; i++) {
        double mid = lo + (hi - lo) / 2;
        if (t_tail(mid, df) > tail)
            lo = mid;
        else
            hi = mid;
    }
    double middle = lo + (hi - lo) / 2;
    return chance < 0.5 ? -middle : middle;
}

double stat_t_outside(double t, double df)
{
    return fmin(1, 2 * t_tail(fabs(t), df));
}

/* P(B <= k) for a binomial B with n trials of chance q. */
static double binomial_below(double k, double n, double q)
{
    if (k < 0)
        return 0;
    return k >= n ? 1 : beta_inc(n - k, k + 1, 1 - q);
}

/* The smallest k in 0..n with P(B <= k) >= p, for B as in binomial_below(). */
static double binomial_rank(double p, double n, double q)
{
    double lo = 0, hi = n;
    while (lo < hi) {
        double mid = floor((lo + hi) / 2);
        if (binomial_below(mid, n, q) >= p)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

struct interval stat_quantile(double *x, size_t n, double share, double level)
{
    struct interval interval = {NAN, NAN, NAN};
    if (!n)
        return interval;
    assert(share > 0 && share < 1 && level > 0 && level < 1);
    sort(x, n);
    interval.value = interpolate(x, n, share);
    /* B: how many of the n values lie below the quantile, binomial(n, share). The values of ranks
     * lower..upper (from 1) enclose the quantile if lower <= B < upper. So the interval holds with
     * probability P(B < upper) - P(B < lower). Both tails are equal at first. If an end lies
     * outside the sample it is cut, and the other end moves until `level` is reached. */
    double count = (double)n, tail = (1 - level) / 2;
    double lower = binomial_rank(tail, count, share),
           upper = binomial_rank(1 - tail, count, share) + 1;
    if (binomial_below(lower, count, share) <= tail)
        lower++;
    lower = lower < 1 ? 1 : lower;
    upper = upper > count ? count : upper;
    while (lower > 1 &&
           binomial_below(upper - 1, count, share) - binomial_below(lower - 1, count, share) <
               level)
        lower--;
    while (upper < count &&
           binomial_below(upper - 1, count, share) - binomial_below(lower - 1, count, share) <
               level)
        upper++;
    if (binomial_below(upper - 1, count, share) - binomial_below(lower - 1, count, share) < level)
        return interval;
    interval.lo = x[(size_t)lower - 1];
    interval.hi = x[(size_t)upper - 1];
    return interval;
}

struct interval stat_t(const double *x, size_t n, double level)
{
    struct interval interval = {stat_mean(x, n), NAN, NAN};
    if (n < 2)
        return interval;
    double half = stat_t_quantile(0.5 + level / 2, (double)(n - 1)) * stat_sd(x, n) /
                  sqrt((double)n);
    interval.lo = interval.value - half;
    interval.hi = interval.value + half;
    return interval;
}

struct interval stat_log_t(double *x, size_t n, double level)
{
    struct interval interval = {stat_mean(x, n), NAN, NAN};
    size_t same = 0, sound = 0;
    for (size_t i = 0; i < n; i++) {
        sound += x[i] > 0 && !isinf(x[i]);
        same += x[i] >= x[0] && x[i] <= x[0];
    }
    if (!n || sound < n)
        return interval;
    double first = x[0];
    for (size_t i = 0; i < n; i++)
        x[i] = log(x[i]);
    interval = stat_t(x, n, level);
    if (same < n)
        return (struct interval){exp(interval.value), exp(interval.lo), exp(interval.hi)};
    return (struct interval){first, n < 2 ? NAN : first, n < 2 ? NAN : first};
}

void stat_slope(const double *x, size_t n, double *slope, double *se)
{
    *slope = *se = NAN;
    if (n < 2)
        return;
    double mid = (double)(n - 1) / 2, mean = stat_mean(x, n), sxy = 0, sxx = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        double time = (double)i - mid;
        sxy += time * (x[i] - mean);
        sxx += time * time;
    }
    *slope = sxy / sxx;
    for (size_t i = 0; i < n; i++) {
        double off = x[i] - mean - *slope * ((double)i - mid);
        rest += off * off;
    }
    if (n > 2)
        *se = sqrt(rest / (double)(n - 2) / sxx);
}

enum { LINE_MAX_POINTS = 4096 };
struct ray { double slope, weight; };

static int compare_rays(const void *a, const void *b)
{
    const struct ray *x = a, *y = b;
    if (x->slope != y->slope) /* exact: sorting */
        return x->slope < y->slope ? -1 : 1;
    return (x->weight > y->weight) - (x->weight < y->weight);
}

/* The slope of the line of least absolute deviations among all lines through point i: the median of
 * the slopes to the other points, each weighted by its distance in x. NaN: all points have the x of
 * point i. */
static double best_slope(const double *x, const double *y, size_t n, size_t i)
{
    struct ray ray[LINE_MAX_POINTS];
    size_t rays = 0;
    double total = 0, sum = 0;
    for (size_t j = 0; j < n; j++) {
        double dx = x[j] - x[i];
        if (dx == 0) /* exact: the same x */
            continue;
        ray[rays++] = (struct ray){(y[j] - y[i]) / dx, fabs(dx)};
        total += fabs(dx);
    }
    if (!rays)
        return NAN;
    qsort(ray, rays, sizeof *ray, compare_rays);
    for (size_t j = 0; j < rays; j++)
        if ((sum += ray[j].weight) >= total / 2)
            return ray[j].slope;
    return ray[rays - 1].slope;
}

void stat_line(const double *x, const double *y, size_t n, double *at_zero, double *per_unit)
{
    assert(n <= LINE_MAX_POINTS);
    double best = INFINITY;
    *at_zero = *per_unit = NAN;
    for (size_t i = 0; i < n; i++) { /* some best line passes through a point */
        double slope = best_slope(x, y, n, i), loss = 0;
        slope = isnan(slope) ? 0 : slope;
        for (size_t j = 0; j < n; j++)
            loss += fabs(y[j] - y[i] - slope * (x[j] - x[i]));
        if (loss < best) {
            best = loss;
            *per_unit = slope;
            *at_zero = y[i] - slope * x[i];
        }
    }
}

void stat_isotonic(double *y, size_t n, double *work)
{
    double *weight = work, *end = work + n; /* of each block: its weight, one past its last point */
    size_t blocks = 0;
    for (size_t i = 0; i < n; i++) {
        y[blocks] = y[i];
        weight[blocks] = 1;
        end[blocks++] = (double)(i + 1);
        while (blocks > 1 && y[blocks - 2] > y[blocks - 1]) {
            size_t k = blocks - 2;
            double sum = weight[k] + weight[k + 1];
            y[k] += (y[k + 1] - y[k]) * (weight[k + 1] / sum);
            weight[k] = sum;
            end[k] = end[k + 1];
            blocks--;
        }
    }
    /* Backwards, because y[k] holds the value of block k, which begins at point k or later. */
    for (size_t i = n; i-- > 0;) {
        if (blocks > 1 && (double)i < end[blocks - 2])
            blocks--;
        y[i] = y[blocks - 1];
    }
}
