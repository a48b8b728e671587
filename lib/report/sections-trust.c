/* sections-trust.c - see sections.h: what the numbers rest on (prompts, judge, how quiet the
 * machine was, whether times held still) and what they cannot say. Each threat is a fact of the
 * records. */
#include "lib/report/sections.h"

#include <math.h>
#include <stdlib.h>
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
    page_table(p, "Where the prompts come from.", COUNT(columns), columns);
    json_array_foreach(list, i, r) {
        page_cell(p, sections_dash(rec_text(r, "source")));
        page_cell(p, sections_dash(rec_text(r, "task")));
        page_count(p, rec_number(r, "n"));
    }
    page_table_end(p);
}

/* Who judged, and that it judged itself. */
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
    page_item(p, "Judge perplexity is the opinion of one language model%s%s%s%.12s%s; look at "
                 "accuracy and diversity beside it.",
              judge ? ", " : "", judge ? judge : "", sum ? " (SHA-256 " : "", sum ? sum : "",
              sum ? "...)" : "");
    if (contests)
        page_item(p, "The judge, %s, is one of the contestants: what it thinks of its own texts is "
                     "no third opinion.", judge);
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
        page_item(p, "The prompts are not among these records, so where they come from is not "
                     "said.");
}

/* ---- how quiet it was ---- */

static void put_reasons(struct page *p, const json_t *r)
{
    struct buf b = {0};
    size_t i;
    const json_t *reason;
    json_array_foreach(json_object_get(r, "reasons"), i, reason)
        buf_format(&b, "%s%s", i ? ", " : "", sections_dash(json_string_value(reason)));
    page_cell(p, sections_dash(b.data));
    buf_free(&b);
}

static void put_looks(struct page *p, const struct runset *s)
{
    static const struct page_column columns[] = {
        {"Sweep", NULL},      {"Launch", ""},          {"Fit", NULL},
        {"Why not", NULL},    {"Others, cores", ""},   {"Waited for a core", ""},
        {"Taken by the host", ""}, {"Switched away", ""}, {"Effective cores", ""}};
    size_t i;
    const json_t *r;
    page_table_folded(p, "Look by look", "The machine before the first batch of each launch, with "
                                         "nothing to do but what others do.",
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

/* Least and most of the launches, and how far they lie apart. */
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
        {"Least", "e2e_ns"},     {"Most", "e2e_ns_most"}, {"Most / least", ""}, {"Ended by", NULL}};
    struct config_table all = {0};
    config_table_metric(&all, s, "e2e_ns");
    if (all.n)
        page_table_folded(p, "Point by point",
                          "End-to-end latency of each point: steady, no launch drifts over its "
                          "batches; warm, every launch was before its first timed batch; "
                          "disturbed, answers left out; least and most of the launches.",
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

/* Writes the reasons to doubt numbers of this run. */
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
    page_section(p, "quiet", "How quiet the machine was, and drift");
    put_doubts(p, s);
    json_array_foreach(runset_kind(s, "fitness"), i, r)
        if (rec_text(r, "text"))
            page_item(p, "%s.", rec_text(r, "text"));
    if (f.launches)
        page_item(p, "The machine was fit to measure before %lld of %lld launches.",
                  (long long)(f.launches - f.unfit), (long long)f.launches);
    if (f.share_most > 0)
        page_item(p, "Before launches each thread made, beside the others, %.2f to %.2f of the "
                     "arithmetic that one makes alone.", f.share_least, f.share_most);
    if (f.batches)
        page_item(p, "%lld of %lld timed answers were disturbed; %lld of %lld points have no "
                     "other; %lld were not warm; %lld drift over their batches.",
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
        page_item(p, "Quality rests on at most %.0f prompts%s: differences smaller than the "
                     "intervals are not findings.",
                  prompts, prompts < FEW_PROMPTS ? ", which are few" : "");
    if (launches > 0)
        page_item(p, "Times rest on at most %.0f launch%s of the programs%s.", launches,
                  launches > 1 ? "es" : "",
                  launches < FEW_LAUNCHES ? ", too few to know how much launches differ" : "");
}

static void put_machine(struct page *p, const struct runset *s)
{
    struct doubts_fitness f = doubts_count(s, NULL);
    page_item(p, "They hold for the machine named above and for these builds; another machine "
                 "moves the two models by different factors.");
    if (f.tainted)
        page_item(p, "Something else ran on the machine during %lld of %lld timed answers.",
                  (long long)f.tainted, (long long)f.batches);
    if (doubts_cores_moved(&f))
        page_item(p, "Beside the others each thread made %.2f of the arithmetic that one makes "
                     "alone before some launches, and %.2f before others: processors of this "
                     "machine share a core now and then, and work that is bound by arithmetic "
                     "takes longer then.", f.share_least, f.share_most);
    if (f.drifts)
        page_item(p, "Times drift over the batches of %lld of %lld points.", (long long)f.drifts,
                  (long long)f.points);
    if (f.points && !json_array_size(runset_kind(s, "check")))
        page_item(p, "No self-test of the harness is among these records.");
}

void sections_threats(struct page *p, const struct runset *s, int embedded)
{
    const json_t *metrics = runset_kind(s, "metric");
    page_section(p, "threats", "Limits of these numbers");
    put_size(p, most_of(runset_kind(s, "quality"), "n"), most_of(metrics, "launches"));
    put_machine(p, s);
    if (has_random_weights(s))
        page_item(p, "Weights were drawn at random: times and memory are those of the shapes, and "
                     "there is no quality to speak of.");
    if (is_said(metrics, "modelled"))
        page_item(p, "Some numbers were not measured but modelled, and are marked so.");
    if (is_said(metrics, "replayed"))
        page_item(p, "Some adaptive methods were replayed from the commits of another model.");
    if (embedded)
        page_item(p, "The models are the embedded demonstration models, a few million parameters "
                     "trained on simple stories, sums and lists. They show the method; they say "
                     "nothing about LLaDA 8B and LLaMA 3 8B.");
}
