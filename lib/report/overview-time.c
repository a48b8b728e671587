/* overview-time.c - the tables of quality and time by steps, and of decoding methods; see
 * overview.h. A ratio of times is shown only if it has an interval. If launches were too few or
 * disturbed, a ratio has no interval. */
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

/* The metric of the ratios of times: cpu_ns if the claims use processor time and a comparison has
 * it; else e2e_ns. */
static const char *clock_of(const struct runset *set)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (claims_are_of_processor(set) && rec_is(record, "metric", "cpu_ns"))
            return "cpu_ns";
    return "e2e_ns";
}

static const char *ratio_title(const struct runset *set)
{
    return strcmp(clock_of(set), "cpu_ns") ? "Elapsed time / LLaMA’s"
                                           : "Processor time / LLaMA’s";
}

/* Puts the ratio of the time of the point to the time of LLaMA. The ratio comes from the claim
 * about all tasks with the clock of clock_of(), else from `comparison`. Without an interval the
 * cell shows a dash. */
static void put_ratio(struct page *page, const struct runset *set, const char *point,
                      const json_t *comparison)
{
    const char *clock = strcmp(clock_of(set), "cpu_ns") ? "wall" : "cpu";
    const json_t *record = comparison, *claim;
    size_t i;
    json_array_foreach(runset_kind(set, "claim"), i, claim)
        if (rec_is(claim, "clock", clock) && rec_is(claim, "unit", "x") && point &&
            rec_is(claim, "llada", point) && !rec_text(claim, "task") &&
            !rec_is(claim, "key", "throughput"))
            record = claim;
    double value = rec_number(record, "value"), lo = rec_number(record, "lo"),
           hi = rec_number(record, "hi");
    if (isnan(lo) || isnan(hi) || claims_times_are_null(set))
        value = (double)NAN;
    page_value(page, value, lo, hi, NULL);
}

/* ---- quality and time ---- */

/* The sweep over steps that the table shows. contract NULL: there is none. */
struct main_sweep { const char *contract, *series; double batch; };

/* The sweep over steps with the most points, among the sweeps with the contract of the first row
 * and the smallest batch. */
static struct main_sweep find_sweep(const struct config_table *table)
{
    struct main_sweep sweep = {NULL, NULL, (double)NAN};
    size_t most = 0;
    for (size_t i = 0; i < table->n; i++) {
        const struct config_row *row = &table->v[i];
        size_t n = 0;
        if (row->kind != CONFIG_DIFFUSION || row->method || !row->axis ||
            strcmp(row->axis, "steps") ||
            (sweep.contract && (strcmp(row->contract, sweep.contract) || row->batch > sweep.batch)))
            continue;
        for (size_t k = i; k < table->n; k++)
            n += config_table_together(row, &table->v[k]) ? 1 : 0;
        if (n > most || !sweep.contract)
            sweep = (struct main_sweep){row->contract, row->series, row->batch};
        most = n > most ? n : most;
    }
    return sweep;
}

/* 1: the row has the contract and the batch of the sweep. */
static int is_beside(const struct config_row *row, const struct main_sweep *sweep)
{
    return !strcmp(row->contract, sweep->contract) && !(row->batch < sweep->batch) &&
           !(row->batch > sweep->batch);
}

/* Appends a metric to metrics[n] unless it is listed already or the list is full. Returns the new
 * n. */
static size_t add_metric(const char **metrics, size_t n, const char *metric)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(metrics[i], metric))
            return n;
    if (n < QUALITIES)
        metrics[n++] = metric;
    return n;
}

/* The metrics of the quality columns: those of the claims X_q; without such claims accuracy and
 * judge perplexity. Returns how many. */
static size_t find_metrics(const char **metrics, const struct runset *set)
{
    static const char *const usual[] = {"accuracy", "judge_ppl"};
    size_t n = 0, i;
    const json_t *x, *record;
    for (i = 0; (x = claims_equal_quality(set, i)) != NULL; i++)
        n = add_metric(metrics, n, rec_text(x, "quality_metric"));
    for (size_t k = 0; !claims_equal_quality(set, 0) && k < COUNT(usual); k++)
        json_array_foreach(runset_kind(set, "quality"), i, record)
            if (rec_is(record, "metric", usual[k]))
                n = add_metric(metrics, n, usual[k]);
    return n;
}

/* Puts "shown", or "shown for sum, not shown for story": whether `steps` is at least the crossover
 * of each claim X_q. */
static void put_shown(struct page *page, const struct runset *set, double steps)
{
    struct buf text = {0};
    const json_t *x;
    size_t n = 0, shown = 0;
    for (; !isnan(steps) && (x = claims_equal_quality(set, n)) != NULL; n++) {
        const char *task = rec_text(x, "task");
        int is = steps >= rec_number(x, "value");
        shown += is ? 1 : 0;
        buf_format(&text, "%s%s%s%s", n ? ", " : "", is ? "shown" : "not shown",
                   task ? " for " : "", task ? task : "");
    }
    page_cell(page, !n ? "–" : shown == n ? "shown" : !shown ? "not shown" : text.data);
    buf_free(&text);
}

