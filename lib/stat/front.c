/* front.c - see front.h. Points are sorted by cost, then by quality from the best. A point is on
 * the front if its quality beats that of all cheaper points and equals the best of its own cost.
 * The sort is a heap sort of indices: it allocates nothing and its worst case is O(n log n). */
#include "lib/stat/front.h"

#include <math.h>
#include <stdint.h>

struct plane { const double *cost, *quality; };

/* 1: a comes after b: more expensive; or as expensive and worse; or equal and later. */
static int is_after(const struct plane *p, size_t a, size_t b)
{
    if (p->cost[a] != p->cost[b]) /* exact: sorting */
        return p->cost[a] > p->cost[b];
    if (p->quality[a] != p->quality[b]) /* exact: sorting */
        return p->quality[a] < p->quality[b];
    return a > b;
}

static void sift(const struct plane *p, size_t *order, size_t root, size_t n)
{
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && is_after(p, order[child + 1], order[child]))
            child++;
        if (!is_after(p, order[child], order[root]))
            return;
        size_t t = order[child];
        order[child] = order[root];
        order[root] = t;
    }
}

static void sort(const struct plane *p, size_t *order, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(p, order, i, n);
    for (size_t end = n; end > 1; end--) {
        size_t t = order[0];
        order[0] = order[end - 1];
        order[end - 1] = t;
        sift(p, order, 0, end - 1);
    }
}

void front_mark(const double *cost, const double *quality, size_t n, unsigned char *on,
                size_t *order)
{
    struct plane p = {cost, quality};
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        on[i] = 0;
        if (!isnan(cost[i]) && !isnan(quality[i]))
            order[m++] = i;
    }
    sort(&p, order, m);
    size_t best = SIZE_MAX; /* the best point among the cheaper ones */
    for (size_t k = 0; k < m; k++) {
        size_t i = order[k];
        int better = best == SIZE_MAX || quality[i] > quality[best];
        int equal = !better && !(quality[i] < quality[best]) && !(cost[i] > cost[best]);
        if (better)
            best = i;
        on[i] = better || equal;
    }
}
