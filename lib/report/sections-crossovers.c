/* sections-crossovers.c - the section on crossovers: the crossovers that exist, the reasons why
 * others do not exist, and advice on the next measurements; see sections.h. A suggest record lists
 * values to measure, or the number of prompts that would narrow the interval. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/analysis/verdict/verdict.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

/* Puts the advice of a suggest record, if it has any. */
static void put_suggestion(struct page *page, const json_t *record)
{
    const json_t *values = json_object_get(record, "values");
    const char *axis = rec_text(record, "axis");
    double prompts = rec_number(record, "prompts");
    struct buf text = {0};
    values = values ? values : json_object_get(record, "steps");
    for (size_t i = 0; i < json_array_size(values); i++) {
        buf_format(&text, "%s", i ? ", " : " ");
        about_value(&text, json_array_get(values, i));
    }
    if (text.len)
        page_text(page, "To narrow the interval, measure %s%s: %s.",
                  about_axis_name(axis ? axis : "steps"), text.data,
                  sections_dash(rec_text(record, "reason")));
    else if (rec_number(record, "octaves") > 1 && !isnan(prompts))
        page_text(page, "To narrow the interval, measure with %.0f prompts%s: %s.", prompts,
                  json_is_true(json_object_get(record, "prompts_at_least")) ? " or more" : "",
                  sections_dash(rec_text(record, "reason")));
    buf_free(&text);
}

/* Puts the measured points on both sides of the crossover: "[8, 16]". */
static void put_bracket(struct page *page, const json_t *record)
{
    const json_t *bracket = json_object_get(record, "bracket");
    struct buf text = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *value = json_array_get(bracket, i);
        buf_text(&text, i ? ", " : "[");
        display_digits(&text, json_is_number(value) ? json_number_value(value) : (double)NAN);
    }
    buf_text(&text, "]");
    verdict_values(&text, record);
    page_cell(page, json_array_size(bracket) ? text.data : "–");
    buf_free(&text);
}

/* Appends how the LLaMA of the crossover decodes, each way once: "lookup=10". If the settings of a
 * point are not among the records, appends the label of the point. */
static void put_ways(struct buf *text, const struct runset *set, const json_t *record)
{
    const json_t *cells = json_object_get(record, "cells"), *cell;
    json_t *seen = json_object();
    const size_t n = cells ? json_array_size(cells) : 1;
    for (size_t i = 0; i < n; i++) {
        cell = cells ? json_array_get(cells, i) : record;
        const json_t *about = runset_config(set, rec_text(cell, "llama_point"));
        struct buf way = {0};
        if (about)
            about_put_speed(&way, about);
        else
            buf_text(&way, sections_dash(rec_text(cell, "llama_config")));
        const char *name = way.len ? way.data : "plain";
        if (!json_object_get(seen, name))
            buf_format(text, "%s%s", json_object_size(seen) ? "; " : "", name);
        json_object_set_new(seen, name, json_true());
        buf_free(&way);
    }
    json_decref(seen);
}

/* Appends which LLaMA the crossover is with, unless that is plain LLaMA: "; with the fastest LLaMA
 * (lookup=10)". */
static void put_rival(struct buf *text, const struct runset *set, const json_t *record)
{
    const char *rival = rec_text(record, "rival");
    if (!rival || !strcmp(rival, "plain"))
        return;
    if (!strcmp(rival, "both")) {
        buf_text(text, "; plain LLaMA is the fastest");
        return;
    }
    buf_format(text, "; with %s (", strcmp(rival, "other") ? "the fastest LLaMA"
                                                           : "a LLaMA that is not plain");
    put_ways(text, set, record);
    buf_text(text, ")");
}

/* Puts the settings that are constant along the crossover: "32 tokens, 4 a step", "unmask factor,
 * cache dual, 2 requests/s". Appends for X_rate whether the step count is as good as LLaMA, and
 * then which LLaMA the crossover is with. */
static void put_where(struct page *page, const struct runset *set, const json_t *record)
{
    double length = rec_number(record, "gen_length"), speed = rec_number(record, "tokens_per_step");
    double rate = rec_number(record, "arrival_rate");
    const char *unmask = rec_text(record, "unmask"), *cache = rec_text(record, "cache");
    const json_t *good = json_object_get(record, "as_good");
    struct buf text = {0};
    if (!isnan(length))
        buf_format(&text, "%.0f tokens", length);
    if (speed > 0)
        buf_format(&text, "%s%.3g a step", text.len ? ", " : "", speed);
    else if (unmask)
        buf_format(&text, "%sunmask %s, cache %s", text.len ? ", " : "", unmask,
                   cache ? cache : "none");
    if (rate > 0)
        buf_format(&text, "%s%.3g requests/s", text.len ? ", " : "", rate);
    if (good)
        buf_format(&text, "; %s LLaMA", json_is_true(good)    ? "as good as"
                                        : json_is_false(good) ? "worse than"
                                                              : "not shown to be as good as");
    put_rival(&text, set, record);
    sections_cell(page, &text);
}