/* Puts the row of one point; n quality columns. */
static void put_step(struct page *page, const struct runset *set, const struct config_row *row,
                     const char *const *metrics, size_t n)
{
    char *name = row->kind == CONFIG_DIFFUSION ? mem_format("%s, %s steps", row->model, row->along)
                                               : mem_text(row->model);
    page_cell(page, name);
    page_count(page, row->passes);
    page_value(page, row->y.at, row->y.lo, row->y.hi, NULL);
    if (row->kind == CONFIG_DIFFUSION)
        put_ratio(page, set, row->point,
                  runset_comparison(set, "paradigm", row->point, clock_of(set)));
    else
        page_count(page, 1);
    for (size_t i = 0; i < n; i++) {
        const json_t *record = runset_find(set, "quality", row->point, metrics[i]);
        page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                   rec_number(record, "hi"), NULL);
    }
    put_shown(page, set, row->kind == CONFIG_DIFFUSION ? row->value : (double)NAN);
    free(name);
}

static char *caption_of_quality(const struct runset *set)
{
    struct buf text = {0};
    const json_t *x;
    buf_text(&text,
             "Batch size 1; answers run to the end of their text; all tasks together. Brackets "
             "are 95 % intervals.");
    for (size_t i = 0; (x = claims_equal_quality(set, i)) != NULL; i++) {
        buf_text(&text, i ? "; " : " Matches LLaMA: a test shows ");
        claims_margin(&text, x);
    }
    buf_text(&text, claims_equal_quality(set, 0) ? "." : "");
    return text.data;
}

/* 1: the row has contract and batch of the sweep, and is plain LLaMA (diffusion 0) or a point of
 * the sweep (diffusion 1). */
static int is_shown(const struct config_row *row, const struct main_sweep *sweep, int diffusion)
{
    int is = diffusion ? row->series && sweep->series && !strcmp(row->series, sweep->series)
                       : row->kind == CONFIG_AUTOREGRESSIVE && !row->method;
    return is && is_beside(row, sweep);
}

/* 1: row k of n is one of the `room` evenly spaced rows that fit, with the first and the last
 * row. */
static int is_picked(size_t k, size_t n, size_t room)
{
    return n <= room || k == 0 || k * (room - 1) / (n - 1) > (k - 1) * (room - 1) / (n - 1);
}

static size_t count_shown(const struct config_table *table, const struct main_sweep *sweep,
                          int diffusion)
{
    size_t n = 0;
    for (size_t i = 0; i < table->n; i++)
        n += is_shown(&table->v[i], sweep, diffusion) ? 1 : 0;
    return n;
}

static void put_steps(struct page *page, const struct runset *set, const struct config_table *table,
                      const struct main_sweep *sweep)
{
    struct page_column columns[5 + QUALITIES] = {
        {"Model", NULL}, {"Passes", ""}, {"Time for an answer", "e2e_ns"},
        {ratio_title(set), "time_ratio"}};
    const char *metrics[QUALITIES];
    size_t n = find_metrics(metrics, set), room = OVERVIEW_ROWS;
    for (size_t i = 0; i < n; i++)
        columns[4 + i] = (struct page_column){display_metric_name(metrics[i]), metrics[i]};
    columns[4 + n] = (struct page_column){"Matches LLaMA", NULL};
    char *caption = caption_of_quality(set);
    page_table(page, caption, 5 + n, columns);
    for (int diffusion = 0; diffusion < 2; diffusion++) {
        size_t of = count_shown(table, sweep, diffusion), most = diffusion ? room : 2, k = 0;
        for (size_t i = 0; i < table->n; i++)
            if (is_shown(&table->v[i], sweep, diffusion) && is_picked(k++, of, most)) {
                put_step(page, set, &table->v[i], metrics, n);
                room--;
            }
    }
    page_table_end(page);
    free(caption);
}

void overview_quality(struct page *page, const struct runset *set)
{
    struct config_table table = {0};
    config_table_metric(&table, set, "e2e_ns");
    const struct main_sweep sweep = find_sweep(&table);
    if (sweep.contract)
        put_steps(page, set, &table, &sweep);
    config_table_free(&table);
}

/* ---- decoding methods ---- */

/* A row: a decoding method, or the base of one. */
struct way {
    const char *model, *name, *point;
    int is_llama, is_plain; /* is_plain 1: plain LLaMA, the base of all ratios */
    double time;            /* e2e_ns */
};
struct ways { struct way v[64]; size_t n; };

