/* sections-trust.c - sections that say how far the numbers can be trusted: prompts, judge, state of
 * the machine before each launch, drift of the times, and limits of the numbers; see sections.h.
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

static void put_workloads(struct page *page, const struct runset *set)
{
    json_t *seen = json_object(), *at;
    const char *workload;
    const json_t *record;
    size_t i;
    json_array_foreach(runset_kind(set, "metric"), i, record) {
        const char *of = about_workload(record);
        if (*of && !isnan(rec_number(record, "prompts")))
            json_object_set(seen, of, json_object_get(record, "prompts"));
    }
    json_object_foreach(seen, workload, at)
        page_item(page, "Workload %s: %.0f prompts.", workload, json_number_value(at));
    json_decref(seen);
}

static void put_sources(struct page *page, const json_t *list)
{
    static const struct page_column columns[] = {{"Source", NULL}, {"Task", NULL}, {"Prompts", ""}};
    size_t i;
    const json_t *record;
    page_table(page, "Sources of the prompts.", COUNT(columns), columns);
    json_array_foreach(list, i, record) {
        page_cell(page, sections_dash(rec_text(record, "source")));
        page_cell(page, sections_dash(rec_text(record, "task")));
        page_count(page, rec_number(record, "n"));
    }
    page_table_end(page);
}

/* Names the judge; warns if it is a contestant. */
static void put_judge(struct page *page, const struct runset *set)
{
    const char *judge = NULL, *sum = NULL;
    size_t i;
    const json_t *record;
    int contests = 0;
    json_array_foreach(runset_kind(set, "quality"), i, record) {
        const char *name = rec_text(record, "judge"), *model = rec_text(record, "model");
        judge = judge ? judge : name;
        sum = sum ? sum : rec_text(record, "judge_sha256");
        contests |= name && model && !strcmp(name, model);
    }
    page_item(page, "Judge perplexity is the perplexity of the texts under one language model"
                    "%s%s%s%.12s%s; compare it with accuracy and diversity.",
              judge ? ", " : "", judge ? judge : "", sum ? " (SHA-256 " : "", sum ? sum : "",
              sum ? "...)" : "");
    if (contests)
        page_item(page, "The judge, %s, is also a contestant: it may favour its own texts.", judge);
}

void sections_data(struct page *page, const struct runset *set)
{
    const json_t *prompts = runset_kind(set, "prompt"), *workloads = runset_kind(set, "workload"),
                 *record;
    static const char *const said[] = {"warning", "text", "training_text"};
    size_t i;
    page_section(page, "prompts", "Prompts and judge");
    json_array_foreach(workloads, i, record)
        for (size_t k = 0; k < COUNT(said); k++)
            if (rec_text(record, said[k]))
                page_item(page, "%s", rec_text(record, said[k]));
    put_workloads(page, set);
    if (json_array_size(runset_kind(set, "quality")))
        put_judge(page, set);
    if (json_array_size(prompts))
        put_sources(page, prompts);
    else if (!json_array_size(workloads))
        page_item(page, "The prompts are not among these records, so their source is unknown.");
}

/* ---- state of the machine ---- */

static void put_reasons(struct page *page, const json_t *record)
{
    struct buf text = {0};
    size_t i;
    const json_t *reason;
    json_array_foreach(json_object_get(record, "reasons"), i, reason)
        buf_format(&text, "%s%s", i ? ", " : "", sections_dash(json_string_value(reason)));
    sections_cell(page, &text);
}

static void put_looks(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Sweep", NULL},         {"Launch", ""},            {"Quiet", NULL},
        {"Reasons", NULL},       {"Cores of others", ""},   {"Waited for a core", ""},
        {"Stolen by host", ""},  {"Preempted", ""},         {"Effective cores", ""}};
    size_t i;
    const json_t *record;
    page_table_folded(page, "Checks before each launch",
                      "State of the machine before the first batch of each launch, while the run "
                      "itself is idle. Cores of others: processors that other processes use. "
                      "Waited, stolen: shares of the time. Preempted: involuntary switches.",
                      COUNT(columns), columns);
    json_array_foreach(runset_kind(set, "fitness"), i, record) {
        const json_t *host = json_object_get(record, "host");
        if (!json_object_get(record, "launch"))
            continue;
        page_cell(page, sections_dash(rec_text(record, "sweep")));
        page_count(page, rec_number(record, "launch"));
        page_cell(page, json_is_true(json_object_get(record, "fit")) ? "yes" : "no");
        put_reasons(page, record);
        page_count(page, rec_number(host, "others_ratio"));
        page_count(page, rec_number(host, "pressure_ratio"));
        page_count(page, rec_number(host, "stolen_ratio"));
        page_count(page, rec_number(host, "preempted"));
        page_count(page, rec_number(record, "effective_cores"));
    }
    page_table_end(page);
}

/* Puts the smallest and the largest launch value, and their ratio. */
static void put_range(struct page *page, const json_t *record)
{
    double least = (double)NAN, most = (double)NAN;
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(record, "launch_values"), i, value) {
        least = fmin(least, rec_number(value, "value"));
        most = fmax(most, rec_number(value, "value"));
    }
    page_count(page, least);
    page_count(page, most);
    page_count(page, most / least);
}

static const char *yes_no(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    return json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "–";
}

