/* sections-stacks.c - see sections.h: points of other engines. They have a section of their own,
 * and its first sentence says why: a ratio across two software stacks is one of two programs, not
 * of two ways of generating text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/report/sections.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const json_t *find(const json_t *list, const char *point, const char *metric)
{
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
        if (!strcmp(rec_kind(r), "metric") && rec_is(r, "point", point) &&
            rec_is(r, "metric", metric))
            return r;
    return NULL;
}

char *sections_stack_names(const struct runset *s)
{
    json_t *seen = json_object();
    struct buf b = {0};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, RUNSET_FOREIGN), i, r) {
        const char *stack = about_stack(r);
        if (!json_object_get(seen, stack))
            buf_format(&b, "%s%s", b.len ? "; " : "", stack);
        json_object_set_new(seen, stack, json_true());
    }
    json_decref(seen);
    return b.data;
}

/* A row for each point, a column for each metric. */
static void put_metrics(struct page *p, const json_t *list)
{
    static const char *const metrics[] = {"e2e_ns", "ttft_ns", "itl_ns", "output_tokens_per_s",
                                          "requests_per_s", "goodput_per_s"};
    struct page_column columns[1 + COUNT(metrics)] = {{"Configuration", NULL}};
    json_t *seen = json_object();
    size_t i;
    const json_t *r;
    for (size_t k = 0; k < COUNT(metrics); k++)
        columns[1 + k] = (struct page_column){display_metric_name(metrics[k]), metrics[k]};
    page_table(p, "Times as the client saw them: with its connection, the server's queue, its "
                  "tokenizer and template.", COUNT(columns), columns);
    json_array_foreach(list, i, r) {
        const char *point = about_point(r);
        if (strcmp(rec_kind(r), "metric") || !point || json_object_get(seen, point))
            continue;
        json_object_set_new(seen, point, json_true());
        page_cell(p, sections_dash(rec_text(r, "config")));
        for (size_t k = 0; k < COUNT(metrics); k++) {
            const json_t *m = find(list, point, metrics[k]);
            page_value(p, rec_number(m, "value"), rec_number(m, "lo"), rec_number(m, "hi"),
                       rec_text(m, "value_reason"));
        }
    }
    page_table_end(p);
    json_decref(seen);
}

static void put_quality(struct page *p, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL}, {"Quality", NULL}, {"Value [95 %]", ""}};
    size_t i;
    const json_t *r;
    page_table(p, "Quality of their answers.", COUNT(columns), columns);
    json_array_foreach(list, i, r) {
        const char *metric = rec_text(r, "metric");
        if (strcmp(rec_kind(r), "quality") || !metric)
            continue;
        page_cell(p, sections_dash(rec_text(r, "config")));
        page_cell(p, display_metric_name(metric));
        page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"),
                   rec_text(r, "value_reason"));
    }
    page_table_end(p);
}

/* Ratios to our LLaMA, each labelled as one of two stacks. */
static void put_ratios(struct page *p, const json_t *list)
{
    static const struct page_column columns[] = {
        {"Other engine", NULL}, {"LLaMA here", NULL}, {"Measure", NULL},
        {"Other stack / this one [95 %]", "time_ratio"}, {"Verdict on the two programs", NULL}};
    size_t i;
    const json_t *r;
    page_table(p, "Ratios of two programs (compare --by stack), on the same prompts: kernels, "
                  "number formats, server and clock differ together.", COUNT(columns), columns);
    json_array_foreach(list, i, r) {
        const char *metric = rec_text(r, "metric");
        if (strcmp(rec_kind(r), "comparison") || !metric || !rec_is(r, "effect", "ratio"))
            continue;
        page_cell(p, sections_dash(rec_text(r, "config")));
        page_cell(p, sections_dash(rec_text(r, "base_config")));
        page_cell(p, display_metric_name(metric));
        page_value(p, rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"),
                   rec_text(r, "value_reason"));
        page_cell(p, sections_dash(rec_text(r, "verdict")));
    }
    page_table_end(p);
}

void sections_stacks(struct page *p, const struct runset *s)
{
    const json_t *list = runset_kind(s, RUNSET_FOREIGN);
    char *names = sections_stack_names(s);
    if (!json_array_size(list))
        return;
    page_section(p, "stacks", "Other engines: the software stack differs");
    page_text(p, "The software stack of these points differs from that of all others on these "
                 "pages: %s. They do not run on the same kernels, so a ratio to them compares two "
                 "programs, not two ways of generating text. The answer, the fronts, the "
                 "crossovers and the figures leave them out.", sections_dash(names));
    put_metrics(p, list);
    put_quality(p, list);
    put_ratios(p, list);
    free(names);
}