static void put_crossover(struct page *page, const struct runset *set, const json_t *record)
{
    struct buf text = {0};
    const char *quality = rec_text(record, "quality_metric"), *name = rec_text(record, "name");
    double batch = rec_number(record, "batch");
    page_cell(page, sections_dash(name));
    page_cell(page, sections_dash(rec_text(record, "contract")));
    page_cell(page, quality ? display_metric_name(quality) : "–");
    page_count(page, isnan(batch) && (!name || strcmp(name, "X_batch")) ? 1 : batch);
    put_where(page, set, record);
    verdict_place(&text, set, record);
    buf_format(&text, " %s", verdict_unit(record, 0));
    page_cell(page, text.data);
    put_bracket(page, record);
    page_count(page, rec_number(record, "probability"));
    buf_free(&text);
}

/* Returns 1 if the record is an X_q with the fastest LLaMA, and the list has an equal X_q with
 * plain LLaMA. Settings that change only speed keep the answers, so the page shows such an X_q
 * once. */
static int is_said(const json_t *list, const json_t *record)
{
    static const char *const keys[] = {"name", "series", "contract", "batch", "task",
                                       "quality_metric", "exists", "at", "lo", "hi", "reason"};
    const json_t *other;
    size_t i, k;
    if (!rec_is(record, "name", "X_q") || !rec_is(record, "rival", "fastest"))
        return 0;
    json_array_foreach(list, i, other) {
        const size_t n = rec_is(other, "rival", "plain") ? sizeof keys / sizeof *keys : 0;
        for (k = 0; k < n && rec_same(record, other, keys[k]); k++)
            continue;
        if (n && k == n)
            return 1;
    }
    return 0;
}

/* Puts a list of crossovers that do not exist: each name and reason once, with how often it occurs,
 * as in "X_q: as good as LLaMA at no step count measured (12)". */
static void put_missing(struct page *page, const json_t *list)
{
    json_t *seen = json_object(), *n;
    const char *text;
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record) {
        if (json_is_true(json_object_get(record, "exists")) || is_said(list, record))
            continue;
        char *key = mem_format("%s%s: %s", sections_dash(rec_text(record, "name")),
                               rec_is(record, "rival", "fastest") ? " with the fastest LLaMA" : "",
                               sections_dash(rec_text(record, "reason")));
        json_object_set_new(seen, key,
                            json_integer(json_integer_value(json_object_get(seen, key)) + 1));
        free(key);
    }
    if (json_object_size(seen))
        page_text(page, "Crossovers that do not exist, by reason (how many):");
    json_object_foreach(seen, text, n)
        page_item(page, "%s (%lld)", text, (long long)json_integer_value(n));
    json_decref(seen);
}

void sections_crossovers(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Crossover", NULL}, {"Contract", NULL},     {"Quality", NULL}, {"Batch", ""},
        {"Setting", NULL},   {"Place [95 %]", NULL}, {"Bracket", NULL}, {"Probability", ""}};
    const json_t *list = runset_kind(set, "crossover"), *record;
    size_t i;
    if (!json_array_size(list))
        return;
    page_section(page, "crossovers", "Crossovers");
    page_table(page,
               "Crossovers that exist. X_lat: the step count at which LLaDA takes as long as "
               "LLaMA. X_q: the step count from which LLaDA matches LLaMA in quality. X_par: "
               "both hold. X_batch, X_length, X_rate: the batch size, length or rate of "
               "requests at which both models are equally fast. LLaMA decodes plainly unless the "
               "setting says otherwise. If X_q is the same with plain LLaMA and with the "
               "fastest, the table shows it once. Bracket: the measured points on both sides; "
               "a place between them is an estimate.",
               sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, record)
        if (json_is_true(json_object_get(record, "exists")) && !is_said(list, record))
            put_crossover(page, set, record);
    page_table_end(page);
    put_missing(page, list);
    json_array_foreach(runset_kind(set, "suggest"), i, record)
        put_suggestion(page, record);
}
