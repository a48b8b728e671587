/* simultaneous.c - see simultaneous.h. The chance that any of n intervals misses is at most the sum
 * of their chances, however the systems depend on each other. */
#include "lib/stat/simultaneous.h"

#include <math.h>

double simultaneous_level(double level, size_t n)
{
    return n > 1 ? 1 - (1 - level) / (double)n : level;
}

struct ratio simultaneous_ratio(const struct paired *p, double level, size_t n)
{
    struct ratio r = p->ratio;
    if (isnan(p->se) || isnan(p->df))
        return r;
    r.level = simultaneous_level(level, n);
    double half = stat_t_quantile(0.5 + r.level / 2, p->df) * p->se;
    r.lo = r.value * exp(-half);
    r.hi = r.value * exp(half);
    return r;
}
