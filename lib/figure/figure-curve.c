/* figure-curve.c - figures with the points of sweeps on curves: pareto, steps.
 *
 * A series is what differs in one setting, so a diffusion model is a curve and an autoregressive
 * one a point. Every series is one index of the datablock, in the order of config_table.h, and has
 * one entry in each of the arrays series_*: the script loops over those. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/analysis/format.h"
#include "lib/record/rec.h"
#include "lib/analysis/verdict.h"

enum { MAX_SERIES = 48, MAX_PANELS = 6 };

struct series {
    const char *name[MAX_SERIES];
    double kind[MAX_SERIES], panel[MAX_SERIES];
    double variant[MAX_SERIES]; /* 1 for the first series of its kind in a panel, 2, ... */
    int n;
};

static void put_series(struct script *s, const struct series *l)
{
    script_texts(s, "series_name", l->name, l->n);
    script_numbers(s, "series_kind", l->kind, l->n);
    script_numbers(s, "series_panel", l->panel, l->n);
    script_numbers(s, "series_variant", l->variant, l->n);
    script_number(s, "series_count", l->n);
}

/* Opens a series when c does not continue that of `before`. 0: no room for it. */
static int next_series(struct script *s, struct series *l, const struct config_row *c,
                       const struct config_row *before, double panel, int columns)
{
    if (before && config_table_together(before, c))
        return 1;
    if (l->n == MAX_SERIES)
        return 0;
    if (l->n)
        script_next(s, columns);
    l->name[l->n] = c->name;
    l->kind[l->n] = (double)c->kind;
    l->panel[l->n] = panel;
    int again = l->n && l->panel[l->n - 1] >= panel && l->kind[l->n - 1] >= l->kind[l->n];
    l->variant[l->n] = again ? l->variant[l->n - 1] + 1 : 1;
    l->n++;
    return 1;
}

/* ---- pareto ---- */

static int panel_of(const double *batches, int n, double batch)
{
    for (int i = 0; i < n; i++)
        if (batches[i] >= batch)
            return i + 1;
    return n;
}

/* The front of each panel is one index: its members by cost, then the last level out to the
 * right. */
static void put_front(struct script *s, const struct config_table *c, const double *batches, int n)
{
    script_table(s, "front", "cost quality");
    for (int p = 0; p < n; p++) {
        double done = -HUGE_VAL, widest = -HUGE_VAL, level = (double)NAN;
        if (p)
            script_next(s, 2);
        for (;;) { /* next member in order of cost */
            const struct config_row *next = NULL;
            for (size_t i = 0; i < c->n; i++) {
                const struct config_row *k = &c->v[i];
                if (panel_of(batches, n, k->batch) != p + 1)
                    continue;
                widest = fmax(widest, k->x.hi);
                if (k->on_front && k->x.at > done && (!next || k->x.at < next->x.at))
                    next = k;
            }
            if (!next)
                break;
            script_row(s, "nn", next->x.at, next->y.at);
            done = next->x.at;
            level = next->y.at;
        }
        if (isfinite(level))
            script_row(s, "nn", widest, level);
    }
    script_next(s, 2);
    script_table_end(s);
}

/* Cost at a place of a measured curve, linear between neighbours. `over`: what the place counts. */
static double cost_at(const struct config_table *c, const char *series, const char *over, double at)
{
    const struct config_row *below = NULL, *above = NULL;
    double lo = -HUGE_VAL, hi = HUGE_VAL;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
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
    double t = hi > lo ? (at - lo) / (hi - lo) : 0;
    return below->x.at + t * (above->x.at - below->x.at);
}

/* The series that a panel tells of: the first that reaches LLaMA's quality, else the first;
 * NULL: there is none. */
static const char *told_series(const struct runset *s, double batch, const char *quality)
{
    const json_t *first = verdict_find(s, "X_q", batch, quality, NULL), *r;
    size_t i;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *series = rec_text(r, "series");
        const json_t *q = series ? verdict_find(s, "X_q", batch, quality, series) : NULL;
        if (q && json_is_true(json_object_get(q, "exists")))
            return series;
    }
    return rec_text(first, "series");
}

/* Its name, where a panel has several; "". */
static const char *told_name(const struct config_table *c, double batch, const char *series)
{
    const struct config_row *first = NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        if (k->kind != CONFIG_DIFFUSION || k->batch < batch || k->batch > batch)
            continue;
        if (first && !config_table_together(first, k)) {
            const char *name = config_table_name(c, series);
            return name ? name : "";
        }
        first = first ? first : k;
    }
    return "";
}

