/* figure-curve.c - quality against latency: a panel for each contract and batch size.
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
    int n, others; /* rows of other lengths, or beyond the last panel */
    int alone;     /* panels that would hold a single point */
};

static int is_like(const struct config_row *a, const struct config_row *b)
{
    return !strcmp(a->contract, b->contract) && figure_same(a->batch, b->batch) &&
           figure_same(a->length, b->length);
}

/* The panel of a row, from 1; 0: none. */
static int panel_of(const struct panels *p, const struct config_row *c)
{
    for (int i = 0; i < p->n; i++)
        if (is_like(p->like[i], c))
            return i + 1;
    return 0;
}

/* The most frequent length of a contract; if several are as frequent, the longest. */
static double usual_length(const struct config_table *c, const char *contract)
{
    double best = (double)NAN;
    size_t most = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t count = 0;
        for (size_t k = 0; k < c->n && !strcmp(c->v[i].contract, contract); k++)
            count += !strcmp(c->v[k].contract, contract) &&
                     figure_same(c->v[k].length, c->v[i].length);
        if (count > most || (count == most && c->v[i].length > best)) {
            most = count;
            best = c->v[i].length;
        }
    }
    return best;
}

static int is_alone(const struct config_table *c, size_t i)
{
    for (size_t k = 0; k < c->n; k++)
        if (k != i && is_like(&c->v[k], &c->v[i]))
            return 0;
    return 1;
}

/* Rows of a contract are adjacent, so its length is searched once. */
static void find_panels(struct panels *p, const struct config_table *c)
{
    double length = (double)NAN;
    *p = (struct panels){0};
    for (size_t i = 0; i < c->n; i++) {
        if (!i || strcmp(c->v[i].contract, c->v[i - 1].contract))
            length = usual_length(c, c->v[i].contract);
        int wanted = figure_same(c->v[i].length, length), alone = wanted && is_alone(c, i);
        p->alone += alone;
        if (alone)
            continue;
        if (wanted && !panel_of(p, &c->v[i]) && p->n < MAX_PANELS)
            p->like[p->n++] = &c->v[i];
        p->others += !panel_of(p, &c->v[i]);
    }
}

/* 1: the row is better than `level`; NaN: there is none yet. */
static int is_better(const struct config_row *k, double level, const char *quality)
{
    const int lower = display_lower_is_better(quality, rec_text(k->y.record, "direction"));
    return isnan(level) || (lower ? k->y.at < level : k->y.at > level);
}

/* The front of each panel is one index: its members by cost, then a point at the right edge with
 * the quality of the last member. Resampling decides which points are members. By its measured
 * value a member may be worse than a cheaper one: the line leaves such a member out. */
static void put_front(struct script *s, const struct config_table *c, const struct panels *panels,
                      const char *quality)
{
    script_table(s, "front", "cost quality");
    for (int p = 0; p < panels->n; p++) {
        double done = -HUGE_VAL, widest = -HUGE_VAL, level = (double)NAN;
        if (p)
            script_next(s, 2);
        for (;;) { /* next member in order of cost */
            const struct config_row *next = NULL;
            for (size_t i = 0; i < c->n; i++) {
                const struct config_row *k = &c->v[i];
                if (panel_of(panels, k) != p + 1)
                    continue;
                widest = fmax(widest, k->x.hi);
                if (k->on_front && k->x.at > done &&
                    (!next || k->x.at < next->x.at ||
                     (k->x.at <= next->x.at && is_better(k, next->y.at, quality))))
                    next = k;
            }
            if (!next)
                break;
            done = next->x.at;
            if (!is_better(next, level, quality))
                continue;
            level = next->y.at;
            script_row(s, "nn", next->x.at, level);
        }
        if (isfinite(level))
            script_row(s, "nn", widest, level);
    }
    script_next(s, 2);
    script_table_end(s);
}

/* The cost at a place of a measured curve, linear between neighbours. over: the unit of `at`. */
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

