/* aup.c - see aup.h. If points have equal tokens per forward, the less accurate one comes first.
 * The width between such points is zero, so their order matters only at the start of the curve. */
#include "lib/stat/aup.h"

#include <math.h>
#include <stdlib.h>

static int by_parallelism(const void *a, const void *b)
{
    const struct aup_point *x = a, *y = b;
    int order = (x->per_forward > y->per_forward) - (x->per_forward < y->per_forward);
    return order ? order : (x->accuracy > y->accuracy) - (x->accuracy < y->accuracy);
}

static double weighted(double y, double best)
{
    return best > 0 ? y * fmin(exp(-3 * (1 - y / best)), 1) : 0;
}

double aup_of(struct aup_point *point, size_t n, double best)
{
    if (!n)
        return NAN;
    qsort(point, n, sizeof *point, by_parallelism);
    const struct aup_point *last = point;
    double sum = point->per_forward * point->accuracy;
    for (size_t i = 1; i < n; i++) {
        if (point[i].accuracy < point->accuracy - 5)
            continue;
        sum += (point[i].per_forward - last->per_forward) *
               (weighted(point[i].accuracy, best) + weighted(last->accuracy, best)) / 2;
        last = &point[i];
    }
    return sum;
}
