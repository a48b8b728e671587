/* sections-methods.c - see sections.h: decoding methods side by side. A row is a method: its costs
 * from metric records of its point, its changes from comparisons with the base of its model, its
 * published speed-ups from data/methods.ndjson. */
#include <math.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/sections.h"

static const json_t *find_method(const struct runset *s, const char *name)
{
    const json_t *list = runset_kind(s, "method"), *r;
    size_t i;
    json_array_foreach(list, i, r)
        if (name && rec_is(r, "method", name))
            return r;
    return NULL;
}

/* The comparison record of the accuracies of the two points that `like` compares; NULL: none. */
static const json_t *find_accuracy(const struct runset *s, const json_t *like)
{
    return runset_comparison(s, "method", rec_text(like, "point"), "accuracy");
}

static void put_metric(struct page *p, const struct runset *s, const char *point,
                       const char *metric)
{
    const json_t *r = runset_find(s, "metric", point, metric);
    page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), NULL);
}

/* Puts "8.1 times, GSM8K (to_eos)" for every published speed-up. */
static void put_published(struct page *p, const json_t *method)
{
    struct buf b = {0};
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(method, "published"), i, c) {
        const char *on = rec_text(c, "on"), *counting = rec_text(c, "counting");
        buf_format(&b, "%s%.3g times", i ? "; " : "", rec_number(c, "speedup"));
        if (on)
            buf_format(&b, ", %s", on);
        if (counting)
            buf_format(&b, " (%s)", counting);
    }
    sections_cell(p, &b);
}

/* Puts the costs of a point other than time. */
static void put_costs(struct page *p, const struct runset *s, const char *point)
{
    static const char *const costs[] = {"output_tokens_per_s", "tokens_per_step", "passes", "rows",
                                        "memory_allocated_peak_bytes"};
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++)
        put_metric(p, s, point ? point : "", costs[i]);
}

static void put_accuracy(struct page *p, const json_t *accuracy, const char *side)
{
    struct buf b = {0};
    if (accuracy)
        display_value(&b, "accuracy", rec_number(accuracy, side));
    sections_cell(p, &b);
}

static void put_base(struct page *p, const struct runset *s, const json_t *like)
{
    const char *point = rec_text(like, "base_point");
    put_metric(p, s, point ? point : "", "e2e_ns");
    page_value(p, 1, NAN, NAN, NULL);
    put_accuracy(p, find_accuracy(s, like), "base_value");
    page_cell(p, "–");
    page_cell(p, "–");
}

static void put_method(struct page *p, const struct runset *s, const json_t *ratio)
{
    const json_t *accuracy = find_accuracy(s, ratio);
    const char *name = rec_text(ratio, "setting"), *point = rec_text(ratio, "point");
    struct buf b = {0};
    put_metric(p, s, point ? point : "", "e2e_ns");
    const double lo = claims_times_are_null(s) ? (double)NAN : rec_number(ratio, "lo");
    page_value(p, isnan(lo) ? lo : 1 / rec_number(ratio, "value"), 1 / rec_number(ratio, "hi"),
               1 / lo, NULL);
    put_accuracy(p, accuracy, "config_value");
    sections_change(&b, rec_number(accuracy, "value"), rec_number(accuracy, "lo"),
                    rec_number(accuracy, "hi"), 0);
    sections_cell(p, &b);
    put_published(p, find_method(s, name));
}

static int is_row(const json_t *r)
{
    return rec_is(r, "by", "method") && rec_is(r, "effect", "ratio") &&
           rec_is(r, "metric", "e2e_ns");
}

/* Names the methods whose whole interval is slower, or less accurate, than their base. */
static void say_losers(struct page *p, const struct runset *s)
{
    struct buf slow = {0}, wrong = {0};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r) {
        const char *name = rec_text(r, "setting");
        const json_t *accuracy = is_row(r) ? find_accuracy(s, r) : NULL;
        if (is_row(r) && name && rec_number(r, "lo") > 1)
            buf_format(&slow, "%s%s", slow.len ? ", " : "", name);
        if (name && rec_number(accuracy, "hi") < 0)
            buf_format(&wrong, "%s%s", wrong.len ? ", " : "", name);
    }
    page_text(p, "Methods whose whole interval is slower than the base: %s. Methods whose whole "
                 "interval is less accurate than the base: %s.", slow.len ? slow.data : "none",
              wrong.len ? wrong.data : "none");
    buf_free(&slow);
    buf_free(&wrong);
}

/* A row for each base and each method; folded 1: the further columns. */
static void put_rows(struct page *p, const struct runset *s, int folded)
{
    static const char *const points[] = {"base_point", "point"};
    static const char *const names[] = {"base_setting", "setting"};
    const json_t *list = runset_kind(s, "comparison"), *r;
    size_t i;
    json_t *bases = json_object();
    json_array_foreach(list, i, r) {
        const char *base = rec_text(r, "base_point");
        int from = !base || json_object_get(bases, base); /* 1: the base is done, or none */
        for (int k = from; is_row(r) && k < 2; k++) {
            page_cell(p, sections_dash(rec_text(r, "model")));
            page_cell(p, sections_dash(rec_text(r, names[k])));
            if (folded)
                put_costs(p, s, rec_text(r, points[k]));
            else
                (k ? put_method : put_base)(p, s, r);
        }
        if (is_row(r) && base)
            json_object_set_new(bases, base, json_true());
    }
    json_decref(bases);
}

void sections_methods(struct page *p, const struct runset *s)
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
    const json_t *list = runset_kind(s, "comparison"), *r;
    size_t i, rows = 0;
    json_array_foreach(list, i, r)
        rows += is_row(r) ? 1 : 0;
    if (!rows)
        return;
    page_section(p, "decoding", "Decoding methods");
    page_table(p, "Each method against the base of its model on the same prompts, batch size 1. "
                  "Speed-up: latency of the base / latency of the method, over launches. Accuracy: "
                  "share of exact matches over the common prompts. A published speed-up was "
                  "measured with another model on another machine; parentheses say which tokens "
                  "it counts.",
                  sizeof columns / sizeof *columns, columns);
    put_rows(p, s, 0);
    page_table_end(p);
    page_table_folded(p, "Further columns: tokens, passes, rows, memory",
                      "Further columns of the table above.", sizeof more / sizeof *more, more);
    put_rows(p, s, 1);
    page_table_end(p);
    say_losers(p, s);
}
