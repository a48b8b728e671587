/* crossover.c - where monotone curves meet a level; see crossover.h. Quality and cost rise with
 * steps. Both curves are made monotone before a crossing is sought, so that one noisy dip makes no
 * second crossing. */
#include "lib/stat/crossover.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "lib/stat/stat.h"

/* The first x where the non-decreasing y reaches zero, linear between points. */
static double find_zero(const double *x, const double *y, size_t n)
{
    if (!n)
        return NAN;
    if (y[0] > 0)
        return -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (y[i] < 0)
            continue;
        if (i == 0 || !(y[i] > 0)) /* met exactly at a point */
            return x[i];
        return x[i - 1] + (x[i] - x[i - 1]) * (y[i - 1] / (y[i - 1] - y[i]));
    }
    return INFINITY;
}

double crossover_rise(const double *x, const double *y, size_t n)
{
    double fit[CROSSOVER_MAX], work[2 * CROSSOVER_MAX];
    assert(n <= CROSSOVER_MAX);
    memcpy(fit, y, n * sizeof *y);
    stat_isotonic(fit, n, work);
    return find_zero(x, fit, n);
}

static double line_residual(const struct crossover_cost *cost)
{
    double worst = 0;
    for (size_t i = 0; i < cost->n; i++)
        worst = fmax(worst, fabs(cost->cost[i] - cost->a - cost->b * cost->steps[i]) /
                                fabs(cost->cost[i]));
    return worst;
}

void crossover_fit(struct crossover_cost *crossover_cost, const double *steps, const double *cost,
                   size_t n, int line)
{
    double work[2 * CROSSOVER_MAX];
    assert(n <= CROSSOVER_MAX);
    crossover_cost->n = n;
    memcpy(crossover_cost->steps, steps, n * sizeof *steps);
    memcpy(crossover_cost->cost, cost, n * sizeof *cost);
    stat_line(steps, cost, n, &crossover_cost->a, &crossover_cost->b);
    crossover_cost->residual = n > 2 ? line_residual(crossover_cost) : NAN;
    int fits = n > 1 && crossover_cost->b > 0 && !(crossover_cost->residual > CROSSOVER_RESIDUAL);
    crossover_cost->line = line < 0 ? fits : line && n > 1 && crossover_cost->b > 0;
    if (!crossover_cost->line)
        stat_isotonic(crossover_cost->cost, n, work);
}

double crossover_cost_meets(const struct crossover_cost *cost, double level)
{
    if (!cost->n || isnan(level))
        return NAN;
    if (cost->line) {
        double at = (level - cost->a) / cost->b;
        return at < cost->steps[0] ? -INFINITY : at > cost->steps[cost->n - 1] ? INFINITY : at;
    }
    double over[CROSSOVER_MAX];
    for (size_t i = 0; i < cost->n; i++)
        over[i] = cost->cost[i] - level;
    return find_zero(cost->steps, over, cost->n);
}

void crossover_bracket(const double *x, const double *y, size_t n, double *below, double *above)
{
    *below = *above = NAN;
    for (size_t i = 0; i < n; i++) {
        if (y[i] >= 0) {
            *above = x[i];
            return;
        }
        *below = x[i];
    }
}

size_t crossover_between(double lo, double hi, double octaves, double *out, size_t max)
{
    double wide = log2(hi / lo);
    if (!(wide > octaves))
        return 0;
    size_t pieces = (size_t)ceil(wide / octaves - 1e-9), n = 0;
    for (size_t i = 1; i < pieces && n < max; i++) {
        double steps = round(lo * exp2(wide * (double)i / (double)pieces));
        if (steps > lo && steps < hi && (n == 0 || steps > out[n - 1]))
            out[n++] = steps;
    }
    return n;
}