/* The X_q that a panel shows: the first that exists; NULL: there is none. */
static const json_t *shown_crossover(const struct runset *s, const struct config_row *like,
                                     const char *quality)
{
    const json_t *r;
    size_t i;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *contract = rec_text(r, "contract"), *series = rec_text(r, "series");
        double length = rec_number(r, "gen_length");
        if (series && json_is_true(json_object_get(r, "exists")) &&
            verdict_find(s, "X_q", like->batch, quality, series) == r &&
            !strcmp(contract ? contract : "", like->contract) &&
            (isnan(length) || figure_same(length, like->length)))
            return r;
    }
    return NULL;
}

static void put_crossovers(struct script *out, const struct runset *s, const struct config_table *c,
                           const struct panels *panels, const char *quality)
{
    int n = panels->n;
    double at[MAX_PANELS], lo[MAX_PANELS], hi[MAX_PANELS];
    for (int p = 0; p < n; p++) {
        at[p] = lo[p] = hi[p] = (double)NAN;
        const json_t *q = shown_crossover(s, panels->like[p], quality);
        if (!q)
            continue;
        const char *series = rec_text(q, "series"), *over = rec_text(q, "over");
        at[p] = cost_at(c, series, over, verdict_at(q));
        lo[p] = rec_text(q, "lo_censored") ? 0 /* from the left edge */
                                           : cost_at(c, series, over, rec_number(q, "lo"));
        hi[p] = cost_at(c, series, over, rec_number(q, "hi"));
    }
    script_numbers(out, "cross_at", at, n);
    script_numbers(out, "cross_lo", lo, n);
    script_numbers(out, "cross_hi", hi, n);
}

/* Cost and quality of LLaMA in each panel, for the reference lines and bands. */
static void put_guides(struct script *s, const struct config_table *c, const struct panels *panels)
{
    int n = panels->n;
    double v[6][MAX_PANELS];
    static const char *const names[] = {"guide_cost",    "guide_cost_lo",    "guide_cost_hi",
                                        "guide_quality", "guide_quality_lo", "guide_quality_hi"};
    for (int p = 0; p < n; p++) {
        const struct config_row *llama = NULL;
        for (size_t i = 0; i < c->n && !llama; i++) {
            int here = panel_of(panels, &c->v[i]) == p + 1;
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

static void put_ranges(struct script *s, const struct config_table *c, const struct panels *panels)
{
    int n = panels->n;
    double lo[MAX_PANELS], hi[MAX_PANELS];
    for (int p = 0; p < n; p++) {
        lo[p] = hi[p] = (double)NAN;
        for (size_t i = 0; i < c->n; i++)
            if (panel_of(panels, &c->v[i]) == p + 1) {
                const struct value *x = &c->v[i].x;
                lo[p] = fmin(lo[p], x->lo * FIGURE_FAR > 2 * x->at ? x->lo : x->at / 2);
                hi[p] = fmax(hi[p], c->v[i].x.hi);
            }
    }
    script_numbers(s, "panel_lo", lo, n);
    script_numbers(s, "panel_hi", hi, n);
}

/* Labels with the value along the axis, one index a panel. gnuplot 5.4 crashes if all labels are
 * missing, so a point without an axis has an empty label. So has a method, which the key names. */
static void put_labels(struct script *s, const struct config_table *c, const struct panels *panels)
{
    script_table(s, "labels", "cost quality kind text");
    for (int p = 1; p <= panels->n; p++) {
        if (p > 1)
            script_next(s, 4);
        for (size_t i = 0; i < c->n; i++) {
            const struct config_row *k = &c->v[i];
            if (panel_of(panels, k) == p)
                script_row(s, "nnnt", k->x.at, k->y.at, (double)k->kind,
                           k->is_method ? "" : k->along);
        }
    }
    script_table_end(s);
}

/* The share of draws in which the point is on the front, a column of the table; NaN: unknown. */
static double front_share(const struct runset *s, const struct config_row *k, const char *cost,
                          const char *quality)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "front"), i, r) {
        const char *x = rec_text(r, "cost_metric"), *y = rec_text(r, "quality_metric");
        const char *point = rec_text(r, "point");
        if (x && y && point && !strcmp(x, cost) && !strcmp(y, quality) && !strcmp(point, k->point))
            return rec_number(r, "p_front");
    }
    return (double)NAN;
}

