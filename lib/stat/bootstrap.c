/* bootstrap.c - draws and their percentiles; see bootstrap.h.
 *
 * Each draw has its own random stream, so draws may be made in any order. The ends of an interval
 * are order statistics and are never interpolated, because a neighbouring draw may be infinite. */
#include "lib/stat/bootstrap.h"
#include "lib/base/order.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/rng.h"

void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index)
{
    struct rng rng = {.seed = seed, .stream = draw};
    for (size_t i = 0; i < n; i++)
        index[i] = (uint32_t)rng_below(&rng, n);
}

void bootstrap_sums(const double *rows, size_t width, const uint32_t *index, size_t n, double *sum)
{
    for (size_t k = 0; k < width; k++)
        sum[k] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++)
            sum[k] += rows[(index ? index[i] : i) * width + k];
}

struct interval bootstrap_interval(double value, double *draws, size_t n, double level)
{
    struct interval interval = {value, NAN, NAN};
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(draws[i]))
            draws[m++] = draws[i];
    if (m < 40)
        return interval;
    qsort(draws, m, sizeof *draws, order_reals);
    size_t cut = (size_t)floor((1 - level) / 2 * (double)m); /* draws outside each end */
    interval.lo = draws[cut];
    interval.hi = draws[m - 1 - cut];
    return interval;
}

struct interval bootstrap_wilson(double hits, double n, double level)
{
    struct interval interval = {NAN, NAN, NAN};
    if (!(n > 0))
        return interval;
    double z = stat_t_quantile(0.5 + level / 2, INFINITY), p = hits / n, zz = z * z;
    double mid = (p + zz / (2 * n)) / (1 + zz / n);
    double half = z / (1 + zz / n) * sqrt(p * (1 - p) / n + zz / (4 * n * n));
    interval.value = p;
    interval.lo = hits <= 0 ? 0 : mid - half; /* exactly 0 and 1: rounding would miss them */
    interval.hi = hits >= n ? 1 : mid + half;
    return interval;
}
