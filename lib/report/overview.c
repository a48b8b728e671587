/* overview.c - the first screen of the main page, and the order of its sections; see overview.h. A
 * section is one row of parts[]: a sentence from claims, a figure (shelf.h), a table of
 * overview-*.c, and links to the page of all tables. */
#include "lib/report/overview.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/record/rec.h"
#include "lib/report/claims.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

struct overview_part {
    const char *key, *title;
    const char *figures[3]; /* names; the page shows the first figure that exists */
    void (*table)(struct page *page, const struct runset *set); /* NULL: overview_method() */
    struct page_link more[3]; /* links to the page of all tables */
};
static const char lead_figure[] = "pareto";
static const struct overview_part parts[] = {
    {"quality", "Quality and time by step count", {"steps"}, overview_quality,
     {{"tables.html#crossovers", "all crossovers"}, {"tables.html#quality", "all qualities"},
      {"tables.html#latency", "all latencies"}}},
    {"decoding", "Decoding methods", {"methods"}, overview_decoding,
     {{"tables.html#decoding", "all methods"}, {"tables.html#comparisons", "both contracts"},
      {"tables.html#options", "all options"}}},
    {"scale", "Batch and length", {"throughput", "ratio"}, overview_scale,
     {{"tables.html#throughput", "all throughputs"}, {"tables.html#comparisons", "ratios"},
      {"tables.html#figures", "more figures"}}},
    {"memory", "Memory", {"memory", "growth"}, overview_memory,
     {{"tables.html#memory", "all parts of memory"},
      {"tables.html#quantization", "quantization"}, {NULL, NULL}}},
    {"method", "How it was measured", {"drift"}, NULL,
     {{"tables.html#quiet", "machine state, launch by launch"},
      {"tables.html#threats", "limits of these numbers"},
      {"tables.html#records", "records and commands"}}}};

/* ---- the first screen ---- */

/* Appends a ratio with the digits that claims use: "0.60", "1.40", "21.0". */
static void put_digits(struct buf *text, double v)
{
    buf_format(text, "%.*f", fabs(v) < 0.1 ? 3 : fabs(v) < 10 ? 2 : fabs(v) < 100 ? 1 : 0,
               v);
}

/* Puts a card with "1.40 ×" and "[1.31, 1.50]", or with "not known" and the reason of a null
 * value. */
static void put_card(struct page *page, const json_t *record)
{
    const char *unit = rec_text(record, "unit"), *why = rec_text(record, "value_reason");
    const char *title = rec_text(record, "title"), *note = rec_text(record, "note");
    double value = rec_number(record, "value"), lo = rec_number(record, "lo"),
           hi = rec_number(record, "hi");
    struct buf number = {0}, interval = {0};
    if (isnan(value)) {
        buf_text(&number, "not known");
    } else {
        put_digits(&number, value);
        buf_format(&number, "\u00a0%s", !unit ? "" : strcmp(unit, "x") ? unit : "×");
    }
    if (!isnan(value) && !isnan(lo) && !isnan(hi)) {
        buf_text(&interval, "[");
        put_digits(&interval, lo);
        buf_text(&interval, ", ");
        put_digits(&interval, hi);
        buf_text(&interval, "]");
    }
    const struct page_card card = {title ? title : "", number.data,
                                   interval.data ? interval.data : "",
                                   note ? note : why ? why : ""};
    page_card(page, &card);
    buf_free(&number);
    buf_free(&interval);
}

static void put_cards(struct page *page, const struct runset *set)
{
    static const char *const keys[] = {"time_at_equal_quality", "throughput", "memory", "vanilla"};
    for (size_t i = 0; i < COUNT(keys); i++) {
        const json_t *record = claims_find(set, "card", keys[i]);
        if (record)
            put_card(page, record);
    }
    page_cards_end(page);
}

/* The title of a figure: the text of the claim `figure` with key `name`, else with key `key`; NULL:
 * none. With the key "lead" only the claim "lead" counts. */
static const char *message_of(const struct runset *set, const char *name, const char *key)
{
    const json_t *own = claims_find(set, "figure", name);
    const json_t *record = own && strcmp(key, "lead") ? own : claims_find(set, "figure", key);
    return record ? claims_text(record) : NULL;
}

