/* trend.c - see trend.h. All sums are of deviations from the means, so that large offsets do not
 * cancel digits. A slope needs two different x, its interval three points. */
#include "lib/stat/trend.h"

#include <math.h>

#include "lib/stat/stat.h"

struct trend trend_fit(const double *x, const double *y, size_t n, double level)
{
    struct trend f = {NAN, NAN, NAN, NAN};
    double mx = stat_mean(x, n), my = stat_mean(y, n), xx = 0, xy = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    if (n < 2 || !(xx > 0))
        return f;
    f.slope = xy / xx;
    f.at = my - f.slope * mx;
    for (size_t i = 0; i < n; i++) {
        double d = y[i] - f.at - f.slope * x[i];
        rest += d * d;
    }
    if (n < 3)
        return f;
    double df = (double)n - 2;
    double half = stat_t_quantile(0.5 + level / 2, df) * sqrt(rest / df / xx);
    f.lo = f.slope - half;
    f.hi = f.slope + half;
    return f;
}
