/* sections-methods.c - the section on decoding methods; see sections.h. A row is a method. The
 * costs come from metric records of its point, the changes from comparisons with the base of its
 * model, and the published speed-ups from data/methods.ndjson. */
#include <math.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/sections.h"
#include "lib/setting/methods.h"

/* The comparison record about accuracy for the two points that `like` compares; NULL: none. */
static const json_t *find_accuracy(const struct runset *set, const json_t *like)
{
    return runset_comparison(set, "method", rec_text(like, "point"), "accuracy");
}

static void put_metric(struct page *page, const struct runset *set, const char *point,
                       const char *metric)
{
    const json_t *record = runset_find(set, "metric", point, metric);
    page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
               rec_number(record, "hi"), NULL);
}

/* Puts "8.1 times, GSM8K (to_eos)" for every published speed-up. */
static void put_published(struct page *page, const struct method *method)
{
    struct buf text = {0};
    size_t i;
    const json_t *speedup;
    json_array_foreach(method ? json_object_get(method->record, "published") : NULL, i, speedup) {
        const char *on = rec_text(speedup, "on"), *counting = rec_text(speedup, "counting");
        buf_format(&text, "%s%.3g times", i ? "; " : "", rec_number(speedup, "speedup"));
        if (on)
            buf_format(&text, ", %s", on);
        if (counting)
            buf_format(&text, " (%s)", counting);
    }
    sections_cell(page, &text);
}

/* Puts the costs of a point, except time. */
static void put_costs(struct page *page, const struct runset *set, const char *point)
{
    static const char *const costs[] = {"output_tokens_per_s", "tokens_per_step", "passes", "rows",
                                        "memory_allocated_peak_bytes"};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        put_metric(page, set, point ? point : "", costs[i]);
}

static void put_accuracy(struct page *page, const json_t *accuracy, const char *side)
{
    struct buf text = {0};
    if (accuracy)
        display_value(&text, "accuracy", rec_number(accuracy, side));
    sections_cell(page, &text);
}

/* Puts the cells of the base of a method, after model and name. */
static void put_base(struct page *page, const struct runset *set, const json_t *like)
{
    const char *point = rec_text(like, "base_point");
    put_metric(page, set, point ? point : "", "e2e_ns");
    page_value(page, 1, NAN, NAN, NULL);
    put_accuracy(page, find_accuracy(set, like), "base_value");
    page_cell(page, "–");
    page_cell(page, "–");
}

static void put_method(struct page *page, const struct runset *set, const struct methods *methods,
                       const json_t *ratio)
{
    const json_t *accuracy = find_accuracy(set, ratio);
    const char *name = rec_text(ratio, "setting"), *point = rec_text(ratio, "point");
    struct buf text = {0};
    put_metric(page, set, point ? point : "", "e2e_ns");
    const double lo = claims_times_are_null(set) ? (double)NAN : rec_number(ratio, "lo");
    page_value(page, isnan(lo) ? lo : 1 / rec_number(ratio, "value"), 1 / rec_number(ratio, "hi"),
               1 / lo, NULL);
    put_accuracy(page, accuracy, "config_value");
    sections_change(&text, rec_number(accuracy, "value"), rec_number(accuracy, "lo"),
                    rec_number(accuracy, "hi"), 0);
    sections_cell(page, &text);
    put_published(page, methods_named(methods, name));
}

/* 1: the record compares the time of a method with its base, so it gives a row. */
static int is_row(const json_t *record)
{
    return rec_is(record, "by", "method") && rec_is(record, "effect", "ratio") &&
           rec_is(record, "metric", "e2e_ns");
}

/* Writes a sentence with the methods whose whole interval is slower, or less accurate, than the
 * base. */
static void say_losers(struct page *page, const struct runset *set)
{
    struct buf slow = {0}, wrong = {0};
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record) {
        const char *name = rec_text(record, "setting");
        const json_t *accuracy = is_row(record) ? find_accuracy(set, record) : NULL;
        if (is_row(record) && name && rec_number(record, "lo") > 1)
            buf_format(&slow, "%s%s", slow.len ? ", " : "", name);
        if (name && rec_number(accuracy, "hi") < 0)
            buf_format(&wrong, "%s%s", wrong.len ? ", " : "", name);
    }
    page_text(page, "Methods whose whole interval is slower than the base: %s. Methods whose whole "
                    "interval is less accurate than the base: %s.", slow.len ? slow.data : "none",
              wrong.len ? wrong.data : "none");
    buf_free(&slow);
    buf_free(&wrong);
}

/* Puts a row for each base and each method. folded 1: the columns of the folded table. */
static void put_rows(struct page *page, const struct runset *set, int folded)
{
    static const char *const points[] = {"base_point", "point"};
    static const char *const names[] = {"base_setting", "setting"};
    const json_t *list = runset_kind(set, "comparison"), *record;
    size_t i;
    json_t *bases = json_object();
    struct methods methods;
    methods_gather(&methods, runset_kind(set, "method"));
    json_array_foreach(list, i, record) {
        const char *base = rec_text(record, "base_point");
        int from = !base || json_object_get(bases, base); /* 1: no base, or it has its row */
        for (int k = from; is_row(record) && k < 2; k++) {
            page_cell(page, sections_dash(rec_text(record, "model")));
            page_cell(page, sections_dash(rec_text(record, names[k])));
            if (folded)
                put_costs(page, set, rec_text(record, points[k]));
            else if (k)
                put_method(page, set, &methods, record);
            else
                put_base(page, set, record);
        }
        if (is_row(record) && base)
            json_object_set_new(bases, base, json_true());
    }
    methods_free(&methods);
    json_decref(bases);
}

void sections_methods(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Model", NULL},       {"Method", NULL},   {"Latency", "e2e_ns"},
        {"Speed-up", ""},      {"Accuracy", NULL}, {"Change of accuracy [95 %]", NULL},
        {"Published speed-up", NULL}};
    static const struct page_column more[] = {
        {"Model", NULL},
        {"Method", NULL},
        {"Tokens per second", "output_tokens_per_s"},
        {"Tokens per pass", "tokens_per_step"},
        {"Passes", "passes"},
        {"Rows", "rows"},
        {"Peak memory", "memory_allocated_peak_bytes"}};
    const json_t *list = runset_kind(set, "comparison"), *record;
    size_t i, rows = 0;
    json_array_foreach(list, i, record)
        rows += is_row(record) ? 1 : 0;
    if (!rows)
        return;
    page_section(page, "decoding", "Decoding methods");
    page_table(page,
               "Each method against the base of its model on the same prompts, batch size 1. "
               "Speed-up: latency of the base / latency of the method, over launches. Accuracy: "
               "share of exact matches over the common prompts. A published speed-up was "
               "measured with another model on another machine; parentheses say which tokens "
               "it counts.",
               sizeof columns / sizeof *columns, columns);
    put_rows(page, set, 0);
    page_table_end(page);
    page_table_folded(page, "Further columns: tokens, passes, rows, memory",
                      "Further columns of the table above.", sizeof more / sizeof *more, more);
    put_rows(page, set, 1);
    page_table_end(page);
    say_losers(page, set);
}
