/* trend.c - see trend.h. All sums are of deviations from the means, so that large offsets do not
 * cancel digits. A slope needs two different x; the interval of a slope needs three points. */
#include "lib/stat/trend.h"

#include <math.h>

#include "lib/stat/stat.h"

struct trend trend_fit(const double *x, const double *y, size_t n, double level)
{
    struct trend trend = {NAN, NAN, NAN, NAN};
    double mx = stat_mean(x, n), my = stat_mean(y, n), xx = 0, xy = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    if (n < 2 || !(xx > 0))
        return trend;
    trend.slope = xy / xx;
    trend.at = my - trend.slope * mx;
    for (size_t i = 0; i < n; i++) {
        double off = y[i] - trend.at - trend.slope * x[i];
        rest += off * off;
    }
    if (n < 3)
        return trend;
    double df = (double)n - 2;
    double half = stat_t_quantile(0.5 + level / 2, df) * sqrt(rest / df / xx);
    trend.lo = trend.slope - half;
    trend.hi = trend.slope + half;
    return trend;
}