/* "as good from 24.5 [17.2, 34.0] steps", or what else the record says. The caller frees. */
static char *crossover_note(const struct runset *s, const json_t *r, const char *name,
                            const char *before)
{
    struct buf b = {0};
    if (r && *name)
        buf_format(&b, "%s: ", name);
    if (r && json_is_true(json_object_get(r, "exists"))) {
        buf_text(&b, before);
        verdict_place(&b, s, r);
        buf_format(&b, " %s", verdict_unit(r, 0));
        verdict_values(&b, r);
    } else if (rec_text(r, "reason")) {
        format_clean(&b, rec_text(r, "reason"), 60);
    }
    return b.data ? b.data : mem_text("");
}

static void put_crossovers(struct figure *f, const struct runset *s, const struct config_table *c,
                           const double *batches, int n, const char *quality)
{
    double at[MAX_PANELS], lo[MAX_PANELS], hi[MAX_PANELS];
    char *good[MAX_PANELS], *fast[MAX_PANELS];
    for (int p = 0; p < n; p++) {
        at[p] = lo[p] = hi[p] = (double)NAN;
        const char *series = told_series(s, batches[p], quality);
        const char *name = told_name(c, batches[p], series);
        const json_t *q = verdict_find(s, "X_q", batches[p], quality, series);
        const json_t *lat = verdict_find(s, "X_lat", batches[p], quality, series);
        if (q && json_is_true(json_object_get(q, "exists"))) {
            const char *over = rec_text(q, "over");
            at[p] = cost_at(c, series, over, verdict_at(q));
            lo[p] = cost_at(c, series, over, rec_number(q, "lo"));
            hi[p] = cost_at(c, series, over, rec_number(q, "hi"));
        }
        good[p] = crossover_note(s, q, name, "as good from ");
        fast[p] = crossover_note(s, lat, "", "as fast up to ");
    }
    struct script *out = &f->script;
    script_numbers(out, "cross_at", at, n);
    script_numbers(out, "cross_lo", lo, n);
    script_numbers(out, "cross_hi", hi, n);
    script_texts(out, "note_good", (const char *const *)good, n);
    script_texts(out, "note_fast", (const char *const *)fast, n);
    for (int p = 0; p < n; p++) {
        free(good[p]);
        free(fast[p]);
    }
}

/* Where LLaMA stands in each panel: the figure's reference lines and bands. */
static void put_guides(struct script *s, const struct config_table *c, const double *batches, int n)
{
    double v[6][MAX_PANELS];
    static const char *const names[] = {"guide_cost",    "guide_cost_lo",    "guide_cost_hi",
                                        "guide_quality", "guide_quality_lo", "guide_quality_hi"};
    for (int p = 0; p < n; p++) {
        const struct config_row *llama = NULL;
        for (size_t i = 0; i < c->n && !llama; i++) {
            int here = panel_of(batches, n, c->v[i].batch) == p + 1;
            if (here && c->v[i].kind == CONFIG_AUTOREGRESSIVE)
                llama = &c->v[i];
        }
        const struct value none = {(double)NAN, (double)NAN, (double)NAN, NULL};
        const struct value x = llama ? llama->x : none, y = llama ? llama->y : none;
        const double row[] = {x.at, x.lo, x.hi, y.at, y.lo, y.hi};
        for (int i = 0; i < 6; i++)
            v[i][p] = row[i];
    }
    for (int i = 0; i < 6; i++)
        script_numbers(s, names[i], v[i], n);
}

static void put_ranges(struct script *s, const struct config_table *c, const double *batches, int n)
{
    double lo[MAX_PANELS], hi[MAX_PANELS];
    for (int p = 0; p < n; p++) {
        lo[p] = hi[p] = (double)NAN;
        for (size_t i = 0; i < c->n; i++)
            if (panel_of(batches, n, c->v[i].batch) == p + 1) {
                const struct value *x = &c->v[i].x;
                lo[p] = fmin(lo[p], x->lo * FIGURE_FAR > 2 * x->at ? x->lo : x->at / 2);
                hi[p] = fmax(hi[p], c->v[i].x.hi);
            }
    }
    script_numbers(s, "panel_lo", lo, n);
    script_numbers(s, "panel_hi", hi, n);
}

