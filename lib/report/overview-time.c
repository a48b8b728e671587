/* overview-time.c - see overview.h: quality and time by steps, and the decoding methods. A ratio of
 * times is shown only with an interval: without one, launches were too few or disturbed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/overview.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
enum { QUALITIES = 3 };

/* ---- ratios ---- */

/* The clock of the ratios: that of the claims, if the comparisons have it. */
static const char *clock_of(const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (claims_are_of_processor(s) && rec_is(r, "metric", "cpu_ns"))
            return "cpu_ns";
    return "e2e_ns";
}

static const char *ratio_title(const struct runset *s)
{
    return strcmp(clock_of(s), "cpu_ns") ? "Elapsed time / LLaMA’s"
                                         : "Processor time / LLaMA’s";
}

/* Puts the ratio of the point's time to LLaMA's time: from the claim for all tasks by this clock,
 * else from the comparison. Without an interval the cell is empty. */
static void put_ratio(struct page *p, const struct runset *s, const char *point,
                      const json_t *comparison)
{
    const char *clock = strcmp(clock_of(s), "cpu_ns") ? "wall" : "cpu";
    const json_t *r = comparison, *claim;
    size_t i;
    json_array_foreach(runset_kind(s, "claim"), i, claim)
        if (rec_is(claim, "clock", clock) && rec_is(claim, "unit", "x") && point &&
            rec_is(claim, "llada", point) && !rec_text(claim, "task") &&
            !rec_is(claim, "key", "throughput"))
            r = claim;
    double v = rec_number(r, "value"), lo = rec_number(r, "lo"), hi = rec_number(r, "hi");
    if (isnan(lo) || isnan(hi) || claims_times_are_null(s))
        v = (double)NAN;
    page_value(p, v, lo, hi, NULL);
}

/* ---- quality and time ---- */

struct main_sweep { const char *contract, *series; double batch; };

/* The sweep over steps with most points, of the first contract and the smallest batch. */
static struct main_sweep find_sweep(const struct config_table *c)
{
    struct main_sweep m = {NULL, NULL, (double)NAN};
    size_t most = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct config_row *a = &c->v[i];
        size_t n = 0;
        if (a->kind != CONFIG_DIFFUSION || a->is_method || !a->axis || strcmp(a->axis, "steps") ||
            (m.contract && (strcmp(a->contract, m.contract) || a->batch > m.batch)))
            continue;
        for (size_t k = i; k < c->n; k++)
            n += config_table_together(a, &c->v[k]) ? 1 : 0;
        if (n > most || !m.contract)
            m = (struct main_sweep){a->contract, a->series, a->batch};
        most = n > most ? n : most;
    }
    return m;
}

static int is_beside(const struct config_row *a, const struct main_sweep *m)
{
    return !strcmp(a->contract, m->contract) && !(a->batch < m->batch) && !(a->batch > m->batch);
}

/* Appends a metric to the columns unless it is there. */
static size_t add_metric(const char **metrics, size_t n, const char *metric)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(metrics[i], metric))
            return n;
    if (n < QUALITIES)
        metrics[n++] = metric;
    return n;
}

/* The quality columns: the metrics of the goals, else accuracy and judge perplexity. */
static size_t find_metrics(const char **metrics, const struct runset *s)
{
    static const char *const usual[] = {"accuracy", "judge_ppl"};
    size_t n = 0, i;
    const json_t *x, *r;
    for (i = 0; (x = claims_equal_quality(s, i)) != NULL; i++)
        n = add_metric(metrics, n, rec_text(x, "quality_metric"));
    for (size_t k = 0; !claims_equal_quality(s, 0) && k < COUNT(usual); k++)
        json_array_foreach(runset_kind(s, "quality"), i, r)
            if (rec_is(r, "metric", usual[k]))
                n = add_metric(metrics, n, usual[k]);
    return n;
}

/* Puts "shown", or "shown for sum, not shown for story", by the X_q claims. */
static void put_shown(struct page *p, const struct runset *s, double steps)
{
    struct buf b = {0};
    const json_t *x;
    size_t n = 0, shown = 0;
    for (; !isnan(steps) && (x = claims_equal_quality(s, n)) != NULL; n++) {
        const char *task = rec_text(x, "task");
        int is = steps >= rec_number(x, "value");
        shown += is ? 1 : 0;
        buf_format(&b, "%s%s%s%s", n ? ", " : "", is ? "shown" : "not shown", task ? " for " : "",
                   task ? task : "");
    }
    page_cell(p, !n ? "–" : shown == n ? "shown" : !shown ? "not shown" : b.data);
    buf_free(&b);
}

