/* sections-answers.c - see sections.h: the answer, in a box with whatever speaks against it, and
 * all crossovers as a table. Of many crossovers only those of one batch size and contract become
 * sentences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/format.h"
#include "lib/analysis/verdict/best.h"
#include "lib/analysis/verdict/doubts.h"
#include "lib/analysis/verdict/verdict.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

/* What to measure next, when there is anything. */
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
        page_text(p, "To narrow the answer, measure %s%s: %s.",
                  about_axis_name(axis ? axis : "steps"), b.data,
                  sections_dash(rec_text(r, "reason")));
    else if (rec_number(r, "octaves") > 1 && !isnan(prompts))
        page_text(p, "To narrow the answer, measure with %.0f prompts%s: %s.", prompts,
                  json_is_true(json_object_get(r, "prompts_at_least")) ? " or more" : "",
                  sections_dash(rec_text(r, "reason")));
    buf_free(&b);
}

/* What the answer rests on, when that is less than an answer should. */
static void put_toys(struct buf *b, const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "workload"), i, r)
        if (rec_text(r, "warning"))
            buf_format(b, "%s ", rec_text(r, "warning"));
}

/* Who was trained on how much: a difference there is one of models, not of ways of generating. */
static void put_training(struct page *p, const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "workload"), i, r)
        if (rec_text(r, "training_text"))
            page_lead_more(p, rec_text(r, "training_text"));
}

/* The box: what speaks against the answer, the answer, what it is made of, the contracts, what the
 * contestants were trained on. */
static void put_box(struct page *p, const struct runset *s, const json_t *r)
{
    struct doubts doubts = {0};
    struct buf lead = {0}, more = {0}, third = {0}, contracts = {0};
    doubts_find(&doubts, s, r);
    put_toys(&lead, s);
    verdict_best(&lead, s);
    if (r) {
        verdict_answer(&lead, s, r);
        verdict_parts(&more, s, r);
        verdict_price(&more, s, r);
    } else {
        buf_text(&lead, "These records hold no crossover, so they do not answer the question yet: "
                        "it takes the latency and the quality of LLaDA at several step counts and "
                        "of LLaMA, and then pareto.");
    }
    verdict_third(&third, s);
    verdict_contracts(&contracts, s, r);
    page_lead(p, lead.data, (const char *const *)doubts.v, doubts.n);
    if (more.len)
        page_lead_more(p, more.data + 1);
    if (third.len)
        page_lead_more(p, third.data);
    if (contracts.len)
        page_lead_more(p, contracts.data);
    put_training(p, s);
    page_lead_end(p);
    buf_free(&lead);
    buf_free(&more);
    buf_free(&third);
    buf_free(&contracts);
    doubts_free(&doubts);
}

/* The first headline leads; those of other qualities and series follow. */
void sections_answers(struct page *p, const struct runset *s)
{
    json_t *list = verdict_headlines(s);
    const json_t *first = json_array_get(list, 0), *r;
    struct buf b = {0};
    size_t i;
    put_box(p, s, first);
    for (i = 1; i < json_array_size(list); i++) {
        buf_clear(&b);
        verdict_answer(&b, s, json_array_get(list, i));
        verdict_parts(&b, s, json_array_get(list, i));
        verdict_price(&b, s, json_array_get(list, i));
        page_item(p, "%s", b.data);
    }
    buf_clear(&b);
    verdict_scale(&b, s, first);
    if (b.len)
        page_text(p, "%s", b.data);
    json_array_foreach(runset_kind(s, "suggest"), i, r) {
        const char *series = rec_text(r, "series"), *lead = rec_text(first, "series");
        if (!first || !series || !lead || !strcmp(series, lead))
            put_suggestion(p, r);
    }
    buf_free(&b);
    json_decref(list);
}

static void put_bracket(struct page *p, const json_t *r)
{
    const json_t *bracket = json_object_get(r, "bracket");
    struct buf b = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_array_get(bracket, i);
        buf_text(&b, i ? ", " : "[");
        format_digits(&b, json_is_number(v) ? json_number_value(v) : (double)NAN);
    }
    buf_text(&b, "]");
    verdict_values(&b, r);
    page_cell(p, json_array_size(bracket) ? b.data : "–");
    buf_free(&b);
}

