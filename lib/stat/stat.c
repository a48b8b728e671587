/* stat.c - sums, intervals and lines; see stat.h.
 *
 * One special function gives all intervals: the regularised incomplete beta I_x(a, b). Student's
 * distribution and the binomial distribution (for ranks of order statistics) are values of it, so
 * both are exact at any n without tables. */
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

/* qsort, unless x is sorted already. */
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
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m < 10000; m++) {
        double k = m, even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
        double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
        double step = 1;
        for (int half = 0; half < 2; half++) {
            double t = half ? odd : even;
            d = 1 + t * d;
            c = 1 + t / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            f *= step;
        }
        if (fabs(step - 1) < 1e-15)
            break;
    }
    return f;
}

/* I_x(a, b), a and b > 0. */
static double beta_inc(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* P(T > t), t >= 0, of Student's distribution. */
static double t_tail(double t, double df)
{
    if (isinf(df))
        return 0.5 * erfc(t / sqrt(2));
    return 0.5 * beta_inc(df / 2, 0.5, df / (df + t * t));
}

double stat_t_quantile(double p, double df)
{
    if (!(p > 0 && p < 1) || !(df > 0))
        return NAN;
    double tail = p < 0.5 ? p : 1 - p, lo = 0, hi = 1;
    while (t_tail(hi, df) > tail && hi < 1e300)
        hi *= 2;
    for (int i = 0; i < 200 && hi - lo > 1e-15 * hi; i++) {
        double mid = lo + (hi - lo) / 2;
        if (t_tail(mid, df) > tail)
            lo = mid;
        else
            hi = mid;
    }
    double t = lo + (hi - lo) / 2;
    return p < 0.5 ? -t : t;
}

double stat_t_outside(double t, double df)
{
    return fmin(1, 2 * t_tail(fabs(t), df));
}

/* P(B <= k) for B binomial(n, q). */
static double binomial_below(double k, double n, double q)
{
    if (k < 0)
        return 0;
    return k >= n ? 1 : beta_inc(n - k, k + 1, 1 - q);
}

/* Smallest k in 0..n with P(B <= k) >= p. */
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

struct interval stat_quantile(double *x, size_t n, double q, double level)
{
    struct interval v = {NAN, NAN, NAN};
    if (!n)
        return v;
    assert(q > 0 && q < 1 && level > 0 && level < 1);
    sort(x, n);
    v.value = interpolate(x, n, q);
    /* Ranks l..u (1-based) hold the quantile when l <= B < u: coverage P(B <= u-1) - P(B <= l-1).
     * Equal tails first; where one end is clipped by the sample, the other gives way. */
    double count = (double)n, tail = (1 - level) / 2;
    double l = binomial_rank(tail, count, q), u = binomial_rank(1 - tail, count, q) + 1;
    if (binomial_below(l, count, q) <= tail)
        l++;
    l = l < 1 ? 1 : l;
    u = u > count ? count : u;
    while (l > 1 && binomial_below(u - 1, count, q) - binomial_below(l - 1, count, q) < level)
        l--;
    while (u < count && binomial_below(u - 1, count, q) - binomial_below(l - 1, count, q) < level)
        u++;
    if (binomial_below(u - 1, count, q) - binomial_below(l - 1, count, q) < level)
        return v;
    v.lo = x[(size_t)l - 1];
    v.hi = x[(size_t)u - 1];
    return v;
}

struct interval stat_t(const double *x, size_t n, double level)
{
    struct interval v = {stat_mean(x, n), NAN, NAN};
    if (n < 2)
        return v;
    double half = stat_t_quantile(0.5 + level / 2, (double)(n - 1)) * stat_sd(x, n) /
                  sqrt((double)n);
    v.lo = v.value - half;
    v.hi = v.value + half;
    return v;
}

struct interval stat_log_t(double *x, size_t n, double level)
{
    struct interval v = {stat_mean(x, n), NAN, NAN};
    size_t same = 0, sound = 0;
    for (size_t i = 0; i < n; i++) {
        sound += x[i] > 0 && !isinf(x[i]);
        same += x[i] >= x[0] && x[i] <= x[0];
    }
    if (!n || sound < n)
        return v;
    double first = x[0];
    for (size_t i = 0; i < n; i++)
        x[i] = log(x[i]);
    v = stat_t(x, n, level);
    if (same < n)
        return (struct interval){exp(v.value), exp(v.lo), exp(v.hi)};
    return (struct interval){first, n < 2 ? NAN : first, n < 2 ? NAN : first};
}

void stat_slope(const double *x, size_t n, double *slope, double *se)
{
    *slope = *se = NAN;
    if (n < 2)
        return;
    double mid = (double)(n - 1) / 2, mean = stat_mean(x, n), sxy = 0, sxx = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        double t = (double)i - mid;
        sxy += t * (x[i] - mean);
        sxx += t * t;
    }
    *slope = sxy / sxx;
    for (size_t i = 0; i < n; i++) {
        double r = x[i] - mean - *slope * ((double)i - mid);
        rest += r * r;
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

/* The line of least absolute deviations among those through point i: its slope is the median of
 * the slopes to the other points, each weighted by its distance in x. NaN: no other x. */
static double best_slope(const double *x, const double *y, size_t n, size_t i)
{
    struct ray ray[LINE_MAX_POINTS];
    size_t m = 0;
    double total = 0, sum = 0;
    for (size_t j = 0; j < n; j++) {
        double dx = x[j] - x[i];
        if (dx == 0) /* exact: the same x */
            continue;
        ray[m++] = (struct ray){(y[j] - y[i]) / dx, fabs(dx)};
        total += fabs(dx);
    }
    if (!m)
        return NAN;
    qsort(ray, m, sizeof *ray, compare_rays);
    for (size_t j = 0; j < m; j++)
        if ((sum += ray[j].weight) >= total / 2)
            return ray[j].slope;
    return ray[m - 1].slope;
}

void stat_line(const double *x, const double *y, size_t n, double *a, double *b)
{
    assert(n <= LINE_MAX_POINTS);
    double best = INFINITY;
    *a = *b = NAN;
    for (size_t i = 0; i < n; i++) { /* some best line passes through a point */
        double slope = best_slope(x, y, n, i), loss = 0;
        slope = isnan(slope) ? 0 : slope;
        for (size_t j = 0; j < n; j++)
            loss += fabs(y[j] - y[i] - slope * (x[j] - x[i]));
        if (loss < best) {
            best = loss;
            *b = slope;
            *a = y[i] - slope * x[i];
        }
    }
}

void stat_isotonic(double *y, size_t n, double *work)
{
    double *weight = work, *end = work + n; /* of block k: weight, one past its last point */
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
    for (size_t i = n; i-- > 0;) { /* backwards: block k never lies after point i */
        if (blocks > 1 && (double)i < end[blocks - 2])
            blocks--;
        y[i] = y[blocks - 1];
    }
}
