/* fastest.c - see fastest.h. The choice is a plain minimum. All that makes it honest is the count,
 * which goes to ratio_level(). */
#include "lib/stat/fastest.h"

#include <math.h>

struct fastest fastest_choose(const double *ratio, size_t n)
{
    struct fastest fastest = {n, 1};
    double least = 1;
    for (size_t i = 0; i < n; i++) {
        fastest.of += isnan(ratio[i]) ? 0 : 1;
        if (ratio[i] < least) {
            least = ratio[i];
            fastest.at = i;
        }
    }
    return fastest;
}
