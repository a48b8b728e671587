/* sections-passes.c - the sections on forward passes: how many tokens a pass writes (kind `aup`),
 * and what the time of a step is spent on (kind `steptime`); see sections.h. The records come from
 * `compare --aup` and `compare --split`. Values that are null show the reason of the record. */
#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* 1: the record is about the point of row `at`. The table gives the order of the rows on the page.
 * at == all->n: 1 if no row of the table has the point. */
static int is_at(const struct config_table *all, size_t at, const json_t *record)
{
    const char *point = about_point(record);
    size_t from = at < all->n ? at : 0;
    const size_t to = at < all->n ? at + 1 : all->n;
    while (from < to && !(point && !strcmp(all->v[from].point, point)))
        from++;
    return (from < to) == (at < all->n);
}

/* The first point of a curve, which stands for the sweep. */
static const json_t *first_of(const json_t *record)
{
    return json_array_get(json_object_get(record, "curve"), 0);
}

/* ---- tokens per pass ---- */

/* Puts the name of a sweep: "llada-demo dual-factor, fixed, batch 4". Contract and batch are left
 * out if they are the usual ones. row NULL: the sweep is named by its model. */
static void put_sweep(struct page *page, const struct config_row *row, const json_t *record)
{
    struct buf text = {0};
    if (!row) {
        buf_text(&text, sections_dash(rec_text(record, "model")));
    } else {
        buf_text(&text, row->name);
        if (*row->contract && strcmp(row->contract, "answer"))
            buf_format(&text, ", %s", row->contract);
        if (row->batch > 1)
            buf_format(&text, ", batch %.0f", row->batch);
    }
    sections_cell(page, &text);
}

/* 1: the records are of several sets of prompts. */
static int has_several_sets(const json_t *list)
{
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record)
        if (strcmp(about_workload(record), about_workload(json_array_get(list, 0))))
            return 1;
    return 0;
}

/* Puts the task and, if there are several sets of prompts, the identity of the set. */
static void put_task(struct page *page, const json_t *list, const json_t *record)
{
    const char *workload = about_workload(record);
    struct buf text = {0};
    buf_text(&text, sections_dash(rec_text(record, "task")));
    if (has_several_sets(list))
        buf_format(&text, ", prompts %s", sections_dash(workload));
    sections_cell(page, &text);
}

/* Puts the tokens per pass of a curve, from the least to the largest: "4.2 to 12". */
static void put_range(struct page *page, const json_t *curve)
{
    const size_t n = json_array_size(curve);
    struct buf text = {0};
    display_digits(&text, rec_number(json_array_get(curve, 0), "tokens_per_forward"));
    if (n > 1) {
        buf_text(&text, " to ");
        display_digits(&text, rec_number(json_array_get(curve, n - 1), "tokens_per_forward"));
    }
    sections_cell(page, &text);
}

static void put_areas(struct page *page, const struct config_table *all, const json_t *list)
{
    static const struct page_column columns[] = {
        {"System", NULL},      {"Task", NULL},           {"Tokens per pass", NULL},
        {"AUP [95 %]", "aup"}, {"Best accuracy, %", ""}, {"Prompts", ""}};
    size_t i;
    const json_t *record;
    page_table(page,
               "Accuracy under parallelism (AUP, as d3LLM defines it): the area under accuracy in "
               "percent against tokens per pass. A point does not count if its accuracy is more "
               "than 5 points below that of the first point. Points below the best accuracy of "
               "the task weigh less. So areas can be compared only if the best accuracy is the "
               "same. Passes include the pass of the prompt. Intervals are over prompts, and need "
               "two of them.",
               COUNT(columns), columns);
    for (size_t at = 0; at <= all->n; at++)
        json_array_foreach(list, i, record) {
            if (!is_at(all, at, first_of(record)))
                continue;
            put_sweep(page, at < all->n ? &all->v[at] : NULL, record);
            put_task(page, list, record);
            put_range(page, json_object_get(record, "curve"));
            page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                       rec_number(record, "hi"), rec_text(record, "value_reason"));
            page_count(page, rec_number(record, "best_percent"));
            page_count(page, rec_number(record, "n"));
        }
    page_table_end(page);
}