static void put_step(struct page *p, const struct runset *s, const struct config_row *a,
                     const char *const *metrics, size_t n)
{
    char *name = a->kind == CONFIG_DIFFUSION ? mem_format("%s, %s steps", a->model, a->along)
                                             : mem_text(a->model);
    page_cell(p, name);
    page_count(p, a->passes);
    page_value(p, a->y.at, a->y.lo, a->y.hi, NULL);
    if (a->kind == CONFIG_DIFFUSION)
        put_ratio(p, s, a->point, runset_comparison(s, "paradigm", a->point, clock_of(s)));
    else
        page_count(p, 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *r = runset_find(s, "quality", a->point, metrics[i]);
        page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), NULL);
    }
    put_shown(p, s, a->kind == CONFIG_DIFFUSION ? a->value : (double)NAN);
    free(name);
}

static char *caption_of_quality(const struct runset *s)
{
    struct buf b = {0};
    const json_t *x;
    buf_text(&b, "Batch size 1; answers run to the end of their text; all tasks together. Brackets "
                 "are 95 % intervals.");
    for (size_t i = 0; (x = claims_equal_quality(s, i)) != NULL; i++) {
        buf_text(&b, i ? "; " : " Matches LLaMA: a test shows ");
        claims_margin(&b, x);
    }
    buf_text(&b, claims_equal_quality(s, 0) ? "." : "");
    return b.data;
}

/* 1: a row of plain LLaMA (diffusion 0) or of the sweep (diffusion 1). */
static int is_shown(const struct config_row *a, const struct main_sweep *m, int diffusion)
{
    int is = diffusion ? a->series && m->series && !strcmp(a->series, m->series)
                       : a->kind == CONFIG_AUTOREGRESSIVE && !a->is_method;
    return is && is_beside(a, m);
}

/* 1: row k of n is among `room` evenly spaced rows, which include the first and the last. */
static int is_picked(size_t k, size_t n, size_t room)
{
    return n <= room || k == 0 || k * (room - 1) / (n - 1) > (k - 1) * (room - 1) / (n - 1);
}

static size_t count_shown(const struct config_table *c, const struct main_sweep *m, int diffusion)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += is_shown(&c->v[i], m, diffusion) ? 1 : 0;
    return n;
}

static void put_steps(struct page *p, const struct runset *s, const struct config_table *c,
                      const struct main_sweep *m)
{
    struct page_column columns[5 + QUALITIES] = {
        {"Model", NULL}, {"Passes", ""}, {"Time for an answer", "e2e_ns"},
        {ratio_title(s), "time_ratio"}};
    const char *metrics[QUALITIES];
    size_t n = find_metrics(metrics, s), room = OVERVIEW_ROWS;
    for (size_t i = 0; i < n; i++)
        columns[4 + i] = (struct page_column){display_metric_name(metrics[i]), metrics[i]};
    columns[4 + n] = (struct page_column){"Matches LLaMA", NULL};
    char *caption = caption_of_quality(s);
    page_table(p, caption, 5 + n, columns);
    for (int diffusion = 0; diffusion < 2; diffusion++) {
        size_t of = count_shown(c, m, diffusion), most = diffusion ? room : 2, k = 0;
        for (size_t i = 0; i < c->n; i++)
            if (is_shown(&c->v[i], m, diffusion) && is_picked(k++, of, most)) {
                put_step(p, s, &c->v[i], metrics, n);
                room--;
            }
    }
    page_table_end(p);
    free(caption);
}

void overview_quality(struct page *p, const struct runset *s)
{
    struct config_table c = {0};
    config_table_metric(&c, s, "e2e_ns");
    const struct main_sweep m = find_sweep(&c);
    if (m.contract)
        put_steps(p, s, &c, &m);
    config_table_free(&c);
}

/* ---- decoding methods ---- */

struct way {
    const char *model, *name, *point;
    int is_llama, is_plain; /* is_plain: plain LLaMA, the base of all ratios */
    double time;
};
struct ways { struct way v[64]; size_t n; };

/* Adds the point of a comparison, or its base. */
static void add_way(struct ways *w, const struct runset *s, const json_t *r, int is_base,
                    const char *name)
{
    const char *point = rec_text(r, is_base ? "base_point" : "point");
    for (size_t i = 0; i < w->n; i++)
        if (point && !strcmp(w->v[i].point, point))
            return;
    if (!point || !name || w->n == COUNT(w->v))
        return;
    const json_t *time = runset_find(s, "metric", point, "e2e_ns");
    const json_t *about = runset_config(s, point);
    int is_llama = about_is_diffusion(about ? about : r) == 0;
    w->v[w->n++] = (struct way){rec_text(about, "model"), name, point, is_llama,
                                is_llama && is_base, rec_number(time, "value")};
}

