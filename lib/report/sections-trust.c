/* sections-trust.c - see sections.h: prompts, judge, state of the machine before each launch, drift
 * of the times, and limits of the numbers. These sections say how far the numbers can be trusted.
 * Each limit is a fact of the records. */
#include "lib/report/sections.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/config_table.h"
#include "lib/analysis/words/display.h"
#include "lib/analysis/verdict/doubts.h"
#include "lib/record/rec.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))
enum { FEW_LAUNCHES = 5, FEW_PROMPTS = 100 };

/* ---- prompts and judge ---- */

static void put_workloads(struct page *p, const struct runset *s)
{
    json_t *seen = json_object(), *at;
    const char *workload;
    const json_t *r;
    size_t i;
    json_array_foreach(runset_kind(s, "metric"), i, r) {
        const char *of = about_workload(r);
        if (*of && !isnan(rec_number(r, "prompts")))
            json_object_set(seen, of, json_object_get(r, "prompts"));
    }
    json_object_foreach(seen, workload, at)
        page_item(p, "Workload %s: %.0f prompts.", workload, json_number_value(at));
    json_decref(seen);
}

static void put_sources(struct page *p, const json_t *list)
{
    static const struct page_column columns[] = {{"Source", NULL}, {"Task", NULL}, {"Prompts", ""}};
    size_t i;
    const json_t *r;
    page_table(p, "Sources of the prompts.", COUNT(columns), columns);
    json_array_foreach(list, i, r) {
        page_cell(p, sections_dash(rec_text(r, "source")));
        page_cell(p, sections_dash(rec_text(r, "task")));
        page_count(p, rec_number(r, "n"));
    }
    page_table_end(p);
}

/* Names the judge; warns if it is a contestant. */
static void put_judge(struct page *p, const struct runset *s)
{
    const char *judge = NULL, *sum = NULL;
    size_t i;
    const json_t *r;
    int contests = 0;
    json_array_foreach(runset_kind(s, "quality"), i, r) {
        const char *name = rec_text(r, "judge"), *model = rec_text(r, "model");
        judge = judge ? judge : name;
        sum = sum ? sum : rec_text(r, "judge_sha256");
        contests |= name && model && !strcmp(name, model);
    }
    page_item(p, "Judge perplexity is the perplexity of the texts under one language model"
                 "%s%s%s%.12s%s; compare it with accuracy and diversity.",
              judge ? ", " : "", judge ? judge : "", sum ? " (SHA-256 " : "", sum ? sum : "",
              sum ? "...)" : "");
    if (contests)
        page_item(p, "The judge, %s, is also a contestant: it may favour its own texts.", judge);
}

void sections_data(struct page *p, const struct runset *s)
{
    const json_t *prompts = runset_kind(s, "prompt"), *workloads = runset_kind(s, "workload"), *r;
    static const char *const said[] = {"warning", "text", "training_text"};
    size_t i;
    page_section(p, "prompts", "Prompts and judge");
    json_array_foreach(workloads, i, r)
        for (size_t k = 0; k < COUNT(said); k++)
            if (rec_text(r, said[k]))
                page_item(p, "%s", rec_text(r, said[k]));
    put_workloads(p, s);
    if (json_array_size(runset_kind(s, "quality")))
        put_judge(p, s);
    if (json_array_size(prompts))
        put_sources(p, prompts);
    else if (!json_array_size(workloads))
        page_item(p, "The prompts are not among these records, so their source is unknown.");
}

/* ---- state of the machine ---- */

static void put_reasons(struct page *p, const json_t *r)
{
    struct buf b = {0};
    size_t i;
    const json_t *reason;
    json_array_foreach(json_object_get(r, "reasons"), i, reason)
        buf_format(&b, "%s%s", i ? ", " : "", sections_dash(json_string_value(reason)));
    sections_cell(p, &b);
}

static void put_looks(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Sweep", NULL},         {"Launch", ""},            {"Fit to measure", NULL},
        {"Reasons", NULL},       {"Cores of others", ""},   {"Waited for a core", ""},
        {"Stolen by host", ""},  {"Preempted", ""},         {"Effective cores", ""}};
    size_t i;
    const json_t *r;
    page_table_folded(p, "Checks before each launch",
                      "State of the machine before the first batch of each launch, while the run "
                      "itself is idle. Cores of others: processors that other processes use. "
                      "Waited, stolen: shares of the time. Preempted: involuntary switches.",
                      COUNT(columns), columns);
    json_array_foreach(runset_kind(s, "fitness"), i, r) {
        const json_t *host = json_object_get(r, "host");
        if (!json_object_get(r, "launch"))
            continue;
        page_cell(p, sections_dash(rec_text(r, "sweep")));
        page_count(p, rec_number(r, "launch"));
        page_cell(p, json_is_true(json_object_get(r, "fit")) ? "yes" : "no");
        put_reasons(p, r);
        page_count(p, rec_number(host, "others_ratio"));
        page_count(p, rec_number(host, "pressure_ratio"));
        page_count(p, rec_number(host, "stolen_ratio"));
        page_count(p, rec_number(host, "preempted"));
        page_count(p, rec_number(r, "effective_cores"));
    }
    page_table_end(p);
}

/* The least and the largest launch value, and their ratio. */
static void put_range(struct page *p, const json_t *r)
{
    double least = (double)NAN, most = (double)NAN;
    size_t i;
    const json_t *v;
    json_array_foreach(json_object_get(r, "launch_values"), i, v) {
        least = fmin(least, rec_number(v, "value"));
        most = fmax(most, rec_number(v, "value"));
    }
    page_count(p, least);
    page_count(p, most);
    page_count(p, most / least);
}

static const char *yes_no(const json_t *r, const char *key)
{
    const json_t *v = json_object_get(r, key);
    return json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "–";
}

