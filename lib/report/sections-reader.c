/* sections-reader.c - see sections.h: the writing speed of each configuration beside the speed of a
 * reader. Words are counted in the measured texts, so no tokenizer is assumed. The time of an
 * answer counts from the prompt, so text that appears at once has no infinite speed. Time to the
 * first token and the longest gap stand beside it. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/config_table.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double MINUTE = 60e9; /* ns */

/* Words a minute from ns a word; the ends of the interval swap. */
static struct value words_of(const struct value *ns)
{
    return (struct value){MINUTE / ns->at, MINUTE / ns->hi, MINUTE / ns->lo, ns->record};
}

static const char *speed_mark(const struct value *words, double speed)
{
    if (isnan(words->lo))
        return words->at >= speed ? "yes (no interval)" : "no (no interval)";
    return words->lo >= speed ? "yes" : words->hi < speed ? "no" : "undecided";
}

static void put_metric(struct page *p, const struct runset *s, const char *point,
                       const char *metric)
{
    const json_t *r = runset_find(s, "metric", point, metric);
    page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"),
               rec_text(r, "value_reason"));
}

/* Puts the device, or the processor with its threads. */
static void put_machine(struct page *p, const struct runset *s, const char *point)
{
    const json_t *about = runset_config(s, point);
    const char *device = rec_text(about, "device_name");
    const char *cpu = json_string_value(runset_meta(s, "cpu"));
    char *text = device ? mem_text(device)
                        : mem_format("%s, %lld threads", sections_dash(cpu),
                                     (long long)rec_int(about, "threads", 0));
    page_cell(p, text);
    free(text);
}

static void put_row(struct page *p, const struct runset *s, const struct config_row *c,
                    double speed)
{
    const struct value words = words_of(&c->y);
    const json_t *token = runset_find(s, "metric", c->point, "norm_latency_ns_per_token");
    page_cell(p, c->config);
    page_cell(p, speed_mark(&words, speed));
    page_value(p, words.at, words.lo, words.hi, NULL);
    page_count(p, 1e9 / rec_number(token, "value"));
    put_metric(p, s, c->point, "ttft_ns");
    put_metric(p, s, c->point, "longest_gap_ns");
    put_machine(p, s, c->point);
}

void sections_reader(struct page *p, const struct runset *s, double speed)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL},
        {"As fast as a reader", NULL},
        {"words a minute", "words_per_min"},
        {"tokens a second", "reader_tokens_per_s"},
        {"time to first readable token", "ttft_ns"},
        {"longest gap in an answer", "longest_gap_ns"},
        {"Machine", NULL}};
    struct config_table c = {0};
    int said = 0;
    config_table_metric(&c, s, "norm_latency_ns_per_word");
    char *caption = mem_format(
        "Writing speed of a single answer, compared with a reader of %.4g words a minute (238: "
        "silent reading of English, Brysbaert 2019, doi 10.1016/j.jml.2019.104047). Speed: words "
        "of the text / whole time of an answer. Yes: the whole interval is at least as fast as the "
        "reader. Gap: time without a visible change.",
        speed);
    for (size_t i = 0; i < c.n; i++) {
        if (isnan(c.v[i].y.at))
            continue;
        if (!said++) {
            page_section(p, "reader", "Writing speed and reading speed");
            page_table(p, caption, sizeof columns / sizeof *columns, columns);
        }
        put_row(p, s, &c.v[i], speed);
    }
    if (said)
        page_table_end(p);
    free(caption);
    config_table_free(&c);
}
