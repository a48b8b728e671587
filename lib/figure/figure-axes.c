/* figure-axes.c - see figure-axes.h. Values are divided in place and noted for the caption. Rows
 * that cannot be drawn are removed from the table: a logarithmic axis has no zero and no negative
 * value. */
#include "lib/figure/figure-axes.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/records/scale.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

/* Scales the values of a row. 0: the row cannot be drawn. */
static int scale_cell(const struct config_row *row, const void *ctx)
{
    const struct axes *axes = ctx;
    struct config_row *k = (struct config_row *)(uintptr_t)row;
    if (!figure_scale(axes->f, &k->x, axes->divide_x, 1))
        return 0;
    if (figure_scale(axes->f, &k->y, axes->divide_y, axes->log_y))
        return 1;
    k->y = (struct value){(double)NAN, (double)NAN, (double)NAN, k->y.record};
    return axes->cost_alone;
}

/* Sets "end-to-end latency (ms)" or, if the name has parentheses, "accuracy (exact match), %". */
static void put_label(struct script *script, const char *variable, const char *name,
                      const char *unit)
{
    const int has_parentheses = strchr(name, '(') != NULL;
    char *text = !*unit            ? mem_text(name)
                 : has_parentheses ? mem_format("%s, %s", name, unit)
                                   : mem_format("%s (%s)", name, unit);
    script_text(script, variable, text);
    free(text);
}

static void put_axes(struct script *script, const char *cost, struct display_scale cs,
                     const char *quality, struct display_scale qs, int lower, int log_y)
{
    put_label(script, "cost_label", display_metric_name(cost), cs.unit);
    put_label(script, "quality_label", display_metric_name(quality), qs.unit);
    script_number(script, "quality_lower", lower);
    script_number(script, "quality_log", log_y);
}

void figure_axes_load(struct axes *axes, struct figure *figure, const struct runset *set,
                      const struct figure_request *request, struct config_table *table,
                      int cost_alone)
{
    const char *quality = figure_quality(set, request),
               *cost = request->cost ? request->cost : "e2e_ns";
    config_table_pareto(table, set, cost, quality);
    double typical = (double)NAN; /* the smallest cost, so that no tick has many decimals */
    for (size_t i = 0; i < table->n; i++)
        typical = fmin(typical, table->v[i].x.at);
    struct display_scale cs = display_scale(cost, typical), qs = display_scale(quality, 1);
    const char *direction = NULL;
    for (size_t i = 0; i < table->n && !direction; i++) {
        direction = rec_text(table->v[i].y.record, "quality_direction");
        direction = direction ? direction : rec_text(table->v[i].y.record, "direction");
    }
    for (size_t i = 0; i < table->n && !figure->why; i++)
        figure->why = rec_text(table->v[i].y.record, "value_reason");
    const int log_y = strstr(quality, "ppl") != NULL, lower = !scale_higher(quality, direction);
    *axes = (struct axes){figure, cost, quality, cs.divide, qs.divide, log_y, cost_alone, lower};
    config_table_keep(table, scale_cell, axes);
    put_axes(&figure->script, cost, cs, quality, qs, lower, log_y);
}

char *figure_axes_tip(const struct axes *axes, const struct config_row *row)
{
    struct buf text = {0};
    char *name = figure_row_name(row);
    buf_format(&text, "%s: %s ", name, display_metric_name(axes->cost));
    figure_put_value(&text, axes->cost, &row->x, axes->divide_x);
    if (isfinite(row->y.at)) {
        buf_format(&text, ", %s ", display_metric_name(axes->quality));
        figure_put_value(&text, axes->quality, &row->y, axes->divide_y);
    }
    if (row->disturbed)
        buf_text(&text, ", disturbed");
    free(name);
    return text.data;
}
