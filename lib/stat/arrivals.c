/* arrivals.c - see arrivals.h. A gap depends only on the seed and its index, so a load can be
 * repeated. An exponential gap is -ln(1 - u) / rate, u uniform in [0, 1). */
#include "lib/stat/arrivals.h"

#include <math.h>

#include "lib/base/rng.h"

/* The latest time, 104 days: larger whole numbers are not exact in a record (2^53), and at a very
 * low rate the sum of gaps does not fit int64_t. */
static const double LATEST_NS = 9e15;

int64_t arrivals_due(const struct arrivals *arrivals, size_t i, int64_t before_ns)
{
    if (!i)
        return 0;
    const double gaps = arrivals->even ? (double)i
                                       : -log1p(-rng_unit(rng_at(arrivals->seed, i, 0)));
    const int64_t since = arrivals->even ? 0 : before_ns;
    const double ns = fmin(gaps / arrivals->rate * 1e9, LATEST_NS - (double)since);
    return since + (int64_t)ns;
}
