/* ranking.c - see ranking.h. s_a is the order of two systems in place a: 1, -1, or 0 if both are
 * equal. These two systems add to tau the mean of s_a s_b over all pairs of places (a, b); the sum
 * is divided by the number of pairs of systems. The mean is linear in each s, so tau is least and
 * largest where every undecided s is -1 or 1. */
#include "lib/stat/ranking.h"

#include <math.h>

size_t ranking_pair(size_t n, size_t i, size_t j)
{
    return i * (2 * n - i - 1) / 2 + j - i - 1;
}

static struct asgood_side side_of(const struct ranking *ranking, size_t system, size_t place)
{
    size_t at = (system * ranking->places + place) * ranking->prompts;
    return (struct asgood_side){ranking->num + at, ranking->den + at};
}

/* 1: the measured quality of system i is better than that of j, -1: worse, 0: equal. */
static int order_of(const struct ranking *ranking, size_t i, size_t j, size_t place)
{
    struct asgood_side a = side_of(ranking, i, place), b = side_of(ranking, j, place);
    double x = stat_sum(a.num, ranking->prompts) / stat_sum(a.den, ranking->prompts);
    double y = stat_sum(b.num, ranking->prompts) / stat_sum(b.den, ranking->prompts);
    int more = (x > y) - (x < y);
    return ranking->kind.higher ? more : -more;
}

static int shown_of(const struct ranking *ranking, size_t i, size_t j, size_t place, double p,
                    double *work)
{
    const struct pooled_margin none = {0, 0};
    struct asgood asgood = asgood_test(side_of(ranking, i, place), side_of(ranking, j, place),
                                       ranking->prompts, &ranking->kind, &none, work);
    return (asgood.good <= p) - (asgood.worse <= p); /* NaN: 0 */
}

/* The term of one pair of systems in tau. sum, squares: sum of s and of s^2 over the k places. */
static double share(double sum, double squares, double k)
{
    return (sum * sum - squares) / (k * (k - 1));
}

/* *lo, *hi: the least and the largest share() of a pair that is decided in `decided` of k places,
 * with the sum `sum` of the decided s. far, near: the largest and the least |sum| over all k
 * places, if each of the `free` undecided s is -1 or 1. */
static void bounds(double sum, double decided, double k, double *lo, double *hi)
{
    double free = k - decided, far = fabs(sum) + free, near = fabs(sum) - free;
    near = near > 0 ? near : fmod(-near, 2);
    *lo = share(near, k, k);
    *hi = share(far, k, k);
}

static double pairs_of(const struct ranking *ranking)
{
    return (double)(ranking->systems * (ranking->systems - 1) / 2);
}

struct ranking_found ranking_find(const struct ranking *ranking, double level, signed char *shown,
                                  double *work)
{
    const double pairs = pairs_of(ranking), k = (double)ranking->places;
    const double tail = (1 - level) / 2 / (pairs * k);
    struct ranking_found found = {0};
    for (size_t i = 0; i < ranking->systems; i++)
        for (size_t j = i + 1; j < ranking->systems; j++) {
            signed char *of = shown + ranking_pair(ranking->systems, i, j) * ranking->places;
            double sum = 0, squares = 0, known = 0, decided = 0, lo, hi;
            for (size_t place = 0; place < ranking->places; place++) {
                int sign = order_of(ranking, i, j, place),
                    sure = shown_of(ranking, i, j, place, tail, work);
                of[place] = (signed char)sure;
                sum += sign;
                squares += sign * sign;
                known += sure;
                decided += sure * sure;
            }
            bounds(known, decided, k, &lo, &hi);
            found.tau += share(sum, squares, k);
            found.lo += lo;
            found.hi += hi;
            found.flips += fabs(known) < decided;
        }
    found.tau /= pairs; /* divided at the end, so that a clear order gives exactly 1 */
    found.lo /= pairs;
    found.hi /= pairs;
    return found;
}

int ranking_is_same(const struct ranking *ranking, size_t i, size_t j,
                    const struct pooled_margin *margin, double level, double *work)
{
    const double tail = (1 - level) / 2 / pairs_of(ranking);
    int all = 1;
    for (size_t place = 0; place < ranking->places && all; place++) {
        const struct asgood_side a = side_of(ranking, i, place), b = side_of(ranking, j, place);
        const size_t n = ranking->prompts;
        all = asgood_test(a, b, n, &ranking->kind, margin, work).good <= tail &&
              asgood_test(b, a, n, &ranking->kind, margin, work).good <= tail; /* NaN: 0 */
    }
    return all;
}
