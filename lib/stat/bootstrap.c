/* bootstrap.c - draws and their percentiles; see bootstrap.h.
 *
 * Draw d starts a random stream of its own, named by d, so draws may be made in any order. The ends
 * of an interval are order statistics and never mixed from two draws, because one of the two may be
 * infinite.
 */
#include "lib/stat/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"

void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index)
{
    struct rng r = {.seed = seed, .stream = draw};
    for (size_t i = 0; i < n; i++)
        index[i] = (uint32_t)rng_below(&r, n);
}

double bootstrap_median(const double *sorted, const uint32_t *index, uint32_t *count, size_t n)
{
    memset(count, 0, n * sizeof *count);
    for (size_t i = 0; i < n; i++)
        count[index[i]]++;
    size_t low = (n - 1) / 2, high = n / 2, seen = 0, i = 0;
    while (seen + count[i] <= low)
        seen += count[i++];
    double a = sorted[i];
    while (seen + count[i] <= high)
        seen += count[i++];
    return a + (sorted[i] - a) / 2;
}

void bootstrap_cost(double value, const double *launches, size_t n_launch, const double *samples,
                    size_t n_sample, uint64_t seed, size_t draws, double *out, size_t stride,
                    uint32_t *work)
{
    for (size_t d = 0; d < draws; d++) {
        double cost = value;
        if (n_launch > 1) {
            bootstrap_draw(seed, d, n_launch, work);
            cost = 0;
            for (size_t i = 0; i < n_launch; i++)
                cost += launches[work[i]];
            cost /= (double)n_launch;
        } else if (n_sample > 1) {
            bootstrap_draw(seed, d, n_sample, work);
            cost = bootstrap_median(samples, work, work + n_sample, n_sample);
        }
        out[d * stride] = isnan(value) ? value : cost;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct interval bootstrap_interval(double value, double *draws, size_t n, double level)
{
    struct interval v = {value, NAN, NAN};
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(draws[i]))
            draws[m++] = draws[i];
    if (m < 40)
        return v;
    qsort(draws, m, sizeof *draws, compare);
    size_t cut = (size_t)floor((1 - level) / 2 * (double)m); /* draws outside each end */
    v.lo = draws[cut];
    v.hi = draws[m - 1 - cut];
    return v;
}

struct interval bootstrap_wilson(double hits, double n, double level)
{
    struct interval v = {NAN, NAN, NAN};
    if (!(n > 0))
        return v;
    double z = stat_t_quantile(0.5 + level / 2, INFINITY), p = hits / n, zz = z * z;
    double mid = (p + zz / (2 * n)) / (1 + zz / n);
    double half = z / (1 + zz / n) * sqrt(p * (1 - p) / n + zz / (4 * n * n));
    v.value = p;
    v.lo = hits <= 0 ? 0 : mid - half; /* exact at the two ends, where rounding would stray */
    v.hi = hits >= n ? 1 : mid + half;
    return v;
}
