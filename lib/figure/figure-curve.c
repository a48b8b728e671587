/* figure-curve.c - draws quality against latency, with a panel for each contract and batch size.
 *
 * The points of a series differ in one setting, so a diffusion model is a curve and an
 * autoregressive model is a point. A panel has the points of one contract, batch size and length.
 * If a contract has several lengths, the most frequent one is drawn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/verdict/verdict.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure-axes.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"

enum { MAX_PANELS = 12 };

struct panels {
    const struct config_row *like[MAX_PANELS]; /* the first row of each panel */
    int n, others; /* others: rows of other lengths, or beyond the last panel */
    int alone;     /* number of panels left out, because they would have a single point */
};

static int is_like(const struct config_row *a, const struct config_row *b)
{
    return !strcmp(a->contract, b->contract) && figure_same(a->batch, b->batch) &&
           figure_same(a->length, b->length);
}

/* The panel of a row, from 1; 0: none. */
static int panel_of(const struct panels *panels, const struct config_row *row)
{
    for (int i = 0; i < panels->n; i++)
        if (is_like(panels->like[i], row))
            return i + 1;
    return 0;
}

/* The most frequent length of a contract; if several are as frequent, the longest. */
static double usual_length(const struct config_table *table, const char *contract)
{
    double best = (double)NAN;
    size_t most = 0;
    for (size_t i = 0; i < table->n; i++) {
        size_t count = 0;
        for (size_t k = 0; k < table->n && !strcmp(table->v[i].contract, contract); k++)
            count += !strcmp(table->v[k].contract, contract) &&
                     figure_same(table->v[k].length, table->v[i].length);
        if (count > most || (count == most && table->v[i].length > best)) {
            most = count;
            best = table->v[i].length;
        }
    }
    return best;
}

static int is_alone(const struct config_table *table, size_t i)
{
    for (size_t k = 0; k < table->n; k++)
        if (k != i && is_like(&table->v[k], &table->v[i]))
            return 0;
    return 1;
}

/* Finds the panels. Rows of a contract are adjacent, so its usual length is searched once. */
static void find_panels(struct panels *panels, const struct config_table *table)
{
    double length = (double)NAN;
    *panels = (struct panels){0};
    for (size_t i = 0; i < table->n; i++) {
        if (!i || strcmp(table->v[i].contract, table->v[i - 1].contract))
            length = usual_length(table, table->v[i].contract);
        int wanted = figure_same(table->v[i].length, length), alone = wanted && is_alone(table, i);
        panels->alone += alone;
        if (alone)
            continue;
        if (wanted && !panel_of(panels, &table->v[i]) && panels->n < MAX_PANELS)
            panels->like[panels->n++] = &table->v[i];
        panels->others += !panel_of(panels, &table->v[i]);
    }
}

/* 1: the quality of the row is better than `level`, or level is NaN (no row yet). */
static int is_better(const struct config_row *k, double level, int lower)
{
    return isnan(level) || (lower ? k->y.at < level : k->y.at > level);
}

/* Writes the front of each panel as one index: its members by cost, then a point at the right edge
 * with the quality of the last member. Resampling decides which points are members, so a member may
 * have a worse measured value than a cheaper member. The line leaves such members out. */
static void put_front(struct script *script, const struct config_table *table,
                      const struct panels *panels, int lower)
{
    script_table(script, "front", "cost quality");
    for (int panel = 0; panel < panels->n; panel++) {
        double done = -HUGE_VAL, widest = -HUGE_VAL, level = (double)NAN;
        if (panel)
            script_next(script, 2);
        for (;;) { /* next member in order of cost */
            const struct config_row *next = NULL;
            for (size_t i = 0; i < table->n; i++) {
                const struct config_row *k = &table->v[i];
                if (panel_of(panels, k) != panel + 1)
                    continue;
                widest = fmax(widest, k->x.hi);
                if (k->on_front && k->x.at > done &&
                    (!next || k->x.at < next->x.at ||
                     (k->x.at <= next->x.at && is_better(k, next->y.at, lower))))
                    next = k;
            }
            if (!next)
                break;
            done = next->x.at;
            if (!is_better(next, level, lower))
                continue;
            level = next->y.at;
            script_row(script, "nn", next->x.at, level);
        }
        if (isfinite(level))
            script_row(script, "nn", widest, level);
    }
    script_next(script, 2);
    script_table_end(script);
}

