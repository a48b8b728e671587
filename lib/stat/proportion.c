/* proportion.c - see proportion.h. A score interval holds every difference that a test of the same
 * level does not reject. The test statistic falls as the assumed difference grows, so each end is
 * found by bisection. */
#include "lib/stat/proportion.h"

#include <math.h>

struct proportion_pairs proportion_count(const double *first, const double *second, size_t n)
{
    struct proportion_pairs p = {.n = (double)n};
    for (size_t i = 0; i < n; i++) {
        p.first += fmax(first[i] - second[i], 0);
        p.second += fmax(second[i] - first[i], 0);
        p.at_first += first[i] > second[i];
        p.at_second += second[i] > first[i];
    }
    return p;
}

double proportion_mcnemar(const struct proportion_pairs *p)
{
    double n = p->at_first + p->at_second, less = fmin(p->at_first, p->at_second);
    double tail = 0;
    for (double k = 0; k <= less; k++)
        tail += exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2));
    return fmin(1, 2 * tail);
}

/* only_first: the maximum-likelihood probability that only the first is right, given d. */
double proportion_above(const struct proportion_pairs *p, double d)
{
    double a = 2 * p->n, b = (2 * p->n - p->second + p->first) * d - p->second - p->first;
    double c = -p->first * d * (1 - d);
    double only_first = (sqrt(fmax(0, b * b - 4 * a * c)) - b) / (2 * a);
    double variance = p->n * (2 * only_first + d * (1 - d));
    double above = p->second - p->first - p->n * d;
    return variance > 0 ? above / sqrt(variance) : above > 0 ? INFINITY : -INFINITY;
}

/* The difference between lo and hi at which the score equals z. */
static double solve(const struct proportion_pairs *p, double lo, double hi, double z)
{
    for (int i = 0; i < 60; i++) {
        double mid = (lo + hi) / 2;
        *(proportion_above(p, mid) > z ? &lo : &hi) = mid;
    }
    return (lo + hi) / 2;
}

struct interval proportion_difference(const struct proportion_pairs *p, double level)
{
    struct interval v = {NAN, NAN, NAN};
    double z = stat_t_quantile(0.5 + level / 2, INFINITY);
    if (!(p->n > 0))
        return v;
    v.value = (p->second - p->first) / p->n;
    v.lo = solve(p, -1, v.value, z);
    v.hi = solve(p, v.value, 1, -z);
    return v;
}
