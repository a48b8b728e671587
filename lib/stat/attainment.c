/* attainment.c - see attainment.h. The volume is a sum of columns: each goes from one member of the
 * front to the next more expensive one and is as high as the quality of that member. Points are
 * clamped into the box first, so a draw outside the box neither adds nor removes volume.
 */
#include "lib/stat/attainment.h"

#include <math.h>

#include "lib/stat/front.h"

double attainment_best(const double *cost, const double *good, size_t n, double budget)
{
    double best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (cost[i] <= budget && good[i] > best)
            best = good[i];
    return best;
}

static double clamp(double share)
{
    return fmin(fmax(share, 0), 1);
}

static double cost_place(const struct attainment_box *box, double cost)
{
    return clamp(log(cost / box->cost_best) / log(box->cost_worst / box->cost_best));
}

/* The cheapest member of the front with a cost above `after`; n: there is none. */
static size_t next_member(const double *cost, const unsigned char *on, size_t n, double after)
{
    size_t next = n;
    for (size_t i = 0; i < n; i++)
        if (on[i] && cost[i] > after && (next == n || cost[i] < cost[next]))
            next = i;
    return next;
}

double attainment_volume(const double *cost, const double *good, size_t n,
                         const struct attainment_box *box, unsigned char *on, size_t *order)
{
    double height = box->good_best - box->good_worst, volume = 0;
    if (!(box->cost_best > 0) || !(box->cost_worst > box->cost_best) || !(height > 0))
        return NAN;
    front_mark(cost, good, n, on, order);
    for (size_t i = next_member(cost, on, n, -INFINITY); i < n;) {
        size_t next = next_member(cost, on, n, cost[i]);
        double right = next < n ? cost_place(box, cost[next]) : 1;
        double level = clamp((good[i] - box->good_worst) / height);
        volume += (right - cost_place(box, cost[i])) * level;
        i = next;
    }
    return volume;
}