/* The cost at work `at` of a measured curve, linear between neighbours. over: the unit of `at`. */
static double cost_at(const struct config_table *table, const char *series, const char *over,
                      double at)
{
    const struct config_row *below = NULL, *above = NULL;
    double lo = -HUGE_VAL, hi = HUGE_VAL;
    for (size_t i = 0; i < table->n; i++) {
        const struct config_row *k = &table->v[i];
        double work = config_table_work(k, over);
        if (!series || strcmp(k->series, series))
            continue;
        if (work <= at && work > lo) {
            below = k;
            lo = work;
        }
        if (work >= at && work < hi) {
            above = k;
            hi = work;
        }
    }
    if (!below || !above)
        return (double)NAN;
    double share = hi > lo ? (at - lo) / (hi - lo) : 0;
    return below->x.at + share * (above->x.at - below->x.at);
}

/* The crossover X_q that a panel shows: the first one that exists; NULL: there is none. */
static const json_t *shown_crossover(const struct runset *set, const struct config_row *like,
                                     const char *quality)
{
    const json_t *record;
    size_t i;
    json_array_foreach(runset_kind(set, "crossover"), i, record) {
        const char *contract = rec_text(record, "contract"), *series = rec_text(record, "series");
        double length = rec_number(record, "gen_length");
        if (series && json_is_true(json_object_get(record, "exists")) &&
            verdict_find(set, "X_q", like->batch, quality, series) == record &&
            !strcmp(contract ? contract : "", like->contract) &&
            (isnan(length) || figure_same(length, like->length)))
            return record;
    }
    return NULL;
}

static void put_crossovers(struct script *out, const struct runset *set,
                           const struct config_table *table, const struct panels *panels,
                           const char *quality)
{
    int n = panels->n;
    double at[MAX_PANELS], lo[MAX_PANELS], hi[MAX_PANELS];
    for (int panel = 0; panel < n; panel++) {
        at[panel] = lo[panel] = hi[panel] = (double)NAN;
        const json_t *crossover = shown_crossover(set, panels->like[panel], quality);
        if (!crossover)
            continue;
        const char *series = rec_text(crossover, "series"), *over = rec_text(crossover, "over");
        at[panel] = cost_at(table, series, over, verdict_at(crossover));
        lo[panel] = rec_text(crossover, "lo_censored")
                        ? 0 /* from the left edge */
                        : cost_at(table, series, over, rec_number(crossover, "lo"));
        hi[panel] = cost_at(table, series, over, rec_number(crossover, "hi"));
    }
    script_numbers(out, "cross_at", at, n);
    script_numbers(out, "cross_lo", lo, n);
    script_numbers(out, "cross_hi", hi, n);
}

/* Sets cost and quality of LLaMA in each panel, for the reference lines and bands. */
static void put_guides(struct script *script, const struct config_table *table,
                       const struct panels *panels)
{
    int n = panels->n;
    double columns[6][MAX_PANELS];
    static const char *const names[] = {"guide_cost",    "guide_cost_lo",    "guide_cost_hi",
                                        "guide_quality", "guide_quality_lo", "guide_quality_hi"};
    for (int panel = 0; panel < n; panel++) {
        const struct config_row *llama = NULL;
        for (size_t i = 0; i < table->n && !llama; i++) {
            int here = panel_of(panels, &table->v[i]) == panel + 1;
            if (here && table->v[i].kind == CONFIG_AUTOREGRESSIVE)
                llama = &table->v[i];
        }
        const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
        const struct value cost = llama ? llama->x : none, height = llama ? llama->y : none;
        const double row[] = {cost.at, cost.lo, cost.hi, height.at, height.lo, height.hi};
        for (int i = 0; i < 6; i++)
            columns[i][panel] = row[i];
    }
    for (int i = 0; i < 6; i++)
        script_numbers(script, names[i], columns[i], n);
}

static void put_ranges(struct script *script, const struct config_table *table,
                       const struct panels *panels)
{
    int n = panels->n;
    double lo[MAX_PANELS], hi[MAX_PANELS];
    for (int panel = 0; panel < n; panel++) {
        lo[panel] = hi[panel] = (double)NAN;
        for (size_t i = 0; i < table->n; i++)
            if (panel_of(panels, &table->v[i]) == panel + 1) {
                const struct value *value = &table->v[i].x;
                lo[panel] = fmin(lo[panel], value->lo * FIGURE_FAR > 2 * value->at ? value->lo
                                                                                   : value->at / 2);
                hi[panel] = fmax(hi[panel], table->v[i].x.hi);
            }
    }
    script_numbers(script, "panel_lo", lo, n);
    script_numbers(script, "panel_hi", hi, n);
}

/* The label of a point: its value along the axis. The key names a method, so the label of a method
 * has only the values of its lists ("5"), because these values look alike. */
static const char *label_of(const struct config_row *row)
{
    return row->method ? row->values : row->along;
}

/* Writes the labels with one index for each panel. gnuplot 5.4 crashes if all labels are missing,
 * so a point without a label has an empty one. */
