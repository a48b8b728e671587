/* sections-ablation.c - see sections.h: options and levels of saving, each alone against the base
 * on the same prompts (kind `ablation`). A row shows the cost of an option, its effects, and the
 * outcome of claims about it. */
#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

/* The value of no change: 0 of a difference, 1 of a ratio. */
static double neutral_value(const json_t *r)
{
    const char *effect = rec_text(r, "effect");
    return effect && !strcmp(effect, "difference") ? 0 : 1;
}

static void put_answers(struct page *p, const json_t *r)
{
    struct buf b = {0};
    double n = rec_number(r, "answers"), differ = rec_number(r, "differing_answers");
    if (!isnan(n) && !isnan(differ))
        buf_format(&b, "%.0f of %.0f%s", differ, n,
                   !json_is_true(json_object_get(r, "exact")) ? ""
                   : differ > 0 ? ", but the option is exact" : ", exact");
    sections_cell(p, &b);
}

static void put_qualities(struct page *p, const json_t *r)
{
    struct buf b = {0};
    size_t i;
    const json_t *q;
    json_array_foreach(json_object_get(r, "qualities"), i, q) {
        const char *metric = rec_text(q, "metric");
        buf_format(&b, "%s%s ", i ? "; " : "", metric ? metric : "");
        sections_change(&b, rec_number(q, "value"), rec_number(q, "lo"), rec_number(q, "hi"),
                        neutral_value(q));
    }
    sections_cell(p, &b);
}

static void put_claims(struct page *p, const json_t *r)
{
    struct buf b = {0};
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(r, "claims"), i, c)
        buf_format(&b, "%s%s %s", i ? "; " : "", sections_dash(rec_text(c, "row")),
                   sections_dash(rec_text(c, "outcome")));
    sections_cell(p, &b);
}

static void put_option(struct page *p, const json_t *r)
{
    static const char *const bytes[] = {"memory_weights_bytes", "memory_kv_bytes",
                                        "memory_activations_bytes"};
    const char *flags = rec_text(r, "flags"), *why = rec_text(r, "not_run_reason");
    struct buf memory = {0}, time = {0};
    page_cell(p, sections_dash(rec_text(r, "arch")));
    page_cell(p, sections_dash(rec_text(r, "option")));
    page_cell(p, why ? why : flags && *flags ? flags : "–");
    put_answers(p, r);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        page_value(p, rec_number(r, bytes[i]), NAN, NAN, NULL);
    sections_change(&memory, rec_number(r, "memory_ratio"), NAN, NAN, 1);
    sections_cell(p, &memory);
    if (!isnan(rec_number(r, "time_lo"))) /* else launches are too few or disturbed */
        sections_change(&time, rec_number(r, "time_ratio"), rec_number(r, "time_lo"),
                        rec_number(r, "time_hi"), 1);
    sections_cell(p, &time);
    page_value(p, rec_number(r, "output_tokens_per_s"), NAN, NAN, NULL);
    put_qualities(p, r);
    put_claims(p, r);
}

/* A claim about one system, with the measured effect. */
static void put_claim(struct page *p, const json_t *r, const json_t *c)
{
    struct buf b = {0};
    const char *metric = rec_text(c, "metric"), *why = rec_text(c, "outcome_reason");
    double most = rec_number(c, "most"), least = rec_number(c, "least");
    double bound = isnan(most) ? least : most, none = neutral_value(c);
    page_cell(p, sections_dash(rec_text(c, "row")));
    page_cell(p, sections_dash(rec_text(c, "text")));
    page_cell(p, sections_dash(rec_text(r, "arch")));
    page_cell(p, sections_dash(rec_text(r, "option")));
    buf_format(&b, "%s %s ", sections_dash(metric), isnan(most) ? "at least" : "at most");
    if (rec_text(c, "effect"))
        sections_change(&b, bound, NAN, NAN, none);
    else /* not measured, so not known whether it is a ratio */
        display_digits(&b, bound);
    sections_cell(p, &b);
    sections_change(&b, rec_number(c, "value"), rec_number(c, "lo"), rec_number(c, "hi"), none);
    sections_cell(p, &b);
    buf_format(&b, "%s%s%s", sections_dash(rec_text(c, "outcome")), why ? ": " : "",
               why ? why : "");
    sections_cell(p, &b);
}

static void put_all_claims(struct page *p, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Row", NULL}, {"Claim", NULL}, {"System", NULL}, {"Option", NULL},
        {"Claimed bound", NULL}, {"Measured [95 %]", NULL}, {"Outcome", NULL}};
    size_t i, k;
    const json_t *r, *c;
    page_table_folded(p, "Claims one by one",
                      "Rows are those of data/requirements.tsv. Held: the whole interval is within "
                      "the bound. Not held: the whole interval is outside. Undecided: the interval "
                      "contains the bound, or there is none. Counters have no interval: their "
                      "value decides.",
                      sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, r)
        json_array_foreach(json_object_get(r, "claims"), k, c)
            put_claim(p, r, c);
    page_table_end(p);
}

void sections_ablation(struct page *p, const struct runset *s)
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
    const json_t *list = runset_kind(s, "ablation"), *r;
    size_t i;
    if (!json_array_size(list))
        return;
    page_section(p, "options", "Options: savings and costs");
    page_table(p, "Each option alone, and each level of saving, compared with the base (the first "
                  "row) of the same system on the same prompts. Changes of peak memory, latency "
                  "and perplexity are relative; changes of accuracy are in points. Intervals are "
                  "over launches and over paired prompts. The model itself gives the perplexity of "
                  "the reference texts.",
               sizeof columns / sizeof *columns, columns);
    json_array_foreach(list, i, r)
        put_option(p, r);
    page_table_end(p);
    put_all_claims(p, list);
}