static void put_points(struct page *page, const struct config_table *all, const json_t *list)
{
    static const struct page_column columns[] = {{"Configuration", NULL},
                                                 {"Task", NULL},
                                                 {"Tokens per pass [95 %]", "tokens_per_forward"},
                                                 {"Accuracy, %", ""}};
    size_t i, k;
    const json_t *record, *point;
    page_table_folded(page, "The points of these curves", "Tokens to the end of the text, divided "
                      "by passes, with intervals over prompts.", COUNT(columns), columns);
    for (size_t at = 0; at <= all->n; at++)
        json_array_foreach(list, i, record)
            json_array_foreach(json_object_get(record, "curve"), k, point) {
                if (!is_at(all, at, point))
                    continue;
                page_cell(page, sections_dash(rec_text(point, "config")));
                put_task(page, list, record);
                page_value(page, rec_number(point, "tokens_per_forward"), rec_number(point, "lo"),
                           rec_number(point, "hi"), rec_text(point, "tokens_per_forward_reason"));
                page_count(page, rec_number(point, "accuracy_percent"));
            }
    page_table_end(page);
}

/* Names each point that no curve has. */
static void put_unpaired(struct page *page, const json_t *list)
{
    json_t *seen = json_object(), *name;
    const char *config;
    size_t i, k;
    const json_t *record;
    json_array_foreach(list, i, record)
        json_array_foreach(json_object_get(record, "unpaired"), k, name)
            if (json_is_string(name))
                json_object_set_new(seen, json_string_value(name), json_true());
    if (json_object_size(seen))
        page_text(page, "Left out, because no prompt has both a timed answer and an accuracy:");
    json_object_foreach(seen, config, name)
        page_item(page, "%s", config);
    json_decref(seen);
}

void sections_parallelism(struct page *page, const struct runset *set)
{
    const json_t *list = runset_kind(set, "aup");
    struct config_table all = {0};
    if (!json_array_size(list))
        return;
    config_table_all(&all, set);
    page_section(page, "parallelism", "Tokens per pass");
    put_areas(page, &all, list);
    put_points(page, &all, list);
    put_unpaired(page, list);
    config_table_free(&all);
}

/* ---- parts of a step ---- */

/* Puts the row of a point. If its parts are null, the reason is in the column of the time. */
static void put_split(struct page *page, const char *config, const json_t *record)
{
    static const char *const parts[][3] = {
        {"architecture_percent", "architecture_percent_lo", "architecture_percent_hi"},
        {"algorithm_percent", "algorithm_percent_lo", "algorithm_percent_hi"},
        {"system_percent", "system_percent_lo", "system_percent_hi"}};
    page_cell(page, config);
    page_value(page, rec_number(record, "step_ns"), (double)NAN, (double)NAN,
               rec_text(record, "step_ns_reason"));
    for (size_t k = 0; k < COUNT(parts); k++)
        page_value(page, rec_number(record, parts[k][0]), rec_number(record, parts[k][1]),
                   rec_number(record, parts[k][2]), NULL);
    page_count(page, rec_number(record, "sum_percent"));
    page_count(page, rec_number(record, "n"));
    page_count(page, rec_number(record, "tainted"));
}

void sections_split(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL},
        {"Time of a step", "step_ns"},
        {"Architecture, %", "architecture_percent"},
        {"Algorithm, %", "algorithm_percent"},
        {"System, %", "system_percent"},
        {"Sum, %", "sum_percent"},
        {"Prompts", ""},
        {"Disturbed answers", ""}};
    const json_t *list = runset_kind(set, "steptime"), *record;
    struct config_table all = {0};
    size_t i;
    if (!json_array_size(list))
        return;
    config_table_all(&all, set);
    page_section(page, "split", "Parts of the time of a step");
    page_table(page,
               "The time of the answers divided by their passes, at batch size 1, in three parts "
               "with 95 % intervals over prompts. Architecture: the least time for the rows that "
               "are needed. Algorithm: the least time that all other rows add. System: the rest, "
               "because passes are slower than the ceilings of the machine allow. If a ceiling was "
               "measured too low, System is below 0 and the sum is above 100 %. Disturbed answers "
               "are counted and left out.",
               COUNT(columns), columns);
    for (size_t at = 0; at < all.n; at++)
        json_array_foreach(list, i, record)
            if (is_at(&all, at, record))
                put_split(page, all.v[at].config, record);
    page_table_end(page);
    config_table_free(&all);
}
