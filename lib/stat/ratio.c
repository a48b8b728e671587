/* ratio.c - see ratio.h. Paired and independent launches both give a mean log ratio, its standard
 * error and its degrees of freedom. judge() makes the interval and p from these three numbers. */
#include "lib/stat/ratio.h"

#include <math.h>
#include <stdint.h>

static const double AIM = 0.8; /* share of the goal to aim at: aiming at 1 would stop by luck */

static int are_pairs(const struct launch_value *a, size_t n_a, const struct launch_value *b,
                     size_t n_b)
{
    int pairs = n_a == n_b;
    for (size_t i = 0; i < n_a && pairs; i++) {
        int64_t from = a[i].launch < b[i].launch ? a[i].launch : b[i].launch;
        pairs = (uint64_t)a[i].launch - (uint64_t)from + ((uint64_t)b[i].launch - (uint64_t)from)
                <= 1;
    }
    return pairs;
}

/* The logarithms of the values. Returns 0 if a value has none. */
static int logs(const struct launch_value *value, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        if (!(value[i].value > 0) || isinf(value[i].value))
            return 0;
        out[i] = log(value[i].value);
    }
    return 1;
}

/* The standard error of mean y - mean x for independent samples, and its degrees of freedom by
 * Welch and Satterthwaite. */
static void welch(const double *x, size_t n, const double *y, size_t m, double *se, double *df)
{
    double u = pow(stat_sd(x, n), 2) / (double)n, v = pow(stat_sd(y, m), 2) / (double)m;
    *se = sqrt(u + v);
    *df = (u + v) * (u + v) / (u * u / (double)(n - 1) + v * v / (double)(m - 1));
    if (!(u + v > 0))
        *df = (double)(n + m - 2);
}

static void judge(struct ratio *ratio, double mean, double se, double df)
{
    double half = stat_t_quantile(0.5 + ratio->level / 2, df) * se;
    ratio->lo = exp(mean - half);
    ratio->hi = exp(mean + half);
    ratio->half = half;
    ratio->p = se > 0 ? stat_t_outside(mean / se, df) : fabs(mean) > 0 ? 0 : 1;
    ratio->reason = NULL;
}

struct ratio ratio_of(const struct launch_value *base, size_t n_a,
                      const struct launch_value *point, size_t n_b, double level, double *work)
{
    struct ratio ratio = RATIO_NOTHING;
    ratio.level = level;
    ratio.launches = n_a < n_b ? n_a : n_b;
    double *x = work, *y = work + n_a;
    ratio.paired = are_pairs(base, n_a, point, n_b);
    ratio.method = ratio.paired ? "mean log ratio of paired launches, t interval"
                                : "difference of mean logs of launches, Welch's t interval";
    ratio.reason = "no launches";
    if (!ratio.launches)
        return ratio;
    ratio.reason = "a launch without a value above 0";
    if (!logs(base, n_a, x) || !logs(point, n_b, y))
        return ratio;
    double mean = stat_mean(y, n_b) - stat_mean(x, n_a), se = NAN, df = NAN;
    if (ratio.paired) {
        for (size_t i = 0; i < n_a; i++)
            x[i] = y[i] - x[i];
        mean = stat_mean(x, n_a);
        ratio.sd = stat_sd(x, n_a);
        se = ratio.sd / sqrt((double)n_a);
        df = (double)(n_a - 1);
    } else if (ratio.launches > 1) {
        ratio.sd = hypot(stat_sd(x, n_a), stat_sd(y, n_b));
        welch(x, n_a, y, n_b, &se, &df);
    }
    ratio.value = exp(mean);
    ratio.reason = LAUNCH_FEW;
    if (ratio.launches >= LAUNCH_LEAST)
        judge(&ratio, mean, se, df);
    return ratio;
}

enum ratio_verdict ratio_verdict(const struct ratio *ratio, double zone)
{
    if (isnan(ratio->lo) || isnan(ratio->hi))
        return RATIO_UNDECIDED;
    if (ratio->lo * (1 + zone) >= 1 && ratio->hi <= 1 + zone)
        return RATIO_SAME;
    return ratio->lo > 1 ? RATIO_ABOVE : ratio->hi < 1 ? RATIO_BELOW : RATIO_UNDECIDED;
}

/* The half-width at n launches of each side, with the spread seen so far. */
static double half_width(const struct ratio *ratio, size_t n)
{
    double df = (double)(n - 1) * (ratio->paired ? 1 : 2);
    return stat_t_quantile(0.5 + ratio->level / 2, df) * ratio->sd / sqrt((double)n);
}

/* Launches of each side at which half_width() is `half` (on logarithms); from LAUNCH_LEAST to
 * RATIO_MOST. 0: the spread is not known. */
static size_t needed_for(const struct ratio *ratio, double half)
{
    if (isnan(ratio->sd) || !(half > 0))
        return 0;
    size_t lo = LAUNCH_LEAST, hi = RATIO_MOST;
    while (lo < hi) { /* the half-width falls with n */
        size_t mid = lo + (hi - lo) / 2;
        if (half_width(ratio, mid) <= half)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

size_t ratio_deciding(const struct ratio *ratio, double zone)
{
    double away = fabs(log(ratio->value));
    return needed_for(ratio, fmax(log1p(zone) - away, away));
}

size_t ratio_more(const struct ratio *ratio, double goal)
{
    size_t n = ratio->launches;
    if (n < LAUNCH_LEAST)
        return LAUNCH_LEAST - n;
    if (isnan(ratio->lo) || ratio->half <= (n < RATIO_SURE ? goal / 2 : goal))
        return 0; /* lo NaN: a value without a logarithm; more launches do not help */
    size_t needed = needed_for(ratio, AIM * goal);
    needed = needed < RATIO_SURE ? RATIO_SURE : needed;
    size_t more = needed > n ? needed - n : 1;
    return more < n ? more : n;
}

void ratio_holm(const double *p_value, size_t n, double *adjusted, size_t *order)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        adjusted[i] = NAN;
        size_t at = known;
        if (isnan(p_value[i]))
            continue;
        for (; at > 0 && p_value[order[at - 1]] > p_value[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
        known++;
    }
    double most = 0;
    for (size_t k = 0; k < known; k++) {
        most = fmax(most, fmin(1, p_value[order[k]] * (double)(known - k)));
        adjusted[order[k]] = most;
    }
}

/* Bonferroni: the chance that any of n intervals misses its value is at most the sum of the n
 * single chances. */
double ratio_level(double level, size_t n)
{
    return n > 1 ? 1 - (1 - level) / (double)n : level;
}
