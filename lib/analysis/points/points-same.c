/* points-same.c - see points.h: how alike two points are, by the settings of their systems, and how
 * well one of them suits as the rival of the other. */
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/points/points.h"

int points_same_system(const struct point *a, const struct point *b)
{
    return about_same_system(a->about, b->about);
}

int points_same_template(const struct point *a, const struct point *b)
{
    return about_same_template(a->about, b->about);
}

int points_rank(const struct point *of, const struct point *rival)
{
    int alike = !strcmp(of->dtype, rival->dtype) && !strcmp(of->quant, rival->quant);
    return (points_same_template(of, rival) ? 0 : 4) + (rival->is_plain ? 0 : 2) + (alike ? 0 : 1);
}

int points_same_series(const struct point *a, const struct point *b)
{
    return !strcmp(a->series, b->series);
}
