/* sections-load.c - the section on prompts that arrive; see sections.h. Latency there includes a
 * queue, so these points are in no other table. */
#include <math.h>
#include <string.h>

#include "lib/analysis/loads.h"
#include "lib/analysis/verdict/verdict.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const metrics[] = {"e2e_ns", "ttft_ns", "requests_per_s", "goodput_per_s"};

/* Appends the limits of the goodput, as in " (limits: 500 ms to the first token, 50 ms a token
 * after it)". */
static void put_limits(struct buf *text, const json_t *goodput)
{
    static const char *const keys[] = {"ttft_limit_ns", "itl_limit_ns"};
    static const char *const words[] = {"to the first token", "a token after it"};
    int n = 0;
    for (size_t i = 0; i < COUNT(keys); i++) {
        const double limit = rec_number(goodput, keys[i]);
        if (isnan(limit))
            continue;
        buf_text(text, n++ ? ", " : " (limits: ");
        display_value(text, "limit_ns", limit);
        buf_format(text, " %s", words[i]);
    }
    buf_text(text, n ? ")" : "");
}

static void put_rows(struct page *page, const struct runset *set, const struct loads *loads)
{
    for (size_t i = 0; i < loads->n; i++) {
        const struct load *load = &loads->v[i];
        page_cell(page, load->name);
        page_count(page, load->rate);
        for (size_t k = 0; k < COUNT(metrics); k++) {
            const json_t *metric = loads_metric(set, load, metrics[k]);
            page_value(page, rec_number(metric, "value"), rec_number(metric, "lo"),
                       rec_number(metric, "hi"), rec_text(metric, "value_reason"));
        }
    }
}

void sections_load(struct page *page, const struct runset *set)
{
    struct page_column columns[2 + COUNT(metrics)] = {{"Configuration", NULL},
                                                      {"Requests/s that arrive", ""}};
    struct loads loads;
    struct buf caption = {0};
    loads_gather(&loads, set);
    for (size_t k = 0; k < COUNT(metrics); k++)
        columns[2 + k] = (struct page_column){display_metric_name(metrics[k]), metrics[k]};
    if (loads.n) {
        buf_text(&caption, "Prompts that arrive at random times, at several rates, with 95 % "
                           "intervals. Times run from the arrival. Requests within the limits are "
                           "the goodput");
        put_limits(&caption, loads_metric(set, &loads.v[0], "goodput_per_s"));
        buf_text(&caption, ".");
        page_section(page, "load", "Requests that arrive");
        page_table(page, caption.data, COUNT(columns), columns);
        put_rows(page, set, &loads);
        page_table_end(page);
    }
    buf_free(&caption);
    loads_free(&loads);
}

/* Appends one sentence on a crossover over rates. */
static void put_sentence(struct buf *text, const struct runset *set, const struct load *load,
                         const json_t *record)
{
    struct buf place = {0}, good = {0};
    if (json_is_true(json_object_get(record, "exists"))) {
        verdict_place(&place, set, record);
        buf_format(text, "%s: LLaDA answers faster than LLaMA %s %s requests a second.", load->name,
                   rec_is(record, "direction", "cheaper_from") ? "from" : "up to", place.data);
    } else {
        buf_format(text, "%s: no rate at which both models are equally fast is known (%s).",
                   load->name, sections_dash(rec_text(record, "reason")));
    }
    loads_as_good(&good, record);
    if (good.len)
        buf_format(text, " %s.", good.data);
    buf_free(&place);
    buf_free(&good);
}

void sections_load_sentences(struct page *page, const struct runset *set)
{
    struct loads loads;
    loads_gather(&loads, set);
    for (size_t i = 0; i < loads.n; i++) {
        const int is_first = !i || strcmp(loads.v[i].series, loads.v[i - 1].series);
        const json_t *record = is_first ? loads_crossover(set, &loads.v[i]) : NULL;
        struct buf text = {0};
        if (record) {
            put_sentence(&text, set, &loads.v[i], record);
            page_text(page, "%s", text.data);
        }
        buf_free(&text);
    }
    loads_free(&loads);
}
