/* arrivals.c - see arrivals.h. A gap depends only on the seed and its index, so a load can be
 * repeated. An exponential gap is -ln(1 - u) / rate, u uniform in [0, 1). */
#include "lib/stat/arrivals.h"

#include <math.h>

#include "lib/base/rng.h"

int64_t arrivals_due(const struct arrivals *arrivals, size_t i, int64_t before_ns)
{
    if (!i)
        return 0;
    if (arrivals->even)
        return (int64_t)((double)i / arrivals->rate * 1e9);
    return before_ns +
           (int64_t)(-log1p(-rng_unit(rng_at(arrivals->seed, i, 0))) / arrivals->rate * 1e9);
}
