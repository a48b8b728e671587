/* asgood.c - see asgood.h. A quotient of sums is not a mean over prompts. Near its value it behaves
 * like the mean of the parts (num - value * den) / mean den, so the t test uses these parts. */
#include "lib/stat/asgood.h"

#include <math.h>

#include "lib/stat/proportion.h"

static const double LEVEL = 0.025;

int asgood_is_shown(double p)
{
    return p <= LEVEL;
}

/* at: the worst quotient of sums that is as good as the quotient `rival`; slope: d at / d rival. */
struct limit { double at, slope; };

static struct limit limit_of(double rival, const struct asgood_kind *kind,
                             const struct pooled_margin *margin)
{
    double sign = kind->higher ? -1 : 1;
    if (kind->transform == POOLED_EXPONENTIAL) {
        double by = margin->relative ? margin->by : margin->by * exp(-rival);
        return (struct limit){rival + log1p(sign * by), margin->relative ? 1 : 1 / (1 + sign * by)};
    }
    double unit = kind->transform == POOLED_BITS ? log(2) : 1;
    if (!margin->relative)
        return (struct limit){rival + sign * margin->by * unit, 1};
    return (struct limit){rival + sign * margin->by * fabs(rival),
                          1 + sign * margin->by * (rival < 0 ? -1 : 1)};
}

static double quotient(struct asgood_side side, size_t n)
{
    return stat_sum(side.num, n) / stat_sum(side.den, n);
}

static void put_parts(struct asgood_side side, double value, size_t n, double weight, double *out)
{
    double mean = stat_sum(side.den, n) / (double)n;
    for (size_t i = 0; i < n; i++)
        out[i] += weight * (side.num[i] - value * side.den[i]) / mean;
}

/* The p values of an effect t standard errors above the limit. */
static struct asgood p_values(double t, double df)
{
    double outside = stat_t_outside(t, df) / 2, good = t > 0 ? outside : 1 - outside;
    return (struct asgood){good, 1 - good};
}

/* Counts are whole numbers, so the score statistic alone errs 3 times in 100 when the true loss
 * equals the margin. One prompt less on either side keeps the error below 2.5 in 100. */
static struct asgood score(struct asgood_side own, struct asgood_side rival, size_t n,
                           const struct asgood_kind *kind, const struct pooled_margin *margin)
{
    struct proportion_pairs pairs = kind->higher ? proportion_count(rival.num, own.num, n)
                                              : proportion_count(own.num, rival.num, n);
    double by = margin->relative ? margin->by * stat_mean(rival.num, n) : margin->by;
    double z = proportion_above(&pairs, -by), above = pairs.second - pairs.first + pairs.n * by;
    if (!isfinite(z) || !(fabs(above) > 0))
        return p_values(z, INFINITY);
    double unit = z / above; /* one prompt, in standard errors */
    return (struct asgood){p_values(z - unit, INFINITY).good, p_values(z + unit, INFINITY).worse};
}

struct asgood asgood_test(struct asgood_side own, struct asgood_side rival, size_t n,
                          const struct asgood_kind *kind, const struct pooled_margin *margin,
                          double *work)
{
    if (n < ASGOOD_LEAST)
        return (struct asgood){NAN, NAN};
    if (kind->binary)
        return score(own, rival, n, kind, margin);
    double own_value = quotient(own, n), rival_value = quotient(rival, n),
           sign = kind->higher ? 1 : -1;
    struct limit limit = limit_of(rival_value, kind, margin);
    for (size_t i = 0; i < n; i++)
        work[i] = 0;
    put_parts(own, own_value, n, 1, work);
    put_parts(rival, rival_value, n, -limit.slope, work);
    double se = stat_sd(work, n) / sqrt((double)n), statistic = sign * (own_value - limit.at) / se;
    return se > 0 && isfinite(statistic) ? p_values(statistic, (double)(n - 1))
                                         : (struct asgood){NAN, NAN};
}

struct interval asgood_difference(struct asgood_side own, struct asgood_side rival, size_t n,
                                  double level, double *work)
{
    double a = quotient(own, n), b = quotient(rival, n);
    for (size_t i = 0; i < n; i++)
        work[i] = 0;
    put_parts(own, a, n, 1, work);
    put_parts(rival, b, n, -1, work);
    struct interval interval = stat_t(work, n, level);
    return (struct interval){a - b, a - b + interval.lo - interval.value,
                             a - b + interval.hi - interval.value};
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