static void put_drift(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL}, {"Steady", NULL},    {"Warm", NULL}, {"Disturbed", ""},
        {"Minimum", "e2e_ns"},   {"Maximum", "e2e_ns_most"}, {"Maximum / minimum", ""},
        {"Stopped by", NULL}};
    struct config_table all = {0};
    config_table_metric(&all, s, "e2e_ns");
    if (all.n)
        page_table_folded(p, "Point by point",
                          "End-to-end latency of each point. Steady: no launch drifts over its "
                          "batches. Warm: every launch was steady before its first timed batch. "
                          "Disturbed: answers left out. Minimum and maximum over launches.",
                          COUNT(columns), columns);
    for (size_t i = 0; i < all.n; i++) {
        const json_t *r = all.v[i].y.record;
        if (isnan(all.v[i].y.at))
            continue;
        page_cell(p, all.v[i].config);
        page_cell(p, yes_no(r, "steady"));
        page_cell(p, yes_no(r, "warmup_steady"));
        page_count(p, rec_number(r, "tainted"));
        put_range(p, r);
        page_cell(p, sections_dash(rec_text(r, "stop_reason")));
    }
    if (all.n)
        page_table_end(p);
    config_table_free(&all);
}

/* Writes the doubts about this run. */
static void put_doubts(struct page *p, const struct runset *s)
{
    struct doubts doubts = {0};
    doubts_find(&doubts, s, NULL);
    for (size_t i = 0; i < doubts.n; i++)
        page_item(p, "Doubt: %s", doubts.v[i]);
    doubts_free(&doubts);
}

void sections_fitness(struct page *p, const struct runset *s)
{
    struct doubts_fitness f = doubts_count(s, NULL);
    size_t i;
    const json_t *r;
    if (!f.points && !f.launches)
        return;
    page_section(p, "quiet", "State of the machine, and drift");
    put_doubts(p, s);
    json_array_foreach(runset_kind(s, "fitness"), i, r)
        if (rec_text(r, "text"))
            page_item(p, "%s.", rec_text(r, "text"));
    if (f.launches)
        page_item(p, "The machine was fit to measure before %lld of %lld launches.",
                  (long long)(f.launches - f.unfit), (long long)f.launches);
    if (f.share_most > 0)
        page_item(p, "Before launches, with all threads busy, a thread computed %.2f to %.2f times "
                     "as fast as a thread alone.", f.share_least, f.share_most);
    if (f.batches)
        page_item(p, "%lld of %lld timed answers were disturbed. %lld of %lld points have only "
                     "disturbed answers, %lld were not warm, %lld drift over their batches.",
                  (long long)f.tainted, (long long)f.batches, (long long)f.disturbed,
                  (long long)f.points, (long long)f.cold, (long long)f.drifts);
    if (f.launches)
        put_looks(p, s);
    put_drift(p, s);
}

/* ---- threats ---- */

static double most_of(const json_t *list, const char *key)
{
    double most = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
        most = rec_number(r, key) > most ? rec_number(r, key) : most;
    return most;
}

static int is_said(const json_t *list, const char *key)
{
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
        if (json_is_true(json_object_get(r, key)))
            return 1;
    return 0;
}

static int has_random_weights(const struct runset *s)
{
    const char *config;
    json_t *about;
    json_object_foreach(s->configs, config, about)
        if (json_is_true(json_object_get(about, "weights_random")))
            return 1;
    return 0;
}

static void put_size(struct page *p, double prompts, double launches)
{
    if (prompts > 0)
        page_item(p, "Quality is measured on at most %.0f prompts%s: a difference whose interval "
                     "contains zero is not a finding.",
                  prompts, prompts < FEW_PROMPTS ? ", which are few" : "");
    if (launches > 0)
        page_item(p, "Times are measured in at most %.0f launch%s%s.", launches,
                  launches > 1 ? "es" : "",
                  launches < FEW_LAUNCHES ? ", too few to know the spread between launches" : "");
}

static void put_machine(struct page *p, const struct runset *s)
{
    struct doubts_fitness f = doubts_count(s, NULL);
    page_item(p, "The numbers hold for this machine and these builds; on another machine the "
                 "times of the two models change by different factors.");
    if (f.tainted)
        page_item(p, "Other work ran on the machine during %lld of %lld timed answers.",
                  (long long)f.tainted, (long long)f.batches);
    if (doubts_cores_moved(&f))
        page_item(p, "With all threads busy, a thread computed %.2f times as fast as a thread "
                     "alone before some launches, and %.2f times before others. The processors of "
                     "this machine sometimes share a core; then work that is bound by arithmetic "
                     "takes longer.", f.share_least, f.share_most);
    if (f.drifts)
        page_item(p, "Times drift over the batches of %lld of %lld points.", (long long)f.drifts,
                  (long long)f.points);
    if (f.points && !json_array_size(runset_kind(s, "check")))
        page_item(p, "These records have no self-test, which would compare a model with itself.");
}

void sections_threats(struct page *p, const struct runset *s, int embedded)
{
    const json_t *metrics = runset_kind(s, "metric");
    page_section(p, "threats", "Limits of these numbers");
    put_size(p, most_of(runset_kind(s, "quality"), "n"), most_of(metrics, "launches"));
    put_machine(p, s);
    if (has_random_weights(s))
        page_item(p, "The weights are random: times and memory are those of the shapes, and "
                     "quality has no meaning.");
    if (is_said(metrics, "modelled"))
        page_item(p, "Some numbers are modelled, not measured; they are marked.");
    if (embedded)
        page_item(p, "The models are the embedded demonstration models: a few million parameters, "
                     "trained on simple stories, sums and lists. Their numbers do not hold for "
                     "LLaDA 8B and LLaMA 3 8B.");
}
