/* sections-compare.c - sections from comparison records: LLaDA against LLaMA at equal work, costs
 * of quantization, and differences between answers; see sections.h. A row joins the records of one
 * model and setting. Every change has its interval. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/sections.h"

/* The first comparison with the model and setting of `like`, in metric a or b; NULL: none. */
static const json_t *find(const json_t *list, const json_t *like, const char *a, const char *b)
{
    const char *model = rec_text(like, "model"), *setting = rec_text(like, "setting");
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record) {
        if (rec_is(record, "model", model) && rec_is(record, "setting", setting) &&
            (rec_is(record, "metric", a) || rec_is(record, "metric", b)))
            return record;
    }
    return NULL;
}

/* Puts "7.48 MB → 2.45 MB". */
static void put_change(struct page *page, const json_t *record, const char *metric)
{
    struct buf text = {0};
    if (record) {
        display_value(&text, metric, rec_number(record, "base_value"));
        buf_text(&text, " → ");
        display_value(&text, metric, rec_number(record, "config_value"));
    }
    sections_cell(page, &text);
}

/* Puts a ratio as "+1.2 [+0.4, +2.0] %", a difference of shares as "-1.6 [-4.7, +1.6] points". */
static void put_effect(struct page *page, const json_t *record)
{
    struct buf text = {0};
    sections_change(&text, rec_number(record, "value"), rec_number(record, "lo"),
                    rec_number(record, "hi"), rec_is(record, "effect", "ratio"));
    sections_cell(page, &text);
}

static void put_row(struct page *page, const json_t *list, const json_t *like, int folded)
{
    const json_t *bytes = find(list, like, "memory_weights_bytes", "memory_weights_bytes");
    const json_t *time = find(list, like, "norm_latency_ns_per_token", "norm_latency_ns_per_token");
    const json_t *ppl = find(list, like, "ppl", "elbo_ppl");
    const json_t *accuracy = find(list, like, "accuracy", "accuracy");
    const char *setting = rec_text(like, "setting"), *model = rec_text(like, "model");
    page_cell(page, model ? model : "–");
    page_cell(page, setting ? setting : "–");
    if (folded) {
        put_change(page, ppl, "ppl");
        put_change(page, accuracy, "accuracy");
        return;
    }
    put_change(page, bytes, "memory_weights_bytes");
    put_change(page, time, "norm_latency_ns_per_token");
    put_effect(page, ppl);
    put_effect(page, accuracy);
    char *n = mem_format("%lld / %lld", (long long)rec_int(ppl, "n", 0),
                         (long long)rec_int(accuracy, "n", 0));
    page_cell(page, n);
    free(n);
}

/* Puts a row for each model and quantization, and ends the table. folded 1: the rows of the folded
 * table. */
static void put_rows(struct page *page, const json_t *list, int folded)
{
    json_t *seen = json_object();
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record) {
        const char *model = rec_text(record, "model"), *setting = rec_text(record, "setting");
        if (rec_is(record, "effect", "disagreement"))
            continue;
        char *key = mem_format("%s\n%s", model ? model : "", setting ? setting : "");
        if (model && setting && rec_is(record, "by", "quant") && !json_object_get(seen, key))
            put_row(page, list, record, folded);
        json_object_set_new(seen, key, json_true());
        free(key);
    }
    page_table_end(page);
    json_decref(seen);
}

/* The system that is compared with LLaMA: LLaDA, or the latent thought model. */
struct compared_system { int latent; const char *name, *id, *heading; };
static const struct compared_system denoised = {0, "LLaDA", "comparisons",
                                          "LLaDA against LLaMA at the same work"};
static const struct compared_system latent = {1, "LTM", "latent",
                                              "Latent thought model against LLaMA"};

/* Opens the section of a system if it is not open and the system has a comparison. */
static void put_section(struct page *page, const struct runset *set,
                        const struct compared_system *who)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i,
                       record) if (rec_is(record, "by", "paradigm") &&
                                   rec_is(record, "setting", "latent") == who->latent &&
                                   (!page->section || strcmp(page->section, who->id) != 0))
        page_section(page, who->id, who->heading);
}

/* Puts the table of ratios of a system to LLaMA at points of equal work, with verdicts. of_text 1:
 * ratios of text a second; 0: ratios of times. Ratios without an interval are only counted. */
static void put_ratios(struct page *page, const struct runset *set,
                       const struct compared_system *who, int of_text, const char *caption)
{
    char *ratio = mem_format("%s / LLaMA [95 %%]", who->name);
    const struct page_column columns[] = {
        {who->name, NULL},
        {"LLaMA", NULL},
        {ratio, of_text ? "text_ratio" : "time_ratio"},
        {"Verdict", NULL},
        {"p, adjusted", ""},
        {"Launches", ""}};
    static const char *const keys[] = {"config", "base_config"};
    size_t i, null = 0;
    const json_t *record;
    put_section(page, set, who);
    page_table(page, caption, of_text ? 4 : 6, columns);
    json_array_foreach(runset_kind(set, "comparison"), i, record) {
        const char *metric = rec_text(record, "metric"), *verdict = rec_text(record, "verdict");
        if (!metric || !verdict || !rec_is(record, "by", "paradigm") ||
            rec_is(record, "metric", "output_bytes_per_s") != of_text ||
            rec_is(record, "setting", "latent") != who->latent)
            continue;
        if (isnan(rec_number(record, "lo")) || claims_times_are_null(set)) {
            null++;
            continue;
        }
        for (size_t k = 0; k < 2; k++)
            page_cell(page, rec_text(record, keys[k]) ? rec_text(record, keys[k]) : "–");
        page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                   rec_number(record, "hi"), NULL);
        page_cell(page, verdict);
        if (of_text)
            continue;
        page_count(page, rec_number(record, "p_holm"));
        page_count(page, (double)rec_int(record, "launches", 0));
    }
    page_table_end(page);
    if (null)
        page_text(page,
                  "%zu further pairs of points have no ratio of %s: their launches are too few "
                  "or were disturbed.",
                  null, of_text ? "text" : "times");
    free(ratio);
}

