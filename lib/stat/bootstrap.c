/* bootstrap.c - draws and their percentiles; see bootstrap.h.
 *
 * Draw d starts a random stream of its own, named by d, so draws may be made in any order. The ends
 * of an interval are order statistics and never mixed from two draws, because one of the two may be
 * infinite.
 *
 * Most of the time of a tool that has intervals goes into drawing places and adding what stands
 * there. So places are made a block at a time, by a product in place of a division, and sums of
 * several columns are made side by side: each still adds its numbers in the order of the draw.
 */
#include "lib/stat/bootstrap.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/philox.h"
#include "lib/base/rng.h"

enum { BLOCK = 16, COLUMNS = 8 };

/* x % n, with most = UINT64_MAX / n. */
static uint32_t rest(uint64_t x, uint64_t n, uint64_t most)
{
    uint64_t low = (uint64_t)(__extension__(unsigned __int128)x * most >> 64); /* by 2 at most */
    uint64_t r = x - low * n;
    r -= r >= n ? n : 0;
    r -= r >= n ? n : 0;
    return (uint32_t)r;
}

/* What rng_below gives, one after the other. */
void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index)
{
    uint64_t x[BLOCK], most = UINT64_MAX / (n ? n : 1), limit = most * n; /* no uneven tail */
    for (uint64_t i = 0, next = 0; i < n; next += BLOCK) {
        for (uint64_t k = 0; k < BLOCK; k++)
            x[k] = philox_at(seed, next + k, draw);
        for (size_t k = 0; k < BLOCK && i < n; k++)
            if (x[k] < limit)
                index[i++] = rest(x[k], n, most);
    }
}

/* sum[from..from + columns - 1]; inlined, so that `columns` is known. */
static inline void add(const double *rows, size_t width, const uint32_t *index, size_t n,
                       double *sum, size_t from, const size_t columns)
{
    double s[COLUMNS] = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < columns; k++)
            s[k] += rows[(index ? index[i] : i) * width + from + k];
    for (size_t k = 0; k < columns; k++)
        sum[from + k] = s[k];
}

void bootstrap_sums(const double *rows, size_t width, const uint32_t *index, size_t n, double *sum)
{
    size_t k = 0;
    for (; k + COLUMNS <= width; k += COLUMNS)
        add(rows, width, index, n, sum, k, COLUMNS);
    for (; k + 4 <= width; k += 4)
        add(rows, width, index, n, sum, k, 4);
    for (; k < width; k++)
        add(rows, width, index, n, sum, k, 1);
}

/* Residuals of the logarithms into x. 0: a value has none. */
static int residuals(const struct launch_value *v, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        if (!(v[i].value > 0))
            return 0;
        x[i] = log(v[i].value);
    }
    double mean = stat_mean(x, n);
    for (size_t i = 0; i < n; i++)
        x[i] -= mean;
    return 1;
}

/* A draw of Student's distribution along the residuals. */
static double step_along(const double *x, size_t n, uint64_t seed, uint64_t draw)
{
    struct rng r = {.seed = seed, .stream = draw};
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += rng_normal(&r) * x[i]; /* x adds up to 0, so the mean of the weights drops out */
    for (size_t i = 0; i + 1 < n; i++) {
        double z = rng_normal(&r);
        square += z * z;
    }
    return sum / sqrt((double)n * square);
}

void bootstrap_cost(double value, const struct launch_value *launches, size_t n, uint64_t seed,
                    size_t draws, double *out, size_t stride, double *work)
{
    int moves = n > 1 && residuals(launches, n, work);
    for (size_t d = 0; d < draws; d++)
        out[d * stride] = moves ? value * exp(step_along(work, n, seed, d)) : value;
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