/* The value along the axis beside each point, one index a panel. gnuplot 5.4 crashes on labels that
 * are all holes, so points without an axis have a blank one. */
static void put_labels(struct script *s, const struct config_table *c, const double *batches, int n)
{
    script_table(s, "labels", "cost quality kind text");
    for (int p = 1; p <= n; p++) {
        if (p > 1)
            script_next(s, 4);
        for (size_t i = 0; i < c->n; i++) {
            const struct config_row *k = &c->v[i];
            if (panel_of(batches, n, k->batch) == p)
                script_row(s, "nnnt", k->x.at, k->y.at, (double)k->kind, k->along);
        }
    }
    script_table_end(s);
}

/* Scales both axes; cells that cannot be drawn are dropped. */
struct axes {
    struct figure *f;
    double divide_x, divide_y;
    int log_y, cost_alone; /* cost_alone: a cell may lack its quality */
};

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

static void put_axes(struct script *s, const char *cost, struct scale cs, const char *quality,
                     struct scale qs, int lower, int log_y)
{
    struct buf b = {0};
    buf_format(&b, "%s%s%s%s", format_metric_name(cost), *cs.unit ? " (" : "", cs.unit,
               *cs.unit ? ")" : "");
    script_text(s, "cost_label", b.data);
    buf_clear(&b);
    buf_format(&b, "%s%s%s%s", format_metric_name(quality), *qs.unit ? " (" : "", qs.unit,
               *qs.unit ? ")" : "");
    script_text(s, "quality_label", b.data);
    script_number(s, "quality_lower", lower);
    script_number(s, "quality_log", log_y);
    buf_free(&b);
}

/* Fills c with the drawable cells of cost and quality, in the units of the axes. */
static void load_axes(struct figure *f, const struct runset *s, const struct figure_request *q,
                      struct config_table *c, int cost_alone)
{
    const char *quality = figure_quality(s, q), *cost = q->cost ? q->cost : "e2e_ns";
    config_table_pareto(c, s, cost, quality);
    double typical = (double)NAN; /* the smallest, so that no tick is a long fraction */
    for (size_t i = 0; i < c->n; i++)
        typical = fmin(typical, c->v[i].x.at);
    struct scale cs = format_scale(cost, typical), qs = format_scale(quality, 1);
    const char *direction = NULL;
    for (size_t i = 0; i < c->n && !direction; i++) {
        direction = rec_text(c->v[i].y.record, "quality_direction");
        direction = direction ? direction : rec_text(c->v[i].y.record, "direction");
    }
    for (size_t i = 0; i < c->n && !f->why; i++)
        f->why = rec_text(c->v[i].y.record, "value_reason");
    int log_y = strstr(quality, "ppl") != NULL;
    const struct axes axes = {f, cs.divide, qs.divide, log_y, cost_alone};
    config_table_keep(c, scale_cell, &axes);
    put_axes(&f->script, cost, cs, quality, qs, format_lower_is_better(quality, direction), log_y);
}

void figure_pareto(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    struct script *out = &f->script;
    double batches[MAX_PANELS];
    load_axes(f, s, q, &c, 0);
    int n = config_table_values(&c, CONFIG_BATCH, batches, MAX_PANELS);
    struct series l = {0};
    script_table(out, "points", "cost cost_lo cost_hi quality quality_lo quality_hi value config");
    for (size_t i = 0; i < c.n; i++) {
        const struct config_row *k = &c.v[i];
        if (k->batch > batches[n - 1] ||
            !next_series(out, &l, k, i ? k - 1 : NULL, panel_of(batches, n, k->batch), 8)) {
            out->skipped++;
            continue;
        }
        script_row(out, "nnnnnnnt", k->x.at, k->x.lo, k->x.hi, k->y.at, k->y.lo, k->y.hi,
                   k->value, k->config);
    }
    script_table_end(out);
    char *axes = figure_axes(&c);
    if (out->points) {
        put_front(out, &c, batches, n);
        put_guides(out, &c, batches, n);
        put_labels(out, &c, batches, n);
        put_ranges(out, &c, batches, n);
        put_crossovers(f, s, &c, batches, n, figure_quality(s, q));
        put_series(out, &l);
        script_numbers(out, "panel_batch", batches, n);
        script_number(out, "panel_count", n);
    }
    figure_say(f, "Quality against latency; up and to the left is better. What stands beside "
                  "the points: %s; only points of one sweep are joined. The faint lines cross at "
                  "LLaMA. Grey steps: the best quality within each latency budget, without "
                  "interpolation. Shaded: where LLaDA's quality equals LLaMA's, with the interval "
                  "of that point.", axes);
    free(axes);
    config_table_free(&c);
}

