/* sections-stacks.c - the section on points of other engines; see sections.h. These points have
 * their own section, because a ratio across two software stacks compares two programs, not two ways
 * of generating text. The first sentence of the section says so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* The metric record of a point; NULL: none. */
static const json_t *find(const json_t *list, const char *point, const char *metric)
{
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record)
        if (!strcmp(rec_kind(record), "metric") && rec_is(record, "point", point) &&
            rec_is(record, "metric", metric))
            return record;
    return NULL;
}

char *sections_stack_names(const struct runset *set)
{
    json_t *seen = json_object();
    struct buf text = {0};
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, RUNSET_FOREIGN), i, record) {
        const char *stack = about_stack(record);
        if (!json_object_get(seen, stack))
            buf_format(&text, "%s%s", text.len ? "; " : "", stack);
        json_object_set_new(seen, stack, json_true());
    }
    json_decref(seen);
    return text.data;
}

/* Puts a table with a row for each point and a column for each metric. */
static void put_metrics(struct page *page, const json_t *list)
{
    static const char *const metrics[] = {"e2e_ns", "ttft_ns", "itl_ns", "output_tokens_per_s",
                                          "requests_per_s", "goodput_per_s"};
    struct page_column columns[1 + COUNT(metrics)] = {{"Configuration", NULL}};
    json_t *seen = json_object();
    size_t i;
    const json_t *record;
    for (size_t k = 0; k < COUNT(metrics); k++)
        columns[1 + k] = (struct page_column){display_metric_name(metrics[k]), metrics[k]};
    page_table(page, "Times as the client saw them: with its connection, the server's queue, its "
                     "tokenizer and template.", COUNT(columns), columns);
    json_array_foreach(list, i, record) {
        const char *point = about_point(record);
        if (strcmp(rec_kind(record), "metric") || !point || json_object_get(seen, point))
            continue;
        json_object_set_new(seen, point, json_true());
        page_cell(page, sections_dash(rec_text(record, "config")));
        for (size_t k = 0; k < COUNT(metrics); k++) {
            const json_t *metric = find(list, point, metrics[k]);
            page_value(page, rec_number(metric, "value"), rec_number(metric, "lo"),
                       rec_number(metric, "hi"), rec_text(metric, "value_reason"));
        }
    }
    page_table_end(page);
    json_decref(seen);
}

static void put_quality(struct page *page, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL}, {"Quality", NULL}, {"Value [95 %]", ""}};
    size_t i;
    const json_t *record;
    page_table(page, "Quality of their answers.", COUNT(columns), columns);
    json_array_foreach(list, i, record) {
        const char *metric = rec_text(record, "metric");
        if (strcmp(rec_kind(record), "quality") || !metric)
            continue;
        page_cell(page, sections_dash(rec_text(record, "config")));
        page_cell(page, display_metric_name(metric));
        page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                   rec_number(record, "hi"), rec_text(record, "value_reason"));
    }
    page_table_end(page);
}

/* Puts the ratios of other engines to LLaMA of this program; the head of the column says that a
 * ratio is across two stacks. */
static void put_ratios(struct page *page, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Other engine", NULL}, {"LLaMA here", NULL}, {"Measure", NULL},
        {"Other stack / this one [95 %]", "time_ratio"}, {"Verdict on the two programs", NULL}};
    size_t i;
    const json_t *record;
    page_table(page, "Ratios of two programs (compare --by stack), on the same prompts: kernels, "
                     "number formats, server and clock differ together.", COUNT(columns), columns);
    json_array_foreach(list, i, record) {
        const char *metric = rec_text(record, "metric");
        if (strcmp(rec_kind(record), "comparison") || !metric || !rec_is(record, "effect", "ratio"))
            continue;
        page_cell(page, sections_dash(rec_text(record, "config")));
        page_cell(page, sections_dash(rec_text(record, "base_config")));
        page_cell(page, display_metric_name(metric));
        page_value(page, rec_number(record, "value"), rec_number(record, "lo"),
                   rec_number(record, "hi"), rec_text(record, "value_reason"));
        page_cell(page, sections_dash(rec_text(record, "verdict")));
    }
    page_table_end(page);
}

void sections_stacks(struct page *page, const struct runset *set)
{
    const json_t *list = runset_kind(set, RUNSET_FOREIGN);
    char *names = sections_stack_names(set);
    if (!json_array_size(list))
        return;
    page_section(page, "stacks", "Other engines: the software stack differs");
    page_text(page,
              "The software stack of these points differs from that of all others on these "
              "pages: %s. They do not run on the same kernels, so a ratio to them compares two "
              "programs, not two ways of generating text. The answer, the fronts, the "
              "crossovers and the figures leave them out.",
              sections_dash(names));
    put_metrics(page, list);
    put_quality(page, list);
    put_ratios(page, list);
    free(names);
}
