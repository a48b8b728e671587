/* sections-crossovers.c - see sections.h: crossovers that exist, reasons of those that do not,
 * and advice on the next measurements. A suggest record without values to measure gives the number
 * of prompts that would narrow its interval. */
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
static void put_suggestion(struct page *p, const json_t *r)
{
    const json_t *values = json_object_get(r, "values");
    const char *axis = rec_text(r, "axis");
    double prompts = rec_number(r, "prompts");
    struct buf b = {0};
    values = values ? values : json_object_get(r, "steps");
    for (size_t i = 0; i < json_array_size(values); i++) {
        buf_format(&b, "%s", i ? ", " : " ");
        about_value(&b, json_array_get(values, i));
    }
    if (b.len)
        page_text(p, "To narrow the interval, measure %s%s: %s.",
                  about_axis_name(axis ? axis : "steps"), b.data,
                  sections_dash(rec_text(r, "reason")));
    else if (rec_number(r, "octaves") > 1 && !isnan(prompts))
        page_text(p, "To narrow the interval, measure with %.0f prompts%s: %s.", prompts,
                  json_is_true(json_object_get(r, "prompts_at_least")) ? " or more" : "",
                  sections_dash(rec_text(r, "reason")));
    buf_free(&b);
}

static void put_bracket(struct page *p, const json_t *r)
{
    const json_t *bracket = json_object_get(r, "bracket");
    struct buf b = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(bracket, i);
        buf_text(&b, i ? ", " : "[");
        display_digits(&b, json_is_number(v) ? json_number_value(v) : (double)NAN);
    }
    buf_text(&b, "]");
    verdict_values(&b, r);
    page_cell(p, json_array_size(bracket) ? b.data : "–");
    buf_free(&b);
}

/* Puts the settings that are constant along the crossover: "32 tokens, 4 a step", "unmask factor,
 * cache dual". */
static void put_where(struct page *p, const json_t *r)
{
    double length = rec_number(r, "gen_length"), speed = rec_number(r, "tokens_per_step");
    const char *unmask = rec_text(r, "unmask"), *cache = rec_text(r, "cache");
    struct buf b = {0};
    if (!isnan(length))
        buf_format(&b, "%.0f tokens", length);
    if (speed > 0)
        buf_format(&b, "%s%.3g a step", b.len ? ", " : "", speed);
    else if (unmask)
        buf_format(&b, "%sunmask %s, cache %s", b.len ? ", " : "", unmask, cache ? cache : "none");
    sections_cell(p, &b);
}

static void put_crossover(struct page *p, const struct runset *s, const json_t *r)
{
    struct buf b = {0};
    const char *quality = rec_text(r, "quality_metric"), *name = rec_text(r, "name");
    double batch = rec_number(r, "batch");
    page_cell(p, sections_dash(name));
    page_cell(p, sections_dash(rec_text(r, "contract")));
    page_cell(p, quality ? display_metric_name(quality) : "–");
    page_count(p, isnan(batch) && (!name || strcmp(name, "X_batch")) ? 1 : batch);
    put_where(p, r);
    verdict_place(&b, s, r);
    buf_format(&b, " %s", verdict_unit(r, 0));
    page_cell(p, b.data);
    put_bracket(p, r);
    page_count(p, rec_number(r, "probability"));
    buf_free(&b);
}

/* Puts "X_q: as good as LLaMA at no step count measured (12)": each reason once, with its count. */
static void put_missing(struct page *p, const json_t *list)
{
    json_t *seen = json_object(), *n;
    const char *text;
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r) {
        if (json_is_true(json_object_get(r, "exists")))
            continue;
        char *key = mem_format("%s: %s", sections_dash(rec_text(r, "name")),
                               sections_dash(rec_text(r, "reason")));
        json_object_set_new(seen, key,
                            json_integer(json_integer_value(json_object_get(seen, key)) + 1));
        free(key);
    }
    if (json_object_size(seen))
        page_text(p, "Crossovers that do not exist, by reason (how many):");
    json_object_foreach(seen, text, n)
        page_item(p, "%s (%lld)", text, (long long)json_integer_value(n));
    json_decref(seen);
}

void sections_crossovers(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Crossover", NULL}, {"Contract", NULL},     {"Quality", NULL}, {"Batch", ""},
        {"Setting", NULL},   {"Place [95 %]", NULL}, {"Bracket", NULL}, {"Probability", ""}};
    const json_t *list = runset_kind(s, "crossover"), *r;
    size_t i;
    if (!json_array_size(list))
        return;
    page_section(p, "crossovers", "Crossovers");
    page_table(p, "Crossovers that exist. X_lat: the step count at which LLaDA takes as long as "
                  "LLaMA. X_q: the step count from which LLaDA matches LLaMA in quality. X_par: "
                  "both hold. X_batch, X_length: the batch size or length at which both models are "
                  "equally fast. Bracket: the measured points on both sides; a place between them "
                  "is an estimate.",
               sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, r)
        if (json_is_true(json_object_get(r, "exists")))
            put_crossover(p, s, r);
    page_table_end(p);
    put_missing(p, list);
    json_array_foreach(runset_kind(s, "suggest"), i, r)
        put_suggestion(p, r);
}