static int by_time(const void *a, const void *b)
{
    double x = ((const struct way *)a)->time, y = ((const struct way *)b)->time;
    return x < y ? -1 : x > y;
}

/* Finds every method, its base, and the LLaMA point that LLaDA is compared with. */
static void find_ways(struct ways *w, const struct runset *s)
{
    const json_t *r;
    size_t i;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (rec_is(r, "by", "method") && rec_is(r, "metric", "e2e_ns")) {
            const json_t *llama = runset_comparison(s, "paradigm", rec_text(r, "point"), "e2e_ns");
            add_way(w, s, r, 1, rec_text(r, "base_setting"));
            add_way(w, s, r, 0, rec_text(r, "setting"));
            if (llama)
                add_way(w, s, llama, 1, "plain");
        }
    qsort(w->v, w->n, sizeof *w->v, by_time);
}

/* Accuracy of plain LLaMA, from any comparison with it; NaN: none. */
static double accuracy_of_plain(const struct runset *s, const char *point)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (rec_is(r, "base_point", point) && rec_is(r, "metric", "accuracy") &&
            !rec_is(r, "effect", "disagreement"))
            return rec_number(r, "base_value");
    return (double)NAN;
}

/* Is the method shown to match LLaMA? From its claim, else from its comparison if that has the
 * margin of the claims. */
static const char *shown_of(const struct runset *s, const char *point, const json_t *accuracy)
{
    double margin = rec_number(accuracy, "margin"), claimed = margin;
    const json_t *good = json_object_get(accuracy, "noninferior"), *r;
    size_t i;
    json_array_foreach(runset_kind(s, "claim"), i, r) {
        if (rec_is(r, "quality_metric", "accuracy") && rec_is(r, "name", "crossing"))
            claimed = rec_number(r, "margin");
        if (rec_is(r, "name", "quality") && rec_is(r, "llada", point))
            return json_is_true(json_object_get(r, "shown")) ? "shown" : "not shown";
    }
    return !good || fabs(margin - claimed) > 1e-9 ? "–"
           : json_is_true(good)                   ? "shown"
                                                  : "not shown";
}

static void put_accuracy(struct page *p, const struct runset *s, const struct way *w)
{
    const json_t *accuracy = runset_comparison(s, w->is_llama ? "method" : "paradigm", w->point,
                                               "accuracy");
    struct buf b = {0};
    double lo = rec_number(accuracy, "lo"), hi = rec_number(accuracy, "hi");
    page_count(p, w->is_plain ? accuracy_of_plain(s, w->point)
                              : rec_number(accuracy, "config_value"));
    if (!w->is_plain && !isnan(lo) && !isnan(hi))
        sections_change(&b, rec_number(accuracy, "value"), lo, hi, 0);
    sections_cell(p, &b);
    page_cell(p, w->is_plain ? "–" : shown_of(s, w->point, accuracy));
}

static void put_way(struct page *p, const struct runset *s, const struct way *w)
{
    char *name = mem_format("%s, %s", sections_dash(w->model), w->name);
    page_cell(p, name);
    page_count(p, rec_number(runset_find(s, "metric", w->point, "passes"), "value"));
    if (w->is_plain)
        page_count(p, 1);
    else
        put_ratio(p, s, w->point, runset_comparison(s, w->is_llama ? "method" : "paradigm",
                                                    w->point, clock_of(s)));
    put_accuracy(p, s, w);
    free(name);
}

void overview_decoding(struct page *p, const struct runset *s)
{
    const struct page_column columns[] = {
        {"Method", NULL},         {"Passes", ""},                {ratio_title(s), "time_ratio"},
        {"Accuracy", "accuracy"}, {"Accuracy − LLaMA’s", NULL}, {"Matches LLaMA", NULL}};
    struct ways *w = mem_zero(1, sizeof *w);
    find_ways(w, s);
    page_table(p, "Fastest first. Accuracy: share of exact matches, over the prompts that both "
                  "systems answered. Matches LLaMA: a test of accuracy shows it, within the margin "
                  "of the section above. Brackets are 95 % intervals.", COUNT(columns), columns);
    for (size_t i = 0; i < w->n && i < OVERVIEW_ROWS; i++)
        put_way(p, s, &w->v[i]);
    page_table_end(p);
    free(w);
}
