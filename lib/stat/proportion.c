/* proportion.c - see proportion.h. A score interval contains every difference that a test of the
 * same level does not reject. The test statistic falls as the assumed difference grows, so each end
 * is found by bisection. */
#include "lib/stat/proportion.h"

#include <math.h>

struct proportion_pairs proportion_count(const double *first, const double *second, size_t n)
{
    struct proportion_pairs pairs = {.n = (double)n};
    for (size_t i = 0; i < n; i++) {
        pairs.first += fmax(first[i] - second[i], 0);
        pairs.second += fmax(second[i] - first[i], 0);
        pairs.at_first += first[i] > second[i];
        pairs.at_second += second[i] > first[i];
    }
    return pairs;
}

double proportion_mcnemar(const struct proportion_pairs *pairs)
{
    double n = pairs->at_first + pairs->at_second, less = fmin(pairs->at_first, pairs->at_second);
    double tail = 0;
    for (double k = 0; k <= less; k++)
        tail += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
    return fmin(1, 2 * tail);
}

/* only_first: the maximum-likelihood probability that only the first is right, if the difference is
 * d. It is the larger root of a x^2 + b x + c = 0. Source: Tango 1998. */
double proportion_above(const struct proportion_pairs *pairs, double d)
{
    double a = 2 * pairs->n,
           b = (2 * pairs->n - pairs->second + pairs->first) * d - pairs->second - pairs->first;
    double c = -pairs->first * d * (1 - d);
    double only_first = (sqrt(fmax(0, b * b - 4 * a * c)) - b) / (2 * a);
    double variance = pairs->n * (2 * only_first + d * (1 - d));
    double above = pairs->second - pairs->first - pairs->n * d;
    return variance > 0 ? above / sqrt(variance) : above > 0 ? INFINITY : -INFINITY;
}

/* The difference between lo and hi at which the score equals z. */
static double solve(const struct proportion_pairs *pairs, double lo, double hi, double z)
{
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        *(proportion_above(pairs, mid) > z ? &lo : &hi) = mid;
    }
    return (lo + hi) / 2;
}

struct interval proportion_difference(const struct proportion_pairs *pairs, double level)
{
    struct interval interval = {NAN, NAN, NAN};
    double z = stat_t_quantile(0.5 + level / 2, INFINITY);
    if (!(pairs->n > 0))
        return interval;
    interval.value = (pairs->second - pairs->first) / pairs->n;
    interval.lo = solve(pairs, -1, interval.value, z);
    interval.hi = solve(pairs, interval.value, 1, -z);
    return interval;
}
