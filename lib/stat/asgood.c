/* asgood.c - see asgood.h. A quotient of sums is not a mean over prompts, but near its value it
 * behaves as one: of the parts (num - value * den) / mean den. The t test uses these parts. */
#include "lib/stat/asgood.h"

#include <math.h>

#include "lib/stat/proportion.h"

static const double LEVEL = 0.025;

int asgood_is_shown(double p)
{
    return p <= LEVEL;
}

/* at: the worst quotient of sums that is as good as `rival`; slope: d at / d rival. */
struct limit { double at, slope; };

static struct limit limit_of(double rival, const struct asgood_kind *k,
                             const struct pooled_margin *m)
{
    double sign = k->higher ? -1 : 1;
    if (k->transform == POOLED_EXPONENTIAL) {
        double by = m->relative ? m->by : m->by * exp(-rival);
        return (struct limit){rival + log1p(sign * by), m->relative ? 1 : 1 / (1 + sign * by)};
    }
    double unit = k->transform == POOLED_BITS ? log(2) : 1;
    if (!m->relative)
        return (struct limit){rival + sign * m->by * unit, 1};
    return (struct limit){rival + sign * m->by * fabs(rival),
                          1 + sign * m->by * (rival < 0 ? -1 : 1)};
}

static double quotient(struct asgood_side s, size_t n)
{
    return stat_sum(s.num, n) / stat_sum(s.den, n);
}

static void put_parts(struct asgood_side s, double value, size_t n, double weight, double *out)
{
    double mean = stat_sum(s.den, n) / (double)n;
    for (size_t i = 0; i < n; i++)
        out[i] += weight * (s.num[i] - value * s.den[i]) / mean;
}

/* The p values of an effect t standard errors above the limit. */
static struct asgood p_values(double t, double df)
{
    double outside = stat_t_outside(t, df) / 2, good = t > 0 ? outside : 1 - outside;
    return (struct asgood){good, 1 - good};
}

/* Counts are whole numbers, so at its limit the score alone errs 3 times in 100. One prompt less on
 * either side keeps it below 2.5 in 100. */
static struct asgood score(struct asgood_side own, struct asgood_side rival, size_t n,
                           const struct asgood_kind *k, const struct pooled_margin *m)
{
    struct proportion_pairs p = k->higher ? proportion_count(rival.num, own.num, n)
                                          : proportion_count(own.num, rival.num, n);
    double by = m->relative ? m->by * stat_mean(rival.num, n) : m->by;
    double z = proportion_above(&p, -by), above = p.second - p.first + p.n * by;
    if (!isfinite(z) || !(fabs(above) > 0))
        return p_values(z, INFINITY);
    double unit = z / above; /* one prompt, in standard errors */
    return (struct asgood){p_values(z - unit, INFINITY).good, p_values(z + unit, INFINITY).worse};
}

struct asgood asgood_test(struct asgood_side own, struct asgood_side rival, size_t n,
                          const struct asgood_kind *k, const struct pooled_margin *m, double *work)
{
    if (n < ASGOOD_LEAST)
        return (struct asgood){NAN, NAN};
    if (k->binary)
        return score(own, rival, n, k, m);
    double a = quotient(own, n), b = quotient(rival, n), sign = k->higher ? 1 : -1;
    struct limit limit = limit_of(b, k, m);
    for (size_t i = 0; i < n; i++)
        work[i] = 0;
    put_parts(own, a, n, 1, work);
    put_parts(rival, b, n, -limit.slope, work);
    double se = stat_sd(work, n) / sqrt((double)n), t = sign * (a - limit.at) / se;
    return se > 0 && isfinite(t) ? p_values(t, (double)(n - 1)) : (struct asgood){NAN, NAN};
}

struct interval asgood_difference(struct asgood_side own, struct asgood_side rival, size_t n,
                                  double level, double *work)
{
    double a = quotient(own, n), b = quotient(rival, n);
    for (size_t i = 0; i < n; i++)
        work[i] = 0;
    put_parts(own, a, n, 1, work);
    put_parts(rival, b, n, -1, work);
    struct interval v = stat_t(work, n, level);
    return (struct interval){a - b, a - b + v.lo - v.value, a - b + v.hi - v.value};
}

struct asgood_place asgood_sequence(const struct asgood *tests, size_t n)
{
    struct asgood_place at = {n, 0};
    while (at.first > 0 && asgood_is_shown(tests[at.first - 1].good))
        at.first--;
    while (at.worse < n && asgood_is_shown(tests[at.worse].worse))
        at.worse++;
    return at;
}
