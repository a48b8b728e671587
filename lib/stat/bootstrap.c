/* bootstrap.c - draws and their percentiles; see bootstrap.h.
 *
 * Draw d has a random stream of its own, so draws may be made in any order. The ends of an interval
 * are order statistics, never interpolated, because a neighbour may be infinite.
 *
 * A tool that prints intervals spends most of its time here. So random indices are made a block at
 * a time, with a multiplication in place of a division, and sums of several columns are made side
 * by side; each column still adds in the order of the draw. Where the order does not matter (whole
 * numbers), counts are multiplied with values, in 32-bit integers. */
#include "lib/stat/bootstrap.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/philox.h"
#include "lib/base/rng.h"

enum { BLOCK = 16, COLUMNS = 8 };
/* A sum of SPAN products fits 32 bits: 255 * SPAN * 32767 < 2^31. */
enum { SPAN = 256, OFTEN = 255 };

/* x % n for most = UINT64_MAX / n, without a division. */
static uint32_t remainder_of(uint64_t x, uint64_t n, uint64_t most)
{
    uint64_t low = (uint64_t)(__extension__(unsigned __int128)x * most >> 64); /* 0 to 2 low */
    uint64_t r = x - low * n;
    r -= n & -(uint64_t)(r >= n); /* no branch: it could not be predicted */
    r -= n & -(uint64_t)(r >= n);
    return (uint32_t)r;
}

/* The same numbers as rng_below() gives one by one. */
void bootstrap_draw(uint64_t seed, uint64_t draw, size_t n, uint32_t *index)
{
    /* values from `limit` on would favour small remainders */
    uint64_t x[BLOCK], most = UINT64_MAX / (n ? n : 1), limit = most * n;
    for (uint64_t i = 0, next = 0; i < n; next += BLOCK) {
        for (uint64_t k = 0; k < BLOCK; k++)
            x[k] = philox_at(seed, next + k, draw);
        for (size_t k = 0; k < BLOCK && i < n; k++)
            if (x[k] < limit)
                index[i++] = remainder_of(x[k], n, most);
    }
}

/* Computes sum[from..from + columns - 1]. Inlined, so that `columns` is a constant. */
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

void bootstrap_sums(const double *rows, size_t width, size_t columns, const uint32_t *index,
                    size_t n, double *sum)
{
    size_t k = 0;
    for (; k + COLUMNS <= columns; k += COLUMNS)
        add(rows, width, index, n, sum, k, COLUMNS);
    for (; k + 4 <= columns; k += 4)
        add(rows, width, index, n, sum, k, 4);
    switch (columns - k) {
    case 3: add(rows, width, index, n, sum, k, 3); break;
    case 2: add(rows, width, index, n, sum, k, 2); break;
    case 1: add(rows, width, index, n, sum, k, 1); break;
    default: break;
    }
}

/* ---- whole numbers ---- */

static int is_whole(double v)
{
    return v >= 0 && v <= BOOTSTRAP_WHOLE && !(v > (double)(int16_t)v);
}

size_t bootstrap_whole(const double *rows, size_t width, size_t n)
{
    size_t from = 0;
    if (n < BOOTSTRAP_SHORT)
        return width;
    for (size_t i = 0; i < n; i++)
        for (size_t k = width; k > from; k--)
            if (!is_whole(rows[i * width + k - 1]))
                from = k;
    return from;
}

size_t bootstrap_room(size_t n)
{
    return (n + SPAN - 1) / SPAN * SPAN;
}

/* An index drawn 256 times in one draw has a probability below n / 256!: it does not happen. */
void bootstrap_count(const uint32_t *index, size_t n, int16_t *times)
{
    memset(times, 0, bootstrap_room(n) * sizeof *times);
    for (size_t i = 0; i < n; i++) {
        times[index[i]]++;
        assert(times[index[i]] <= OFTEN);
    }
}

static int32_t dot(const int16_t *a, const int16_t *b)
{
    int32_t sum = 0;
    for (size_t i = 0; i < SPAN; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Adds rows at..at + SPAN - 1 of the columns from..from + columns - 1 to the sums. */
static void weigh(const double *rows, size_t width, size_t from, size_t columns,
                  const int16_t *times, size_t draws, size_t n, size_t at, double *sums)
{
    int16_t column[COLUMNS][SPAN] = {{0}};
    for (size_t i = 0; i < SPAN && at + i < n; i++)
        for (size_t k = 0; k < columns; k++)
            column[k][i] = (int16_t)rows[(at + i) * width + from + k];
    for (size_t d = 0; d < draws; d++)
        for (size_t k = 0; k < columns; k++)
            sums[d * width + from + k] += dot(times + d * bootstrap_room(n) + at, column[k]);
}

void bootstrap_weigh(const double *rows, size_t width, size_t from, const int16_t *times,
                     size_t draws, size_t n, double *sums)
{
    for (size_t d = 0; d < draws; d++)
        for (size_t k = from; k < width; k++)
            sums[d * width + k] = 0;
    for (size_t at = 0; at < n; at += SPAN)
        for (size_t k = from; k < width; k += COLUMNS)
            weigh(rows, width, k, width - k < COLUMNS ? width - k : COLUMNS, times, draws, n, at,
                  sums);
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
    v.lo = hits <= 0 ? 0 : mid - half; /* exact at 0 and n, where rounding would not be */
    v.hi = hits >= n ? 1 : mid + half;
    return v;
}