/* ---- steps ---- */

static int keep_batch(const struct config_row *c, const void *ctx)
{
    const double *batch = ctx;
    return c->batch >= *batch && c->batch <= *batch;
}

/* The value of each launch, behind the summary: a reader sees the spread, not only its interval. */
static void put_launches(struct script *s, const struct config_table *c, double divide)
{
    script_table(s, "launches", "work cost kind");
    for (size_t i = 0; i < c->n; i++) {
        size_t k;
        const json_t *v;
        json_array_foreach(json_object_get(c->v[i].x.record, "launch_values"), k, v) {
            double at = rec_number(v, "value") / divide;
            if (c->v[i].kind == CONFIG_DIFFUSION && gnuplot_drawable(at, 1))
                script_row(s, "nnn", config_table_work(&c->v[i], NULL), at,
                           (double)c->v[i].kind);
        }
    }
    script_next(s, 3);
    script_table_end(s);
}

/* The value beside each point of a sweep whose axis is not what the figure runs over. */
static void put_values(struct script *s, const struct config_table *c)
{
    script_table(s, "labels", "work cost quality kind text");
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int other = k->axis && strcmp(k->axis, "steps");
        if (k->kind == CONFIG_DIFFUSION)
            script_row(s, "nnnnt", config_table_work(k, NULL), k->x.at, k->y.at, (double)k->kind,
                       other ? k->along : "");
    }
    if (!s->points)
        script_next(s, 5);
    script_table_end(s);
}

void figure_steps(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    struct script *out = &f->script;
    load_axes(f, s, q, &c, 1);
    double smallest[1];
    double batch = config_table_values(&c, CONFIG_BATCH, smallest, 1) ? smallest[0] : 1;
    for (size_t i = 0; i < c.n; i++)
        batch = fmin(batch, c.v[i].batch);
    if (!isnan(q->batch))
        batch = q->batch;
    config_table_keep(&c, keep_batch, &batch);
    struct series l = {0};
    int judged = 0, measured = 0; /* measured: some sweep runs along another axis than steps */
    script_table(out, "points", "work cost cost_lo cost_hi quality quality_lo quality_hi config");
    for (size_t i = 0; i < c.n; i++) {
        const struct config_row *k = &c.v[i];
        judged |= k->kind != CONFIG_AUTOREGRESSIVE && !isnan(k->y.at);
        measured |= k->axis && strcmp(k->axis, "steps");
        if (!next_series(out, &l, k, i ? k - 1 : NULL, 1, 8)) {
            out->skipped++;
            continue;
        }
        script_row(out, "nnnnnnnt", config_table_work(k, NULL), k->x.at, k->x.lo, k->x.hi,
                   k->y.at, k->y.lo, k->y.hi, k->config);
    }
    script_table_end(out);
    double divide = c.n && c.v[0].x.at > 0
                        ? rec_number(c.v[0].x.record, "value") / c.v[0].x.at
                        : (double)NAN;
    put_launches(out, &c, divide);
    put_series(out, &l);
    put_guides(out, &c, &batch, 1);
    put_ranges(out, &c, &batch, 1);
    script_number(out, "batch", batch);
    script_number(out, "judged", judged);
    script_number(out, "labelled", measured);
    script_text(out, "work_label", measured ? "denoising passes" : "denoising steps");
    put_values(out, &c);
    figure_say(f, "Latency%s against the number of denoising %s, batch %.0f. The horizontal "
                  "line and band are LLaMA and its interval. Small grey points: the single "
                  "launches.",
               judged ? " and quality" : "", measured ? "passes" : "steps", batch);
    if (measured) {
        char *axes = figure_axes(&c);
        figure_say(f, "Passes are those that an answer took, as measured. Beside the points: %s.",
                   axes);
        free(axes);
    }
    if (!judged)
        figure_say(f, "There is no quality%s%s.", f->why ? ": " : "", f->why ? f->why : "");
    config_table_free(&c);
}
