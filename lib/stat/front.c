/* front.c - see front.h. Points are sorted by cost, then by quality from the best. A point is on
 * the front if its quality beats all cheaper points and no point of its own cost is better. */
#include "lib/stat/front.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

struct plane { const double *cost, *quality; };

/* Orders by cost, then by quality from the best, then by index. */
static int compare(const void *pa, const void *pb, void *plane)
{
    const struct plane *p = plane;
    const size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
    if (p->cost[a] != p->cost[b]) /* exact: sorting */
        return p->cost[a] > p->cost[b] ? 1 : -1;
    if (p->quality[a] != p->quality[b]) /* exact: sorting */
        return p->quality[a] < p->quality[b] ? 1 : -1;
    return (a > b) - (a < b);
}

void front_mark(const double *cost, const double *quality, size_t n, unsigned char *on,
                size_t *order)
{
    struct plane plane = {cost, quality};
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        on[i] = 0;
        if (!isnan(cost[i]) && !isnan(quality[i]))
            order[known++] = i;
    }
    qsort_r(order, known, sizeof *order, compare, &plane);
    size_t best = SIZE_MAX; /* the point with the best quality so far, the cheapest of equals */
    for (size_t k = 0; k < known; k++) {
        size_t i = order[k];
        int better = best == SIZE_MAX || quality[i] > quality[best];
        int equal = !better && !(quality[i] < quality[best]) && !(cost[i] > cost[best]);
        if (better)
            best = i;
        on[i] = better || equal;
    }
}