/* Adds the point of a comparison, or (is_base 1) its base, unless it is listed already. */
static void add_way(struct ways *ways, const struct runset *set, const json_t *record, int is_base,
                    const char *name)
{
    const char *point = rec_text(record, is_base ? "base_point" : "point");
    for (size_t i = 0; i < ways->n; i++)
        if (point && !strcmp(ways->v[i].point, point))
            return;
    if (!point || !name || ways->n == COUNT(ways->v))
        return;
    const json_t *time = runset_find(set, "metric", point, "e2e_ns");
    const json_t *about = runset_config(set, point);
    int is_llama = about_is_diffusion(about ? about : record) == 0;
    ways->v[ways->n++] = (struct way){rec_text(about, "model"), name, point, is_llama,
                                      is_llama && is_base, rec_number(time, "value")};
}

static int by_time(const void *a, const void *b)
{
    double x = ((const struct way *)a)->time, y = ((const struct way *)b)->time;
    return x < y ? -1 : x > y;
}

/* Finds every method, the base of each method, and the LLaMA point that LLaDA is compared with.
 * Sorts them by time. */
static void find_ways(struct ways *ways, const struct runset *set)
{
    const json_t *record;
    size_t i;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (rec_is(record, "by", "method") && rec_is(record, "metric", "e2e_ns")) {
        const json_t *llama = runset_comparison(set, "paradigm", rec_text(record, "point"),
                                                "e2e_ns");
        add_way(ways, set, record, 1, rec_text(record, "base_setting"));
        add_way(ways, set, record, 0, rec_text(record, "setting"));
        if (llama)
            add_way(ways, set, llama, 1, "plain");
        }
    qsort(ways->v, ways->n, sizeof *ways->v, by_time);
}

/* Accuracy of plain LLaMA, from any comparison with it; NaN: none. */
static double accuracy_of_plain(const struct runset *set, const char *point)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (rec_is(record, "base_point", point) && rec_is(record, "metric", "accuracy") &&
            !rec_is(record, "effect", "disagreement"))
            return rec_number(record, "base_value");
    return (double)NAN;
}

/* Whether a test shows that the method matches LLaMA: "shown", "not shown" or a dash. The word
 * comes from the claim about the point, else from the comparison `accuracy`, if its margin is the
 * margin of the claims. */
static const char *shown_of(const struct runset *set, const char *point, const json_t *accuracy)
{
    double margin = rec_number(accuracy, "margin"), claimed = margin;
    const json_t *good = json_object_get(accuracy, "noninferior"), *record;
    size_t i;
    json_array_foreach(runset_kind(set, "claim"), i, record) {
        if (rec_is(record, "quality_metric", "accuracy") && rec_is(record, "name", "crossing"))
            claimed = rec_number(record, "margin");
        if (rec_is(record, "name", "quality") && rec_is(record, "llada", point))
            return json_is_true(json_object_get(record, "shown")) ? "shown" : "not shown";
    }
    return !good || fabs(margin - claimed) > 1e-9 ? "–"
           : json_is_true(good)                   ? "shown"
                                                  : "not shown";
}

static void put_accuracy(struct page *page, const struct runset *set, const struct way *way)
{
    const json_t *accuracy = runset_comparison(set, way->is_llama ? "method" : "paradigm",
                                               way->point, "accuracy");
    struct buf text = {0};
    double lo = rec_number(accuracy, "lo"), hi = rec_number(accuracy, "hi");
    page_count(page, way->is_plain ? accuracy_of_plain(set, way->point)
                                   : rec_number(accuracy, "config_value"));
    if (!way->is_plain && !isnan(lo) && !isnan(hi))
        sections_change(&text, rec_number(accuracy, "value"), lo, hi, 0);
    sections_cell(page, &text);
    page_cell(page, way->is_plain ? "–" : shown_of(set, way->point, accuracy));
}

static void put_way(struct page *page, const struct runset *set, const struct way *way)
{
    char *name = mem_format("%s, %s", sections_dash(way->model), way->name);
    page_cell(page, name);
    page_count(page, rec_number(runset_find(set, "metric", way->point, "passes"), "value"));
    if (way->is_plain)
        page_count(page, 1);
    else
        put_ratio(page, set, way->point, runset_comparison(set,
                                                           way->is_llama ? "method" : "paradigm",
                                                           way->point, clock_of(set)));
    put_accuracy(page, set, way);
    free(name);
}

void overview_decoding(struct page *page, const struct runset *set)
{
    const struct page_column columns[] = {
        {"Method", NULL},         {"Passes", ""},                {ratio_title(set), "time_ratio"},
        {"Accuracy", "accuracy"}, {"Accuracy − LLaMA’s", NULL}, {"Matches LLaMA", NULL}};
    struct ways *ways = mem_zero(1, sizeof *ways);
    find_ways(ways, set);
    page_table(page,
               "Fastest first. Accuracy: share of exact matches, over the prompts that both "
               "systems answered. Matches LLaMA: a test of accuracy shows it, within the margin "
               "of the section above. Brackets are 95 % intervals.",
               COUNT(columns), columns);
    for (size_t i = 0; i < ways->n && i < OVERVIEW_ROWS; i++)
        put_way(page, set, &ways->v[i]);
    page_table_end(page);
    free(ways);
}
