/* sections-compare.c - see sections.h: LLaDA against LLaMA at equal work, costs of quantization,
 * and differences between answers, from comparison records. A row joins the records of one model
 * and setting. Every change has its interval. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/sections.h"

/* The first comparison of this model and setting in one of the metrics a, b. */
static const json_t *find(const json_t *list, const json_t *like, const char *a, const char *b)
{
    const char *model = rec_text(like, "model"), *setting = rec_text(like, "setting");
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r) {
        if (rec_is(r, "model", model) && rec_is(r, "setting", setting) &&
            (rec_is(r, "metric", a) || rec_is(r, "metric", b)))
            return r;
    }
    return NULL;
}

/* Puts "7.48 MB → 2.45 MB". */
static void put_change(struct page *p, const json_t *r, const char *metric)
{
    struct buf b = {0};
    if (r) {
        display_value(&b, metric, rec_number(r, "base_value"));
        buf_text(&b, " → ");
        display_value(&b, metric, rec_number(r, "config_value"));
    }
    sections_cell(p, &b);
}

/* Puts a ratio as "+1.2 [+0.4, +2.0] %", a difference of shares as "-1.6 [-4.7, +1.6] points". */
static void put_effect(struct page *p, const json_t *r)
{
    struct buf b = {0};
    sections_change(&b, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"),
                    rec_is(r, "effect", "ratio"));
    sections_cell(p, &b);
}

static void put_row(struct page *p, const json_t *list, const json_t *like, int folded)
{
    const json_t *bytes = find(list, like, "memory_weights_bytes", "memory_weights_bytes");
    const json_t *time = find(list, like, "norm_latency_ns_per_token", "norm_latency_ns_per_token");
    const json_t *ppl = find(list, like, "ppl", "elbo_ppl");
    const json_t *accuracy = find(list, like, "accuracy", "accuracy");
    const char *setting = rec_text(like, "setting"), *model = rec_text(like, "model");
    page_cell(p, model ? model : "–");
    page_cell(p, setting ? setting : "–");
    if (folded) {
        put_change(p, ppl, "ppl");
        put_change(p, accuracy, "accuracy");
        return;
    }
    put_change(p, bytes, "memory_weights_bytes");
    put_change(p, time, "norm_latency_ns_per_token");
    put_effect(p, ppl);
    put_effect(p, accuracy);
    char *n = mem_format("%lld / %lld", (long long)rec_int(ppl, "n", 0),
                         (long long)rec_int(accuracy, "n", 0));
    page_cell(p, n);
    free(n);
}

/* A row for each model and quantization. */
static void put_rows(struct page *p, const json_t *list, int folded)
{
    json_t *seen = json_object();
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r) {
        const char *model = rec_text(r, "model"), *setting = rec_text(r, "setting");
        if (rec_is(r, "effect", "disagreement"))
            continue;
        char *key = mem_format("%s\n%s", model ? model : "", setting ? setting : "");
        if (model && setting && rec_is(r, "by", "quant") && !json_object_get(seen, key))
            put_row(p, list, r, folded);
        json_object_set_new(seen, key, json_true());
        free(key);
    }
    page_table_end(p);
    json_decref(seen);
}

/* The system that is compared with LLaMA: LLaDA, or the latent thought model. */
struct compared_system { int latent; const char *name, *id, *heading; };
static const struct compared_system denoised = {0, "LLaDA", "comparisons",
                                          "LLaDA against LLaMA at the same work"};
static const struct compared_system latent = {1, "LTM", "latent",
                                              "Latent thought model against LLaMA"};

/* Opens the section of a system if there is a comparison of it. */
static void put_section(struct page *p, const struct runset *s, const struct compared_system *who)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (rec_is(r, "by", "paradigm") && rec_is(r, "setting", "latent") == who->latent &&
            (!p->section || strcmp(p->section, who->id) != 0))
            page_section(p, who->id, who->heading);
}

/* Ratios of the two systems at points of equal work, with verdicts. Ratios without an interval are
 * counted, not shown. */
static void put_ratios(struct page *p, const struct runset *s, const struct compared_system *who,
                       int of_text, const char *caption)
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
    const json_t *r;
    put_section(p, s, who);
    page_table(p, caption, of_text ? 4 : 6, columns);
    json_array_foreach(runset_kind(s, "comparison"), i, r) {
        const char *metric = rec_text(r, "metric"), *verdict = rec_text(r, "verdict");
        if (!metric || !verdict || !rec_is(r, "by", "paradigm") ||
            rec_is(r, "metric", "output_bytes_per_s") != of_text ||
            rec_is(r, "setting", "latent") != who->latent)
            continue;
        if (isnan(rec_number(r, "lo")) || claims_times_are_null(s)) {
            null++;
            continue;
        }
        for (size_t k = 0; k < 2; k++)
            page_cell(p, rec_text(r, keys[k]) ? rec_text(r, keys[k]) : "–");
        page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), NULL);
        page_cell(p, verdict);
        if (of_text)
            continue;
        page_count(p, rec_number(r, "p_holm"));
        page_count(p, (double)rec_int(r, "launches", 0));
    }
    page_table_end(p);
    if (null)
        page_text(p, "%zu further pairs of points have no ratio of %s: their launches are too few "
                     "or were disturbed.", null, of_text ? "text" : "times");
    free(ratio);
}

