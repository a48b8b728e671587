/* ranking.c - see ranking.h. For k places, a pair of systems adds to tau the mean of s_a s_b over
 * the pairs of places, s = -1, 0, 1 the order of the two. This is linear in each s, so the least
 * and the largest value are found where every undecided s is -1 or 1. */
#include "lib/stat/ranking.h"

#include <math.h>

size_t ranking_pair(size_t n, size_t i, size_t j)
{
    return i * (2 * n - i - 1) / 2 + j - i - 1;
}

static struct asgood_side side_of(const struct ranking *r, size_t system, size_t place)
{
    size_t at = (system * r->places + place) * r->prompts;
    return (struct asgood_side){r->num + at, r->den + at};
}

/* 1: system i measured better than j, -1: worse, 0: equal. */
static int order_of(const struct ranking *r, size_t i, size_t j, size_t place)
{
    struct asgood_side a = side_of(r, i, place), b = side_of(r, j, place);
    double x = stat_sum(a.num, r->prompts) / stat_sum(a.den, r->prompts);
    double y = stat_sum(b.num, r->prompts) / stat_sum(b.den, r->prompts);
    int more = (x > y) - (x < y);
    return r->kind.higher ? more : -more;
}

static int shown_of(const struct ranking *r, size_t i, size_t j, size_t place, double p,
                    double *work)
{
    const struct pooled_margin none = {0, 0};
    struct asgood t = asgood_test(side_of(r, i, place), side_of(r, j, place), r->prompts, &r->kind,
                                  &none, work);
    return (t.good <= p) - (t.worse <= p); /* NaN: 0 */
}

/* The share of a pair of systems in tau: sum of the s and of their squares over k places. */
static double share(double sum, double squares, double k)
{
    return (sum * sum - squares) / (k * (k - 1));
}

/* *lo, *hi: the share of a pair that is decided in `decided` of k places, with the sum `sum`. */
static void bounds(double sum, double decided, double k, double *lo, double *hi)
{
    double free = k - decided, far = fabs(sum) + free, near = fabs(sum) - free;
    near = near > 0 ? near : fmod(-near, 2);
    *lo = share(near, k, k);
    *hi = share(far, k, k);
}

struct ranking_found ranking_find(const struct ranking *r, double level, signed char *shown,
                                  double *work)
{
    const double pairs = (double)(r->systems * (r->systems - 1) / 2), k = (double)r->places;
    const double p = (1 - level) / 2 / (pairs * k);
    struct ranking_found f = {0};
    for (size_t i = 0; i < r->systems; i++)
        for (size_t j = i + 1; j < r->systems; j++) {
            signed char *of = shown + ranking_pair(r->systems, i, j) * r->places;
            double sum = 0, squares = 0, known = 0, decided = 0, lo, hi;
            for (size_t c = 0; c < r->places; c++) {
                int s = order_of(r, i, j, c), sure = shown_of(r, i, j, c, p, work);
                of[c] = (signed char)sure;
                sum += s;
                squares += s * s;
                known += sure;
                decided += sure * sure;
            }
            bounds(known, decided, k, &lo, &hi);
            f.tau += share(sum, squares, k);
            f.lo += lo;
            f.hi += hi;
            f.flips += fabs(known) < decided;
        }
    f.tau /= pairs; /* of whole sums, so that a clear order gives 1 exactly */
    f.lo /= pairs;
    f.hi /= pairs;
    return f;
}
