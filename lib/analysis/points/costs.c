/* costs.c - see costs.h. Launch values are put into a table of one prompt, so that one function
 * pairs launches and makes ratios for all costs. */
#include "lib/analysis/points/costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/together.h"

/* The clock of `times` records with this metric; PAIRS_CLOCKS: none. */
static enum pairs_clock clock_of(const struct costs *c)
{
    enum pairs_clock k = PAIRS_WALL;
    while (k < PAIRS_CLOCKS && (!c->times || !c->times->n || strcmp(pairs_clocks[k], c->metric)))
        k++;
    return k;
}

int costs_by_prompt(const struct costs *c)
{
    return clock_of(c) < PAIRS_CLOCKS;
}

/* The launch values of a point as a table of one prompt. */
struct cost_values {
    const char *id, *task;
    struct pairs_point point;
};

static const struct pairs_point *values_of(const struct costs *c, const struct point *p,
                                           struct cost_values *v)
{
    *v = (struct cost_values){.id = "", .task = c->task};
    v->point = (struct pairs_point){.point = p->id, .workload = "", .prompts = 1,
                                    .launches = p->n_launch,
                                    .id = &v->id, .task = &v->task};
    v->point.launch = mem_zero(p->n_launch, sizeof *v->point.launch);
    v->point.ns[PAIRS_WALL] = mem_zero(p->n_launch, sizeof *v->point.ns[PAIRS_WALL]);
    for (size_t i = 0; i < p->n_launch; i++) {
        double x = p->launch[i].value;
        v->point.launch[i] = p->launch[i].launch;
        v->point.ns[PAIRS_WALL][i] = !(x > 0) ? (double)NAN : c->higher ? 1 / x : x;
    }
    return &v->point;
}

static void values_free(struct cost_values *v)
{
    free(v->point.launch);
    free(v->point.ns[PAIRS_WALL]);
}

static struct paired draw_pair(const struct costs *c, const struct pairs_point *const both[2],
                               enum pairs_clock clock, double *draw, size_t stride)
{
    const struct pairs_of of = {clock, c->task};
    struct together t = {.n = 2};
    double *table = pairs_table(both, 2, &of, &t.launches, &t.prompts);
    struct paired r[2];
    t.cells = table;
    double *work = mem_zero(together_work(&t), sizeof *work);
    double *both_draws = mem_zero(2 * c->draws, sizeof *both_draws);
    together_draw(&t, 0, c->level, c->seed, draw ? c->draws : 0, r, both_draws, work);
    for (size_t d = 0; draw && d < c->draws; d++)
        draw[d * stride] = both_draws[2 * d + 1];
    free(both_draws);
    free(work);
    free(table);
    return r[1];
}

static struct paired refuse_ratio(const struct costs *c, const char *reason, double *draw,
                                  size_t stride)
{
    struct paired_cells nothing = {0};
    struct paired r = paired_ratio(&nothing, c->level, NULL);
    r.ratio.reason = reason;
    for (size_t d = 0; draw && d < c->draws; d++)
        draw[d * stride] = NAN;
    return r;
}

struct paired costs_ratio(const struct costs *c, const struct point *base,
                          const struct point *other, double *draw, size_t stride)
{
    enum pairs_clock clock = clock_of(c);
    struct cost_values v[2] = {{0}, {0}};
    const struct pairs_point *both[2];
    int by_values = clock == PAIRS_CLOCKS;
    if (isnan(base->cost) || isnan(other->cost))
        return refuse_ratio(c, "no cost on one side", draw, stride);
    if (by_values && (base->is_disturbed || other->is_disturbed))
        return refuse_ratio(c, PAIRED_DISTURBED, draw, stride);
    both[0] = by_values ? values_of(c, base, &v[0]) : pairs_find(c->times, base->id);
    both[1] = by_values ? values_of(c, other, &v[1]) : pairs_find(c->times, other->id);
    struct paired r = both[0] && both[1]
                          ? draw_pair(c, both, by_values ? PAIRS_WALL : clock, draw, stride)
                          : refuse_ratio(c, PAIRED_NONE, draw, stride);
    values_free(&v[0]);
    values_free(&v[1]);
    return r;
}