static void put_labels(struct script *script, const struct config_table *table,
                       const struct panels *panels)
{
    script_table(script, "labels", "cost quality kind text");
    for (int panel = 1; panel <= panels->n; panel++) {
        if (panel > 1)
            script_next(script, 4);
        for (size_t i = 0; i < table->n; i++) {
            const struct config_row *k = &table->v[i];
            if (panel_of(panels, k) == panel)
                script_row(script, "nnnt", k->x.at, k->y.at, (double)k->kind,
                           label_of(k));
        }
    }
    script_table_end(script);
}

/* The share of draws in which the point is on the front, by its front record; NaN: unknown. */
static double front_share(const struct runset *set, const struct config_row *k, const char *cost,
                          const char *quality)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "front"), i, record) {
        const char *x = rec_text(record, "cost_metric"), *y = rec_text(record, "quality_metric");
        const char *point = rec_text(record, "point");
        if (x && y && point && !strcmp(x, cost) && !strcmp(y, quality) && !strcmp(point, k->point))
            return rec_number(record, "p_front");
    }
    return (double)NAN;
}

static void put_titles(struct script *script, const struct panels *panels)
{
    char *title[MAX_PANELS];
    for (int panel = 0; panel < panels->n; panel++) {
        const struct config_row *like = panels->like[panel];
        char *what = *like->contract ? figure_deliver(like->contract, like->length) : mem_text("");
        title[panel] = mem_format("batch %.4g%s%s", like->batch, *what ? ", " : "", what);
        free(what);
    }
    script_texts(script, "panel_title", (const char *const *)title, panels->n);
    script_number(script, "panel_count", panels->n);
    for (int panel = 0; panel < panels->n; panel++)
        free(title[panel]);
}

static int keep_size(const struct config_row *row, const void *ctx)
{
    const struct figure_request *request = ctx;
    return (isnan(request->batch) || figure_same(request->batch, row->batch)) &&
           (isnan(request->length) || figure_same(request->length, row->length)) &&
           (!request->contract || !strcmp(request->contract, row->contract));
}

static void put_points(struct figure *figure, const struct runset *set,
                       const struct config_table *table, const struct panels *panels,
                       const struct axes *axes)
{
    struct script *out = &figure->script;
    const struct config_row *before = NULL;
    struct series series = {0};
    script_table(out, "points", "cost cost_lo cost_hi quality quality_lo quality_hi value "
                                "disturbed p_front config");
    for (size_t i = 0; i < table->n; i++) {
        const struct config_row *k = &table->v[i];
        int panel = panel_of(panels, k);
        if (panel && series_next(out, &series, k, before, panel, 10)) {
            script_row(out, "nnnnnnnnnt", k->x.at, k->x.lo, k->x.hi, k->y.at, k->y.lo, k->y.hi,
                       k->value, (double)k->disturbed,
                       front_share(set, k, axes->cost, axes->quality), k->config);
            char *text = figure_axes_tip(axes, k);
            figure_tip(figure, panel, k->x.at, k->y.at, NULL, "%s", text);
            free(text);
            before = k;
        }
    }
    script_table_end(out);
    series_put(out, &series);
}

void figure_pareto(struct figure *figure, const struct runset *set,
                   const struct figure_request *request)
{
    struct config_table table = {0};
    struct script *out = &figure->script;
    struct axes axis;
    struct panels panels;
    figure_axes_load(&axis, figure, set, request, &table, 0);
    config_table_keep(&table, keep_size, request);
    find_panels(&panels, &table);
    put_points(figure, set, &table, &panels, &axis);
    char *axes = figure_axes(&table);
    if (out->points) {
        put_front(out, &table, &panels, axis.lower);
        put_guides(out, &table, &panels);
        put_labels(out, &table, &panels);
        put_ranges(out, &table, &panels);
        put_crossovers(out, set, &table, &panels, axis.quality);
        put_titles(out, &panels);
    }
    const int is_time = !strcmp(axis.cost, "e2e_ns");
    figure_say(figure,
               "Quality (%s) against %s; up and to the left is better. Labels beside the "
               "points: %s. Lines join the points of one sweep. The faint lines cross at LLaMA. "
               "Grey steps: the best quality within each %s, without interpolation. "
               "Vertical line: the least work from which LLaDA is shown to match LLaMA; shaded: "
               "its interval.",
               display_metric_name(axis.quality),
               is_time ? "latency" : display_metric_name(axis.cost), axes,
               is_time ? "latency budget" : "value on the other axis");
    if (panels.alone && !out->points)
        figure->why = "a panel would have a single point";
    else if (panels.alone)
        figure_say(figure, "Panels left out, because they would have a single point: %d.",
                   panels.alone);
    if (panels.others)
        figure_say(figure, "Points left out, because they have another length: %d.", panels.others);
    free(axes);
    config_table_free(&table);
}
