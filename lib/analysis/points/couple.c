/* couple.c - see couple.h. A cost without values has no metric and is not written. This happens for
 * processor time if a GPU does the work. A point whose metric record has no wall time counts as not
 * measured by either clock. */
#include "lib/analysis/points/couple.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const struct couple_cost nothing = {NULL, NAN, NAN, RATIO_NOTHING, NAN};

/* The ratio over launches; without a value if a launch was disturbed. */
static struct ratio launch_ratio(const struct couple *k, const struct launch_value *base, size_t n,
                                 const struct launch_value *point, size_t m, double level)
{
    double *work = mem_zero(n + m, sizeof *work);
    struct ratio ratio = ratio_of(base, n, point, m, level, work);
    free(work);
    if (k->base->is_disturbed || k->point->is_disturbed) {
        ratio = (struct ratio)RATIO_NOTHING;
        ratio.level = level;
        ratio.reason = PAIRED_DISTURBED;
    }
    return ratio;
}

static struct couple_cost time_of(const struct couple *k, const struct pairs *times,
                                  enum pairs_clock clock, double level)
{
    const struct pairs_of of = {clock, NULL};
    const struct pairs_point *a = pairs_find(times, k->base->id);
    const struct pairs_point *b = pairs_find(times, k->point->id);
    struct couple_cost cost = {pairs_clocks[clock], pairs_mean(a, &of), pairs_mean(b, &of),
                               pairs_ratio(a, b, &of, level).ratio, NAN};
    return clock == PAIRS_CPU && isnan(cost.base) && isnan(cost.value) ? nothing : cost;
}

static void find_costs(struct couple *k, const struct points *all, const struct pairs *times,
                       double level)
{
    const struct point *base = k->base, *point = k->point;
    k->cost[0] = k->cost[1] = nothing;
    if (isnan(base->cost) || isnan(point->cost))
        return;
    if (!strcmp(all->cost_metric, pairs_clocks[PAIRS_WALL])) {
        k->cost[0] = time_of(k, times, PAIRS_WALL, level);
        k->cost[1] = time_of(k, times, PAIRS_CPU, level);
        return;
    }
    k->cost[0] = (struct couple_cost){
        all->cost_metric, base->cost, point->cost,
        launch_ratio(k, base->launch, base->n_launch, point->launch, point->n_launch, level), NAN};
}

/* Adjusts the p values of one cost over all couples. */
static void adjust(struct couple *couple, size_t n, int which)
{
    double *p = mem_zero(2 * n, sizeof *p), *holm = p + n;
    size_t *order = mem_zero(n, sizeof *order);
    for (size_t i = 0; i < n; i++)
        p[i] = couple[i].cost[which].ratio.p;
    ratio_holm(p, n, holm, order);
    for (size_t i = 0; i < n; i++)
        couple[i].cost[which].holm = holm[i];
    free(order);
    free(p);
}

void couple_find_costs(struct couple *couple, size_t n, const struct points *all,
                       const struct pairs *times, double level)
{
    for (size_t i = 0; i < n; i++)
        find_costs(&couple[i], all, times, level);
    for (int which = 0; which < COUPLE_COSTS; which++)
        adjust(couple, n, which);
}

struct couple_cost couple_beside(const struct couple *k, const struct points *all, double level)
{
    const struct point *a = k->base, *b = k->point;
    if (isnan(a->beside) || isnan(b->beside))
        return nothing;
    return (struct couple_cost){
        all->beside, a->beside, b->beside,
        launch_ratio(k, a->beside_launch, a->n_beside, b->beside_launch, b->n_beside, level), NAN};
}

/* 1: an amount of bytes ("memory_weights_bytes"), not a rate. */
static int is_bytes(const char *metric)
{
    size_t n = strlen(metric), m = strlen("_bytes");
    return n > m && !strcmp(metric + n - m, "_bytes");
}

void couple_put(json_t *record, const struct couple_cost *cost, const struct contrast_goal *goal)
{
    rec_set_number(record, "base_value", cost->base, "not measured, or disturbed");
    rec_set_number(record, "config_value", cost->value, "not measured, or disturbed");
    if (is_bytes(cost->metric))
        rec_set_number(record, "value", cost->value / cost->base, "the base has none");
    else
        contrast_put(record, &cost->ratio, cost->holm, goal);
}
