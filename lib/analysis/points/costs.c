/* costs.c - see costs.h. Launch values are put into a table with one prompt, so that draw_pair()
 * pairs launches and makes ratios for all costs. */
#include "lib/analysis/points/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/fastest.h"
#include "lib/stat/together.h"

/* Returns the clock of `times` records that the metric names. Returns PAIRS_CLOCKS if the metric
 * names no clock, or if there are no `times` records. */
static enum pairs_clock clock_of(const struct costs *costs)
{
    enum pairs_clock k = PAIRS_WALL;
    while (k < PAIRS_CLOCKS &&
           (!costs->times || !costs->times->n || strcmp(pairs_clocks[k], costs->metric)))
        k++;
    return k;
}

int costs_by_prompt(const struct costs *costs)
{
    return clock_of(costs) < PAIRS_CLOCKS;
}

/* The launch values of a point as a table with one prompt. */
struct cost_values {
    const char *id, *task;
    struct pairs_point point;
};

static const struct pairs_point *values_of(const struct costs *costs, const struct point *point,
                                           struct cost_values *values)
{
    *values = (struct cost_values){.id = "", .task = costs->task};
    values->point = (struct pairs_point){.point = point->id, .workload = "", .prompts = 1,
                                         .launches = point->n_launch,
                                         .id = &values->id, .task = &values->task};
    values->point.launch = mem_zero(point->n_launch, sizeof *values->point.launch);
    values->point.ns[PAIRS_WALL] = mem_zero(point->n_launch, sizeof *values->point.ns[PAIRS_WALL]);
    for (size_t i = 0; i < point->n_launch; i++) {
        double x = point->launch[i].value;
        values->point.launch[i] = point->launch[i].launch;
        values->point.ns[PAIRS_WALL][i] = !(x > 0) ? (double)NAN : costs->higher ? 1 / x : x;
    }
    return &values->point;
}

static void values_free(struct cost_values *values)
{
    free(values->point.launch);
    free(values->point.ns[PAIRS_WALL]);
}

static struct paired draw_pair(const struct costs *costs, const struct pairs_point *const both[2],
                               enum pairs_clock clock, double *draw, size_t stride)
{
    const struct pairs_of of = {clock, costs->task};
    struct together together = {.n = 2};
    double *table = pairs_table(both, 2, &of, &together.launches, &together.prompts);
    struct paired paired[2];
    together.cells = table;
    double *work = mem_zero(together_work(&together), sizeof *work);
    double *both_draws = mem_zero(2 * costs->draws, sizeof *both_draws);
    together_draw(&together, 0, costs->level, costs->seed, draw ? costs->draws : 0, paired,
                  both_draws, work);
    for (size_t at = 0; draw && at < costs->draws; at++)
        draw[at * stride] = both_draws[2 * at + 1];
    free(both_draws);
    free(work);
    free(table);
    paired[1].ratio.reason = pairs_reason(both[0], both[1], &of, paired[1].ratio.reason);
    return paired[1];
}

static struct paired refuse_ratio(const struct costs *costs, const char *reason, double *draw,
                                  size_t stride)
{
    struct paired_cells nothing = {0};
    struct paired paired = paired_ratio(&nothing, costs->level, NULL);
    paired.ratio.reason = reason;
    for (size_t d = 0; draw && d < costs->draws; d++)
        draw[d * stride] = NAN;
    return paired;
}

struct paired costs_ratio(const struct costs *costs, const struct point *base,
                          const struct point *other, double *draw, size_t stride)
{
    enum pairs_clock clock = clock_of(costs);
    struct cost_values values[2] = {{0}, {0}};
    const struct pairs_point *both[2];
    int by_values = clock == PAIRS_CLOCKS;
    if (isnan(base->cost) || isnan(other->cost))
        return refuse_ratio(costs, "no cost on one side", draw, stride);
    if (by_values && (base->is_disturbed || other->is_disturbed))
        return refuse_ratio(costs, PAIRED_DISTURBED, draw, stride);
    both[0] = by_values ? values_of(costs, base, &values[0]) : pairs_find(costs->times, base->id);
    both[1] = by_values ? values_of(costs, other, &values[1]) : pairs_find(costs->times, other->id);
    struct paired paired = both[0] && both[1]
                          ? draw_pair(costs, both, by_values ? PAIRS_WALL : clock, draw, stride)
                          : refuse_ratio(costs, PAIRED_NONE, draw, stride);
    values_free(&values[0]);
    values_free(&values[1]);
    return paired;
}

const struct point *costs_fastest(const struct costs *costs, const struct points *all,
                                  const struct point *plain, json_t *among)
{
    const struct point **other = mem_zero(all->n, sizeof *other);
    double *value = mem_zero(all->n, sizeof *value);
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct point *point = &all->v[i];
        if (point == plain || !point->is_rival || !points_same_group(plain, point) ||
            !points_same_system(plain, point) || !points_same_template(plain, point))
            continue;
        const struct ratio ratio = costs_ratio(costs, plain, point, NULL, 0).ratio;
        if (isnan(ratio.lo))
            continue;
        json_array_append_new(among, json_string(point->config));
        value[n] = ratio.value;
        other[n++] = point;
    }
    if (n)
        json_array_append_new(among, json_string(plain->config));
    const struct fastest fastest = fastest_choose(value, n);
    const struct point *best = fastest.at < n ? other[fastest.at] : plain;
    free(other);
    free(value);
    return best;
}
