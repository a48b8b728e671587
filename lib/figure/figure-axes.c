/* figure-axes.c - see figure-axes.h. Values are divided in place and noted for the caption. A
 * row that reaches a script can be drawn on both axes; a logarithmic axis has no zero and no
 * negative value. */
#include "lib/figure/figure-axes.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

/* Scales a cell. 0: it cannot be drawn. */
static int scale_cell(const struct config_row *c, const void *ctx)
{
    const struct axes *a = ctx;
    struct config_row *k = (struct config_row *)(uintptr_t)c;
    if (!figure_scale(a->f, &k->x, a->divide_x, 1))
        return 0;
    if (figure_scale(a->f, &k->y, a->divide_y, a->log_y))
        return 1;
    k->y = (struct value){(double)NAN, (double)NAN, (double)NAN, k->y.record};
    return a->cost_alone;
}

/* Sets "end-to-end latency (ms)" or, if the name has parentheses, "accuracy (exact match), %". */
static void put_label(struct script *s, const char *variable, const char *name, const char *unit)
{
    const int has_parentheses = strchr(name, '(') != NULL;
    char *text = !*unit          ? mem_text(name)
                 : has_parentheses ? mem_format("%s, %s", name, unit)
                                   : mem_format("%s (%s)", name, unit);
    script_text(s, variable, text);
    free(text);
}

static void put_axes(struct script *s, const char *cost, struct display_scale cs,
                     const char *quality, struct display_scale qs, int lower, int log_y)
{
    put_label(s, "cost_label", display_metric_name(cost), cs.unit);
    put_label(s, "quality_label", display_metric_name(quality), qs.unit);
    script_number(s, "quality_lower", lower);
    script_number(s, "quality_log", log_y);
}

void figure_axes_load(struct axes *a, struct figure *f, const struct runset *s,
                      const struct figure_request *q, struct config_table *c, int cost_alone)
{
    const char *quality = figure_quality(s, q), *cost = q->cost ? q->cost : "e2e_ns";
    config_table_pareto(c, s, cost, quality);
    double typical = (double)NAN; /* the smallest: then no tick has many decimals */
    for (size_t i = 0; i < c->n; i++)
        typical = fmin(typical, c->v[i].x.at);
    struct display_scale cs = display_scale(cost, typical), qs = display_scale(quality, 1);
    const char *direction = NULL;
    for (size_t i = 0; i < c->n && !direction; i++) {
        direction = rec_text(c->v[i].y.record, "quality_direction");
        direction = direction ? direction : rec_text(c->v[i].y.record, "direction");
    }
    for (size_t i = 0; i < c->n && !f->why; i++)
        f->why = rec_text(c->v[i].y.record, "value_reason");
    int log_y = strstr(quality, "ppl") != NULL;
    *a = (struct axes){f, cost, quality, cs.divide, qs.divide, log_y, cost_alone};
    config_table_keep(c, scale_cell, a);
    put_axes(&f->script, cost, cs, quality, qs, display_lower_is_better(quality, direction), log_y);
}

char *figure_axes_tip(const struct axes *a, const struct config_row *c)
{
    struct buf b = {0};
    char *name = figure_row_name(c);
    buf_format(&b, "%s: %s ", name, display_metric_name(a->cost));
    figure_put_value(&b, a->cost, &c->x, a->divide_x);
    if (isfinite(c->y.at)) {
        buf_format(&b, ", %s ", display_metric_name(a->quality));
        figure_put_value(&b, a->quality, &c->y, a->divide_y);
    }
    if (c->disturbed)
        buf_text(&b, ", disturbed");
    free(name);
    return b.data;
}