/* What of it stays the same along it: "32 tokens, 4 a step", "... unmask factor, cache dual". */
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
    page_cell(p, sections_dash(b.data));
    buf_free(&b);
}

static void put_crossover(struct page *p, const struct runset *s, const json_t *r)
{
    struct buf b = {0};
    const char *quality = rec_text(r, "quality_metric"), *name = rec_text(r, "name");
    int exists = json_is_true(json_object_get(r, "exists"));
    double batch = rec_number(r, "batch");
    page_cell(p, sections_dash(name));
    page_cell(p, sections_dash(rec_text(r, "contract")));
    page_cell(p, quality ? format_metric_name(quality) : "–");
    page_count(p, isnan(batch) && (!name || strcmp(name, "X_batch")) ? 1 : batch);
    put_where(p, r);
    verdict_place(&b, s, r);
    if (exists)
        buf_format(&b, " %s", verdict_unit(r, 0));
    verdict_predicted(&b, s, r);
    page_cell(p, b.data);
    put_bracket(p, r);
    page_count(p, rec_number(r, "probability"));
    buf_free(&b);
}

/* "20 ms, 1 to 80 ms, 0.5": the corners of the box. */
static void put_corners(struct page *p, const json_t *r)
{
    static const char *const keys[] = {"ideal", "reference"};
    const char *cost = rec_text(r, "cost_metric"), *quality = rec_text(r, "quality_metric");
    struct buf b = {0};
    for (size_t i = 0; i < 2; i++) {
        const json_t *corner = json_object_get(r, keys[i]);
        buf_text(&b, i ? " to " : "");
        format_value(&b, cost ? cost : "", rec_number(corner, "cost"));
        buf_text(&b, ", ");
        format_value(&b, quality ? quality : "", rec_number(corner, "quality"));
    }
    page_cell(p, b.data);
    buf_free(&b);
}

static void put_volumes(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Contract", NULL}, {"Quality", NULL}, {"Batch", ""},     {"Best to worst corner", NULL},
        {"LLaDA", ""},      {"LLaMA", ""},     {"Difference", ""}};
    static const char *const sides[] = {"llada", "llama", "difference"};
    const json_t *list = runset_kind(s, "hypervolume"), *r;
    size_t i;
    if (json_array_size(list))
        page_table_folded(p, "Hypervolume",
                          "Share of the box between the best and the worst cost (by its logarithm) "
                          "and quality measured that the points of each model dominate. Another "
                          "box would give other shares.",
                          sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, r) {
        const char *quality = rec_text(r, "quality_metric");
        page_cell(p, sections_dash(rec_text(r, "contract")));
        page_cell(p, quality ? format_metric_name(quality) : "–");
        page_count(p, rec_number(r, "batch"));
        put_corners(p, r);
        for (size_t k = 0; k < 3; k++) {
            const json_t *v = json_object_get(r, sides[k]);
            page_value(p, rec_number(v, "value"), rec_number(v, "lo"), rec_number(v, "hi"), NULL);
        }
    }
    if (json_array_size(list))
        page_table_end(p);
}

void sections_crossovers(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Crossover", NULL}, {"Contract", NULL},     {"Quality", NULL}, {"Batch", ""},
        {"At", NULL},        {"Place [95 %]", NULL}, {"Bracket", NULL}, {"Probability", ""}};
    const json_t *list = runset_kind(s, "crossover"), *r;
    size_t i;
    if (!json_array_size(list))
        return;
    page_table(p, "The crossovers. X_lat: as fast as LLaMA; X_q: as good; X_par: both; X_batch, "
                  "X_length: where the advantage in time changes hands as batch or length grow. "
                  "Bracket: the measured points on either side, which need no interpolation.",
               sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, r)
        put_crossover(p, s, r);
    page_table_end(p);
    put_volumes(p, s);
}