static void put_all_ratios(struct page *p, const struct runset *s)
{
    put_ratios(p, s, &denoised, 0,
               "Time of an answer, LLaDA / LLaMA, paired by launch. SAME: the whole interval lies "
               "within 2 % of 1. UNDECIDED: the interval contains 1 and is wider. p: against a "
               "ratio of 1, adjusted by Holm for all ratios of one sweep.");
    put_ratios(p, s, &denoised, 1,
               "Bytes of text a second (up to the end of the text), LLaDA / LLaMA. The tokenizers "
               "differ, so tokens a second cannot be compared.");
    put_ratios(p, s, &latent, 0,
               "Time of an answer, latent thought model (with the fit of its latents) / LLaMA, "
               "paired by launch. vi_steps 0: no fit.");
}

void sections_comparisons(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Model", NULL},        {"Setting", NULL},
        {"Weights", NULL},      {"Time a token", NULL},
        {"Perplexity, change [95 %]", NULL}, {"Accuracy, change [95 %]", NULL},
        {"Prompts", NULL}};
    static const struct page_column more[] = {
        {"Model", NULL}, {"Setting", NULL}, {"Perplexity", NULL}, {"Accuracy", NULL}};
    const json_t *list = runset_kind(s, "comparison"), *r;
    size_t i;
    int quantized = 0;
    put_all_ratios(p, s);
    json_array_foreach(list, i, r)
        quantized |= rec_is(r, "by", "quant") && !rec_is(r, "effect", "disagreement");
    if (!quantized)
        return;
    page_section(p, "quantization", "Quantization: costs and savings");
    page_table(p, "Each model with and without quantized matrices, on the same prompts. The model "
                  "itself gives the perplexity of the reference texts: exact for LLaMA, a bound "
                  "for LLaDA. Intervals resample prompts in pairs; a change whose interval "
                  "contains 0 is not a finding. Prompts: scored texts / matched answers. Time a "
                  "token: time of an answer / its tokens; the median of one launch has no "
                  "interval.",
               sizeof columns / sizeof *columns, columns);
    put_rows(p, list, 0);
    page_table_folded(p, "Further columns: Perplexity, Accuracy",
                      "Further columns of the table above.", sizeof more / sizeof *more, more);
    put_rows(p, list, 1);
}

/* ---- robustness ---- */

/* The comparison of the same two configurations in a metric; NULL: none. */
static const json_t *find_other(const json_t *list, const json_t *like, const char *metric,
                                const char *effect)
{
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
        if (rec_is(r, "effect", effect) && rec_is(r, "metric", metric) &&
            json_equal(json_object_get(r, "config"), json_object_get(like, "config")) &&
            json_equal(json_object_get(r, "base_config"), json_object_get(like, "base_config")))
            return r;
    return NULL;
}

static void put_pair(struct page *p, const json_t *list, const json_t *like)
{
    static const char *const metrics[] = {"differing_answers_ratio", "differing_ids_ratio",
                                          "first_difference_tokens", "first_difference_steps"};
    struct buf b = {0};
    const char *by = rec_text(like, "by"), *setting = rec_text(like, "setting");
    buf_format(&b, "%s %s", by ? by : "", setting ? setting : "");
    page_cell(p, sections_dash(rec_text(like, "base_config")));
    page_cell(p, b.data);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *r = find_other(list, like, metrics[i], "disagreement");
        page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), NULL);
    }
    put_effect(p, find_other(list, like, "accuracy", "difference"));
    page_count(p, rec_number(like, "n"));
    buf_free(&b);
}

void sections_robustness(struct page *p, const struct runset *s)
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
    const json_t *list = runset_kind(s, "comparison"), *r;
    size_t i;
    int said = 0;
    json_array_foreach(list, i, r) {
        if (!rec_is(r, "effect", "disagreement") ||
            !rec_is(r, "metric", "differing_answers_ratio"))
            continue;
        if (!said++) {
            page_section(p, "robustness", "Differences between answers of the same weights");
            page_table(p, "The same prompts and weights with one setting changed: the share of "
                          "answers and tokens that differ, and the first difference (median "
                          "over differing answers). A difference that a number format alone "
                          "causes is not a finding about the models.",
                       sizeof columns / sizeof *columns, columns);
        }
        put_pair(p, list, r);
    }
    if (said)
        page_table_end(p);
}
