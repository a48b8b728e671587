/* sections-words.c - see sections.h: the same run in other benchmarks' words, and its tokens by
 * published rules of counting. Shown of at most three points: the autoregressive one and the least
 * and the most steps of a sweep; the records have all. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { SHOWN = 3 };

struct choice { const json_t *r[SHOWN]; size_t n; }; /* a record of each point, in this order */

static int is_of(const json_t *a, const json_t *b)
{
    const char *x = about_point(a), *y = about_point(b);
    return x && y && !strcmp(x, y);
}

/* The first autoregressive point, and the two ends of the diffusion points by their steps. */
static struct choice choose(const json_t *list)
{
    const json_t *end[SHOWN] = {NULL}, *r;
    struct choice c = {0};
    size_t i;
    json_array_foreach(list, i, r) {
        double steps = rec_number(r, "steps");
        int diffusion = about_is_diffusion(r) == 1;
        if (!diffusion && !about_is_latent(r) && !end[0])
            end[0] = r;
        if (diffusion && (!end[1] || steps < rec_number(end[1], "steps")))
            end[1] = r;
        if (diffusion && (!end[2] || steps > rec_number(end[2], "steps")))
            end[2] = r;
    }
    for (i = 0; i < SHOWN; i++)
        if (end[i] && !(c.n && is_of(end[i], c.r[c.n - 1])))
            c.r[c.n++] = end[i];
    return c;
}

static const char *label_of(const json_t *r)
{
    const char *config = rec_text(r, "config");
    return config ? config : "–";
}

/* ---- dialects ---- */

/* The value of that name that the tool has of this point; NULL. */
static const json_t *value_of(const json_t *list, const json_t *point, const char *tool,
                              const char *name)
{
    size_t i, k;
    const json_t *r, *v;
    json_array_foreach(list, i, r) {
        const char *of = rec_text(r, "tool");
        if (!of || strcmp(of, tool) || !is_of(r, point))
            continue;
        json_array_foreach(json_object_get(r, "values"), k, v) {
            const char *got = rec_text(v, "name");
            if (got && !strcmp(got, name))
                return v;
        }
    }
    return NULL;
}

static void put_dialect(struct page *p, const json_t *list, const struct choice *c,
                        const json_t *record)
{
    const char *tool = rec_text(record, "tool");
    size_t k;
    const json_t *v;
    json_array_foreach(json_object_get(record, "values"), k, v) {
        const char *name = rec_text(v, "name"), *unit = rec_text(v, "unit");
        int time = unit && !strcmp(unit, "ns");
        if (!name || !tool)
            continue;
        page_cell(p, tool);
        page_cell(p, name);
        page_cell(p, time ? "ms" : unit && !strcmp(unit, "per_s") ? "1/s" : sections_dash(unit));
        for (size_t i = 0; i < c->n; i++)
            page_count(p, rec_number(value_of(list, c->r[i], tool, name), "value") /
                              (time ? 1e6 : 1));
    }
}

static void put_dialects(struct page *p, const json_t *list)
{
    struct page_column columns[3 + SHOWN] = {{"Benchmark", NULL}, {"Value", NULL}, {"Unit", NULL}};
    struct choice c = choose(list);
    size_t i;
    const json_t *r;
    for (i = 0; i < c.n; i++)
        columns[3 + i] = (struct page_column){label_of(c.r[i]), ""};
    page_table_folded(p, "The same run as other benchmarks print it",
                      "The same events as vLLM bench, AIPerf, genai-perf, GuideLLM and MLPerf "
                      "print them: equal names mean different things.",
                      3 + c.n, columns);
    json_array_foreach(list, i, r)
        if (is_of(r, c.r[0]))
            put_dialect(p, list, &c, r);
    page_table_end(p);
}

/* ---- counting ---- */

static void put_rule(struct page *p, const struct choice *c, const json_t *rule)
{
    const char *name = rec_text(rule, "name");
    page_cell(p, sections_dash(name));
    page_cell(p, sections_dash(rec_text(rule, "source")));
    for (size_t i = 0; i < c->n; i++) {
        const json_t *of, *found = NULL;
        size_t k;
        json_array_foreach(json_object_get(c->r[i], "rules"), k, of)
            if (name && rec_text(of, "name") && !strcmp(rec_text(of, "name"), name))
                found = of;
        page_count(p, rec_number(found, "tokens_per_s"));
        page_count(p, rec_number(found, "ratio"));
    }
}

static void put_audit(struct page *p, const json_t *list)
{
    struct page_column columns[2 + 2 * SHOWN] = {{"Rule", NULL}, {"Who counts so", NULL}};
    struct choice c = choose(list);
    char *title[SHOWN];
    size_t i;
    const json_t *rule;
    for (i = 0; i < c.n; i++) {
        title[i] = mem_format("%s: tokens/s", label_of(c.r[i]));
        columns[2 + 2 * i] = (struct page_column){title[i], ""};
        columns[3 + 2 * i] = (struct page_column){"over to_eos", ""};
    }
    page_table(p, "The tokens of the same answers by published rules of counting: how far a rule "
                  "alone moves the throughput.",
               2 + 2 * c.n, columns);
    json_array_foreach(json_object_get(c.r[0], "rules"), i, rule)
        put_rule(p, &c, rule);
    page_table_end(p);
    for (i = 0; i < c.n; i++)
        free(title[i]);
}

void sections_words(struct page *p, const struct runset *s)
{
    const json_t *dialects = runset_kind(s, "dialect"), *audits = runset_kind(s, "audit");
    if (!json_array_size(dialects) && !json_array_size(audits))
        return;
    page_section(p, "words", "In other benchmarks' words");
    if (json_array_size(audits))
        put_audit(p, audits);
    if (json_array_size(dialects))
        put_dialects(p, dialects);
}