/* Explains the names of the models; latent models only if the run has one. */
static void put_terms(struct page *page, const struct runset *set)
{
    int has_latent = 0;
    const json_t *record;
    size_t i;
    json_array_foreach(runset_kind(set, "metric"), i, record)
        has_latent |= rec_is(record, "paradigm", "latent");
    page_terms(page, has_latent ? "LLaDA (diffusion) fills in several tokens a step, LLaMA "
                                  "(autoregressive) writes one; LTM is a latent thought model."
                                : "LLaDA (diffusion) fills in several tokens a step; LLaMA "
                                  "(autoregressive) writes one token after another.");
}

static void put_first_screen(struct page *page, const struct runset *set, const struct shelf *shelf,
                             const char *title)
{
    const json_t *question = claims_find(set, "question", NULL);
    const json_t *answer = claims_find(set, "answer", NULL), *sure = claims_find(set, "sure", NULL);
    page_begin(page, PAGE_SHORT, question ? claims_text(question) : title);
    page_answer(page,
                answer ? claims_text(answer)
                       : "Undecided: these records have no claims, so "
                         "there is no answer.",
                claims_is_decided(answer));
    put_terms(page, set);
    page_sure(page, sure ? claims_text(sure) : "The tool conclude writes the claims of a run.",
              claims_is_decided(answer), "method");
    put_cards(page, set);
    if (shelf_has(shelf, lead_figure))
        shelf_put(page, shelf, lead_figure, message_of(set, lead_figure, "lead"), 1);
    page_contents(page);
}

/* ---- the sections ---- */

/* Puts the links of a part to sections of the page of all tables that exist. */
static void put_more(struct page *page, const struct page *tables, const struct overview_part *part)
{
    struct page_link there[COUNT(part->more)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(part->more) && part->more[i].href; i++)
        if (page_has_section(tables, strchr(part->more[i].href, '#') + 1))
            there[n++] = part->more[i];
    if (n)
        page_links(page, "In all tables:", there, n);
}

static void put_part(struct page *page, const struct runset *set, const struct overview *overview,
                     const struct overview_part *part)
{
    const json_t *said = claims_find(set, "section", part->key);
    page_section(page, part->key, part->title);
    if (said)
        page_sentence(page, claims_text(said));
    for (size_t i = 0; i < COUNT(part->figures) && part->figures[i]; i++)
        if (shelf_has(overview->shelf, part->figures[i]) &&
            claims_allow_figure(set, part->figures[i])) {
            shelf_put(page, overview->shelf, part->figures[i],
                      message_of(set, part->figures[i], part->key), 0);
            break;
        }
    if (part->table)
        part->table(page, set);
    else
        overview_method(page, set, overview->embedded);
    put_more(page, overview->tables, part);
}

/* If prompts that arrive were measured: X_rate, the figure, and a link to the table. */
static void put_load(struct page *page, const struct runset *set, const struct overview *overview)
{
    static const struct page_link there = {"tables.html#load", "latency and goodput by rate"};
    if (!json_array_size(runset_kind(set, RUNSET_LOADED)))
        return;
    page_section(page, "load", "Requests that arrive");
    sections_load_sentences(page, set);
    if (shelf_has(overview->shelf, "load"))
        shelf_put(page, overview->shelf, "load", "Latency by the rate of requests", 0);
    page_links(page, "In all tables:", &there, 1);
}

/* If other engines were measured: names them, and links to the page of all tables, which alone
 * shows their points. */
static void put_stacks(struct page *page, const struct runset *set)
{
    static const struct page_link there = {"tables.html#stacks", "other engines"};
    char *names = sections_stack_names(set);
    if (!names)
        return;
    page_text(page,
              "Other engines were measured, too (%s). Their software stack differs, so they are "
              "in no answer, figure or table of this page.",
              names);
    page_links(page, "In all tables:", &there, 1);
    free(names);
}

void overview_fill(struct page *page, const struct runset *set, const struct overview *overview)
{
    static const struct page_link forms[] = {{"tables.html", "all tables"},
                                             {"tables.tex", "LaTeX"},
                                             {"tables.html#records", "records"}};
    put_first_screen(page, set, overview->shelf, overview->title);
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (!parts[i].table) /* the last part, on how it was measured */
            put_load(page, set, overview);
        put_part(page, set, overview, &parts[i]);
    }
    put_stacks(page, set);
    page_links(page, "Other forms of this page:", forms, COUNT(forms));
    page_end(page);
}