static void put_drift(struct page *page, const struct runset *set)
{
    static const struct page_column columns[] = {
        {"Configuration", NULL}, {"Steady", NULL},    {"Warm", NULL}, {"Disturbed", ""},
        {"Minimum", "e2e_ns"},   {"Maximum", "e2e_ns_most"}, {"Maximum / minimum", ""},
        {"Stopped by", NULL}};
    struct config_table all = {0};
    config_table_metric(&all, set, "e2e_ns");
    if (all.n)
        page_table_folded(page, "Latency and drift of each point",
                          "End-to-end latency of each point. Steady: no launch drifts over its "
                          "batches. Warm: every launch was steady before its first timed batch. "
                          "Disturbed: answers left out. Minimum and maximum over launches.",
                          COUNT(columns), columns);
    for (size_t i = 0; i < all.n; i++) {
        const json_t *record = all.v[i].y.record;
        if (isnan(all.v[i].y.at))
            continue;
        page_cell(page, all.v[i].config);
        page_cell(page, yes_no(record, "steady"));
        page_cell(page, yes_no(record, "warmup_steady"));
        page_count(page, rec_number(record, "tainted"));
        put_range(page, record);
        page_cell(page, sections_dash(rec_text(record, "stop_reason")));
    }
    if (all.n)
        page_table_end(page);
    config_table_free(&all);
}

/* Puts the doubts about this run (doubts.h) as list items. */
static void put_doubts(struct page *page, const struct runset *set)
{
    struct doubts doubts = {0};
    doubts_find(&doubts, set, NULL);
    for (size_t i = 0; i < doubts.n; i++)
        page_item(page, "Doubt: %s", doubts.v[i]);
    doubts_free(&doubts);
}

void sections_fitness(struct page *page, const struct runset *set)
{
    struct doubts_fitness fitness = doubts_count(set, NULL);
    size_t i;
    const json_t *record;
    if (!fitness.points && !fitness.launches)
        return;
    page_section(page, "quiet", "State of the machine, and drift");
    put_doubts(page, set);
    json_array_foreach(runset_kind(set, "fitness"), i, record)
        if (rec_text(record, "text"))
            page_item(page, "%s.", rec_text(record, "text"));
    if (fitness.launches)
        page_item(page, "The machine was quiet before %lld of %lld launches.",
                  (long long)(fitness.launches - fitness.unfit), (long long)fitness.launches);
    if (fitness.share_most > 0)
        page_item(page,
                  "Before launches, with all threads busy, a thread computed %.2f to %.2f times "
                  "as fast as a thread alone.",
                  fitness.share_least, fitness.share_most);
    if (fitness.batches)
        page_item(page, "%lld of %lld timed answers were disturbed. %lld of %lld points have only "
                        "disturbed answers, %lld were not warm, %lld drift over their batches.",
                  (long long)fitness.tainted, (long long)fitness.batches,
                  (long long)fitness.disturbed, (long long)fitness.points, (long long)fitness.cold,
                  (long long)fitness.drifts);
    if (fitness.launches)
        put_looks(page, set);
    put_drift(page, set);
}

/* ---- threats ---- */

static double most_of(const json_t *list, const char *key)
{
    double most = 0;
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record)
        most = rec_number(record, key) > most ? rec_number(record, key) : most;
    return most;
}

static int is_said(const json_t *list, const char *key)
{
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record)
        if (json_is_true(json_object_get(record, key)))
            return 1;
    return 0;
}

static int has_random_weights(const struct runset *set)
{
    const char *config;
    json_t *about;
    json_object_foreach(set->configs, config, about)
        if (json_is_true(json_object_get(about, "weights_random")))
            return 1;
    return 0;
}

static void put_size(struct page *page, double prompts, double launches)
{
    if (prompts > 0)
        page_item(page,
                  "Quality is measured on at most %.0f prompts%s: a difference whose interval "
                  "contains zero is not a finding.",
                  prompts, prompts < FEW_PROMPTS ? ", which are few" : "");
    if (launches > 0)
        page_item(page, "Times are measured in at most %.0f launch%s%s.", launches,
                  launches > 1 ? "es" : "",
                  launches < FEW_LAUNCHES ? ", too few to know the spread between launches" : "");
}

static void put_machine(struct page *page, const struct runset *set)
{
    struct doubts_fitness fitness = doubts_count(set, NULL);
    page_item(page, "The numbers hold for this machine and these builds; on another machine the "
                    "times of the two models change by different factors.");
    if (fitness.tainted)
        page_item(page, "Other work ran on the machine during %lld of %lld timed answers.",
                  (long long)fitness.tainted, (long long)fitness.batches);
    if (doubts_cores_moved(&fitness))
        page_item(page,
                  "The speed of a thread among busy threads changed between launches: a thread "
                  "computed %.2f to %.2f times as fast as a thread alone. The processors of "
                  "this machine sometimes share a core; then work that is bound by arithmetic "
                  "takes longer.",
                  fitness.share_least, fitness.share_most);
    if (fitness.drifts)
        page_item(page, "Times drift over the batches of %lld of %lld points.",
                  (long long)fitness.drifts, (long long)fitness.points);
    if (fitness.points && !json_array_size(runset_kind(set, "check")))
        page_item(page,
                  "These records have no self-test, which would compare a model with itself.");
}

void sections_threats(struct page *page, const struct runset *set, int embedded)
{
    const json_t *metrics = runset_kind(set, "metric");
    page_section(page, "threats", "Limits of these numbers");
    put_size(page, most_of(runset_kind(set, "quality"), "n"), most_of(metrics, "launches"));
    put_machine(page, set);
    if (has_random_weights(set))
        page_item(page, "The weights are random: times and memory are those of the shapes, and "
                        "quality has no meaning.");
    if (is_said(metrics, "modelled"))
        page_item(page, "Some numbers are modelled, not measured; they are marked.");
    if (embedded)
        page_item(page,
                  "The models are the embedded demonstration models: a few million parameters, "
                  "trained on simple stories, sums and lists. Their numbers do not hold for "
                  "LLaDA 8B and LLaMA 3 8B.");
}