static void put_titles(struct script *s, const struct panels *panels)
{
    char *title[MAX_PANELS];
    for (int p = 0; p < panels->n; p++) {
        const struct config_row *like = panels->like[p];
        char *what = *like->contract ? figure_deliver(like->contract, like->length) : mem_text("");
        title[p] = mem_format("batch %.4g%s%s", like->batch, *what ? ", " : "", what);
        free(what);
    }
    script_texts(s, "panel_title", (const char *const *)title, panels->n);
    script_number(s, "panel_count", panels->n);
    for (int p = 0; p < panels->n; p++)
        free(title[p]);
}

static int keep_size(const struct config_row *c, const void *ctx)
{
    const struct figure_request *q = ctx;
    return (isnan(q->batch) || figure_same(q->batch, c->batch)) &&
           (isnan(q->length) || figure_same(q->length, c->length)) &&
           (!q->contract || !strcmp(q->contract, c->contract));
}

static void put_points(struct figure *f, const struct runset *s, const struct config_table *c,
                       const struct panels *panels, const struct axes *a)
{
    struct script *out = &f->script;
    const struct config_row *before = NULL;
    struct series l = {0};
    script_table(out, "points", "cost cost_lo cost_hi quality quality_lo quality_hi value "
                                "disturbed p_front config");
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *k = &c->v[i];
        int panel = panel_of(panels, k);
        if (panel && series_next(out, &l, k, before, panel, 10)) {
            script_row(out, "nnnnnnnnnt", k->x.at, k->x.lo, k->x.hi, k->y.at, k->y.lo, k->y.hi,
                       k->value, (double)k->disturbed, front_share(s, k, a->cost, a->quality),
                       k->config);
            char *text = figure_axes_tip(a, k);
            figure_tip(f, panel, k->x.at, k->y.at, NULL, "%s", text);
            free(text);
            before = k;
        }
    }
    script_table_end(out);
    series_put(out, &l);
}

void figure_pareto(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    struct config_table c = {0};
    struct script *out = &f->script;
    struct axes a;
    struct panels panels;
    figure_axes_load(&a, f, s, q, &c, 0);
    config_table_keep(&c, keep_size, q);
    find_panels(&panels, &c);
    put_points(f, s, &c, &panels, &a);
    char *axes = figure_axes(&c);
    if (out->points) {
        put_front(out, &c, &panels, a.quality);
        put_guides(out, &c, &panels);
        put_labels(out, &c, &panels);
        put_ranges(out, &c, &panels);
        put_crossovers(out, s, &c, &panels, a.quality);
        put_titles(out, &panels);
    }
    const int is_time = !strcmp(a.cost, "e2e_ns");
    figure_say(f, "Quality (%s) against %s; up and to the left is better. Labels beside the "
                  "points: %s. Lines join the points of one sweep. The faint lines cross at LLaMA. "
                  "Grey steps: the best quality within each %s, without interpolation. "
                  "Vertical line: the least work from which LLaDA is shown to match LLaMA; shaded: "
                  "its interval.", display_metric_name(a.quality),
               is_time ? "latency" : display_metric_name(a.cost), axes,
               is_time ? "latency budget" : "value on the other axis");
    if (panels.alone && !out->points)
        f->why = "a panel would have a single point";
    else if (panels.alone)
        figure_say(f, "Panels left out, because they would have a single point: %d.", panels.alone);
    if (panels.others)
        figure_say(f, "Points left out, because they have another length: %d.", panels.others);
    free(axes);
    config_table_free(&c);
}