static void put_all_ratios(struct page *page, const struct runset *set)
{
    put_ratios(page, set, &denoised, 0,
               "Time of an answer, LLaDA / LLaMA, paired by launch. SAME: the whole interval lies "
               "within 2 % of 1. UNDECIDED: the interval contains 1 but is not within 2 % of 1. p: "
               "against a ratio of 1, adjusted by Holm for all ratios of one sweep.");
    put_ratios(page, set, &denoised, 1,
               "Bytes of text a second (up to the end of the text), LLaDA / LLaMA. The tokenizers "
               "differ, so tokens a second cannot be compared.");
    put_ratios(page, set, &latent, 0,
               "Time of an answer, latent thought model (with the fit of its latents) / LLaMA, "
               "paired by launch. vi_steps 0: no fit.");
}

void sections_comparisons(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Model", NULL},        {"Setting", NULL},
        {"Weights", NULL},      {"Time a token", NULL},
        {"Perplexity, change [95 %]", NULL}, {"Accuracy, change [95 %]", NULL},
        {"Prompts", NULL}};
    static const struct page_column more[] = {
        {"Model", NULL}, {"Setting", NULL}, {"Perplexity", NULL}, {"Accuracy", NULL}};
    const json_t *list = runset_kind(set, "comparison"), *record;
    size_t i;
    int quantized = 0;
    put_all_ratios(page, set);
    json_array_foreach(list, i, record)
        quantized |= rec_is(record, "by", "quant") && !rec_is(record, "effect", "disagreement");
    if (!quantized)
        return;
    page_section(page, "quantization", "Quantization: costs and savings");
    page_table(page,
               "Each model with and without quantized matrices, on the same prompts. The model "
               "itself gives the perplexity of the reference texts: exact for LLaMA, a bound "
               "for LLaDA. Intervals resample prompts in pairs; a change whose interval "
               "contains 0 is not a finding. Prompts: scored texts / matched answers. Time a "
               "token: time of an answer / its tokens; the median of one launch has no "
               "interval.",
               sizeof columns / sizeof *columns, columns);
    put_rows(page, list, 0);
    page_table_folded(page, "Further columns: Perplexity, Accuracy",
                      "Further columns of the table above.", sizeof more / sizeof *more, more);
    put_rows(page, list, 1);
}

/* ---- robustness ---- */

/* The comparison of the two configurations of `like` with this metric and effect; NULL: none. */
static const json_t *find_other(const json_t *list, const json_t *like, const char *metric,
                                const char *effect)
{
    size_t i;
    const json_t *record;
    json_array_foreach(
        list, i, record) if (rec_is(record, "effect", effect) && rec_is(record, "metric", metric) &&
                             json_equal(json_object_get(record, "config"),
                                        json_object_get(like, "config")) &&
                             json_equal(json_object_get(record, "base_config"),
                                        json_object_get(like, "base_config"))) return record;
    return NULL;
}

static void put_pair(struct page *page, const json_t *list, const json_t *like)
{
    static const char *const metrics[] = {"differing_answers_ratio", "differing_ids_ratio",
                                          "first_difference_tokens", "first_difference_steps"};
    struct buf text = {0};
    const char *by = rec_text(like, "by"), *setting = rec_text(like, "setting");
    buf_format(&text, "%s %s", by ? by : "", setting ? setting : "");
    page_cell(page, sections_dash(rec_text(like, "base_config")));
    page_cell(page, text.data);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *record = find_other(list, like, metrics[i], "disagreement");
        page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                   rec_number(record, "hi"), NULL);
    }
    put_effect(page, find_other(list, like, "accuracy", "difference"));
    page_count(page, rec_number(like, "n"));
    buf_free(&text);
}

void sections_robustness(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL},
        {"Against", NULL},
        {"Answers that differ", "differing_answers_ratio"},
        {"Tokens that differ", "differing_ids_ratio"},
        {"First token that differs", "first_difference_tokens"},
        {"Step of that token", "first_difference_steps"},
        {"Accuracy [95 %]", NULL},
        {"Answers", ""}};
    const json_t *list = runset_kind(set, "comparison"), *record;
    size_t i;
    int said = 0;
    json_array_foreach(list, i, record) {
        if (!rec_is(record, "effect", "disagreement") ||
            !rec_is(record, "metric", "differing_answers_ratio"))
            continue;
        if (!said++) {
            page_section(page, "robustness", "Differences between answers of the same weights");
            page_table(page, "The same prompts and weights with one setting changed: the share of "
                             "answers and tokens that differ, and the first difference (median "
                             "over differing answers). A difference that a number format alone "
                             "causes is not a finding about the models.",
                       sizeof columns / sizeof *columns, columns);
        }
        put_pair(page, list, record);
    }
    if (said)
        page_table_end(page);
}
