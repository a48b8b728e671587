/* sections-ablation.c - the section on options and levels of saving (records of kind `ablation`);
 * see sections.h. Each option alone is compared with the base on the same prompts. A row shows the
 * cost of an option, its effects, and the outcome of claims about it. */
#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

/* The value that means no change: 0 for a difference, 1 for a ratio. */
static double neutral_value(const json_t *record)
{
    const char *effect = rec_text(record, "effect");
    return effect && !strcmp(effect, "difference") ? 0 : 1;
}

static void put_answers(struct page *page, const json_t *record)
{
    struct buf text = {0};
    double n = rec_number(record, "answers"), differ = rec_number(record, "differing_answers");
    if (!isnan(n) && !isnan(differ))
        buf_format(&text, "%.0f of %.0f%s", differ, n,
                   !json_is_true(json_object_get(record, "exact")) ? ""
                   : differ > 0 ? ", but the option is exact" : ", exact");
    sections_cell(page, &text);
}

static void put_qualities(struct page *page, const json_t *record)
{
    struct buf text = {0};
    size_t i;
    const json_t *quality;
    json_array_foreach(json_object_get(record, "qualities"), i, quality) {
        const char *metric = rec_text(quality, "metric");
        buf_format(&text, "%s%s ", i ? "; " : "", metric ? metric : "");
        sections_change(&text, rec_number(quality, "value"), rec_number(quality, "lo"),
                        rec_number(quality, "hi"), neutral_value(quality));
    }
    sections_cell(page, &text);
}

static void put_claims(struct page *page, const json_t *record)
{
    struct buf text = {0};
    size_t i;
    const json_t *claim;
    json_array_foreach(json_object_get(record, "claims"), i, claim)
        buf_format(&text, "%s%s %s", i ? "; " : "", sections_dash(rec_text(claim, "row")),
                   sections_dash(rec_text(claim, "outcome")));
    sections_cell(page, &text);
}

static void put_option(struct page *page, const json_t *record)
{
    static const char *const bytes[] = {"memory_weights_bytes", "memory_kv_bytes",
                                        "memory_activations_bytes"};
    const char *flags = rec_text(record, "flags"), *why = rec_text(record, "not_run_reason");
    struct buf memory = {0}, time = {0};
    page_cell(page, sections_dash(rec_text(record, "arch")));
    page_cell(page, sections_dash(rec_text(record, "option")));
    page_cell(page, why ? why : flags && *flags ? flags : "–");
    put_answers(page, record);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        page_value(page, rec_number(record, bytes[i]), NAN, NAN, NULL);
    sections_change(&memory, rec_number(record, "memory_ratio"), NAN, NAN, 1);
    sections_cell(page, &memory);
    if (!isnan(rec_number(record, "time_lo"))) /* else launches are too few or disturbed */
        sections_change(&time, rec_number(record, "time_ratio"), rec_number(record, "time_lo"),
                        rec_number(record, "time_hi"), 1);
    sections_cell(page, &time);
    page_value(page, rec_number(record, "output_tokens_per_s"), NAN, NAN, NULL);
    put_qualities(page, record);
    put_claims(page, record);
}

/* Puts the row of a claim about one option, with the measured effect. */
static void put_claim(struct page *page, const json_t *record, const json_t *claim)
{
    struct buf text = {0};
    const char *metric = rec_text(claim, "metric"), *why = rec_text(claim, "outcome_reason");
    double most = rec_number(claim, "most"), least = rec_number(claim, "least");
    double bound = isnan(most) ? least : most, none = neutral_value(claim);
    page_cell(page, sections_dash(rec_text(claim, "row")));
    page_cell(page, sections_dash(rec_text(claim, "text")));
    page_cell(page, sections_dash(rec_text(record, "arch")));
    page_cell(page, sections_dash(rec_text(record, "option")));
    buf_format(&text, "%s %s ", sections_dash(metric), isnan(most) ? "at least" : "at most");
    if (rec_text(claim, "effect"))
        sections_change(&text, bound, NAN, NAN, none);
    else /* the effect was not measured, so it is unknown whether the bound is a ratio */
        display_digits(&text, bound);
    sections_cell(page, &text);
    sections_change(&text, rec_number(claim, "value"), rec_number(claim, "lo"),
                    rec_number(claim, "hi"), none);
    sections_cell(page, &text);
    buf_format(&text, "%s%s%s", sections_dash(rec_text(claim, "outcome")), why ? ": " : "",
               why ? why : "");
    sections_cell(page, &text);
}

static void put_all_claims(struct page *page, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Row", NULL}, {"Claim", NULL}, {"System", NULL}, {"Option", NULL},
        {"Claimed bound", NULL}, {"Measured [95 %]", NULL}, {"Outcome", NULL}};
    size_t i, k;
    const json_t *record, *claim;
    page_table_folded(page, "Claims one by one",
                      "Rows are those of data/requirements.tsv. Held: the whole interval is within "
                      "the bound. Not held: the whole interval is outside. Undecided: the interval "
                      "contains the bound, or there is none. Counters have no interval: their "
                      "value decides.",
                      sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, record)
        json_array_foreach(json_object_get(record, "claims"), k, claim)
            put_claim(page, record, claim);
    page_table_end(page);
}

void sections_ablation(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"System", NULL},
        {"Option", NULL},
        {"Flags", NULL},
        {"Answers that differ", NULL},
        {"Weights", "memory_weights_bytes"},
        {"Cache", "memory_kv_bytes"},
        {"Activations", "memory_activations_bytes"},
        {"Peak", NULL},
        {"Latency [95 %]", NULL},
        {"Tokens per second", "output_tokens_per_s"},
        {"Quality [95 %]", NULL},
        {"Claims", NULL}};
    const json_t *list = runset_kind(set, "ablation"), *record;
    size_t i;
    if (!json_array_size(list))
        return;
    page_section(page, "options", "Options: savings and costs");
    page_table(page,
               "Each option alone, and each level of saving, compared with the base (the first "
               "row) of the same system on the same prompts. Changes of peak memory, latency "
               "and perplexity are relative; changes of accuracy are in points. Intervals are "
               "over launches and over paired prompts. The model itself gives the perplexity of "
               "the reference texts.",
               sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, record)
        put_option(page, record);
    page_table_end(page);
    put_all_claims(page, list);
}
