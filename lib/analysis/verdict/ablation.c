/* ablation.c - see ablation.h. Records are indexed first, then each option is looked up:
 *
 *     metric   system -> option -> metric -> record
 *     effect   system -> base -> option -> metric -> record
 *
 * The last record of a key counts. Quality metrics of latent models begin with elbo_; a claim names
 * them without it. */
#include "lib/analysis/verdict/ablation.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/buf.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static const char NO_ANSWER[] = "differing_answers_ratio";

/* One option on one system. Members are borrowed; metric, other and effect may be empty. */
struct trial {
    const json_t *option;
    const char *name, *first; /* of this option, and of the first one */
    json_t *metric, *other, *effect;
    int is_exact;
};

/* ---- the index ---- */

static void add_metric(json_t *index, const json_t *r)
{
    const char *arch = rec_text(r, "arch"), *option = rec_text(r, "option");
    const char *metric = rec_text(r, "metric");
    if (arch && option && metric)
        json_object_set(json_within(json_within(index, arch), option), metric,
                        (json_t *)(uintptr_t)r);
}

static void add_effect(json_t *index, const json_t *r, const char *first)
{
    const char *arch = rec_text(r, "arch"), *base = rec_text(r, "base_setting");
    const char *option = rec_text(r, "setting"), *metric = rec_text(r, "metric");
    if (!arch || !option || !metric || !rec_is(r, "by", "option"))
        return;
    const char *name = strncmp(metric, "elbo_", 5) ? metric : metric + 5;
    json_t *of = json_within(json_within(index, arch), base ? base : first);
    json_object_set(json_within(of, option), name, (json_t *)(uintptr_t)r);
}

/* ---- effects ---- */

static double value_of(const json_t *records, const char *metric)
{
    return rec_number(json_object_get(records, metric), "value");
}

static double ratio_of(const struct trial *t, const char *metric)
{
    const double a = value_of(t->metric, metric), b = value_of(t->other, metric);
    return a > 0 && b > 0 ? a / b : (double)NAN;
}

static const json_t *effect_of(const struct trial *t, const char *metric)
{
    return json_object_get(t->effect, metric);
}

/* Sets a number, or null if it is not finite. */
static void set_number(json_t *to, const char *key, double v)
{
    json_object_set_new(to, key, isfinite(v) ? json_real(v) : json_null());
}

static void copy_interval(json_t *to, const json_t *effect)
{
    static const char *const keys[] = {"value", "lo", "hi", "n"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        rec_copy(to, keys[i], effect, keys[i]);
}

/* Adds the measured effect of a metric: value, interval, n, and whether it is a ratio. */
static void put_measured(json_t *claim, const struct trial *t, const char *metric)
{
    const json_t *effect = effect_of(t, metric);
    if (display_ends_with(metric, "_bytes")) {
        set_number(claim, "value", ratio_of(t, metric));
        json_object_set_new(claim, "effect", json_string("ratio"));
        return;
    }
    copy_interval(claim, effect);
    if (rec_text(effect, "effect"))
        json_object_set_new(claim, "effect", json_string(rec_is(effect, "effect", "ratio")
                                                             ? "ratio" : "difference"));
}

/* ---- claims ---- */

static void put_lack(json_t *to, const char *key, const json_t *option)
{
    const char *needs = rec_text(option, "needs");
    struct buf b = {0};
    buf_format(&b, "needs %s", needs ? needs : "something that this machine does not have");
    json_object_set_new(to, key, json_string(b.data));
    buf_free(&b);
}

static int is_run(const struct trial *t)
{
    return json_object_size(t->metric) || json_object_size(t->effect);
}

static void set_outcome(json_t *claim, const char *outcome, const char *why)
{
    json_object_set_new(claim, "outcome", json_string(outcome));
    if (why)
        json_object_set_new(claim, "outcome_reason", json_string(why));
}

static void judge(json_t *claim, const struct trial *t)
{
    const char *metric = rec_text(claim, "metric");
    const double most = rec_number(claim, "most"), least = rec_number(claim, "least");
    put_measured(claim, t, metric);
    const double v = rec_number(claim, "value");
    const int is_counter = display_ends_with(metric, "_bytes") || !strcmp(metric, NO_ANSWER);
    const double lo = is_counter ? v : rec_number(claim, "lo");
    const double hi = is_counter ? v : rec_number(claim, "hi");
    if (isnan(v) && !is_run(t)) {
        set_outcome(claim, "not applicable", NULL);
        put_lack(claim, "outcome_reason", t->option);
    } else if (isnan(v))
        set_outcome(claim, "not applicable",
                    fabs(value_of(t->other, metric)) > 0 || isnan(value_of(t->other, metric))
                        ? "it was not measured" : "the base has a value of 0");
    else if (isnan(lo))
        set_outcome(claim, "undecided", "too few values for an interval");
    else if (hi <= most || lo >= least) /* false if there is no such bound (NaN) */
        set_outcome(claim, "held", NULL);
    else if (lo > most || hi < least)
        set_outcome(claim, "not held", NULL);
    else
        set_outcome(claim, "undecided", "the interval contains the bound");
}

/* All claims of the option. If the option is exact, the first claim is that no answer changes. */
static json_t *judge_claims(const struct trial *t)
{
    const char *flags = rec_text(t->option, "flags");
    json_t *list = json_array(), *c;
    size_t i;
    if (t->is_exact && strcmp(t->name, t->first) && flags && *flags)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i}", "row", "0-51", "text",
                                              "no answer changes", "metric", NO_ANSWER, "most", 0));
    json_array_foreach(json_object_get(t->option, "claims"), i, c)
        if (rec_text(c, "metric"))
            json_array_append_new(list, json_deep_copy(c));
    json_array_foreach(list, i, c)
        judge(c, t);
    return list;
}

/* ---- records ---- */

static json_t *flags_of(const json_t *option)
{
    const char *pack = rec_text(option, "pack"), *flags = rec_text(option, "flags");
    struct buf b = {0};
    buf_format(&b, "%s%s%s", pack ? pack : "", pack && *pack && flags && *flags ? " " : "",
               flags ? flags : "");
    json_t *text = json_string(b.data);
    buf_free(&b);
    return text;
}

static void put_answers(json_t *r, const struct trial *t)
{
    const json_t *differ = effect_of(t, NO_ANSWER);
    const double share = rec_number(differ, "value"), n = rec_number(differ, "n");
    rec_copy(r, "answers", differ, "n");
    json_object_set_new(r, "differing_answers",
                        isnan(share * n) ? json_null() : json_integer(llround(share * n)));
}

/* Sets the model, the device and the launches of the run, or the reason why there is none. */
static void put_run(json_t *r, const struct trial *t)
{
    const json_t *time = json_object_get(t->metric, "e2e_ns");
    if (!is_run(t))
        put_lack(r, "not_run_reason", t->option);
    if (!json_object_size(t->metric))
        return;
    rec_copy(r, "model", time, "model");
    rec_copy(r, "device", time, "device");
    rec_copy(r, "launches", time, "launches");
}

static void put_costs(json_t *r, const struct trial *t)
{
    static const char *const memory[] = {"memory_weights_bytes", "memory_kv_bytes",
                                         "memory_activations_bytes", "memory_allocated_peak_bytes",
                                         "memory_reserved_peak_bytes"};
    static const char *const rate[] = {"e2e_ns", "output_tokens_per_s"};
    const json_t *time = effect_of(t, "e2e_ns");
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        rec_copy(r, memory[i], json_object_get(t->metric, memory[i]), "value");
    set_number(r, "memory_ratio", ratio_of(t, "memory_allocated_peak_bytes"));
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        rec_copy(r, rate[i], json_object_get(t->metric, rate[i]), "value");
    rec_copy(r, "time_ratio", time, "value");
    rec_copy(r, "time_lo", time, "lo");
    rec_copy(r, "time_hi", time, "hi");
}

static json_t *qualities_of(const struct trial *t)
{
    static const char *const metrics[] = {"ppl", "accuracy"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *effect = effect_of(t, metrics[i]);
        if (!effect)
            continue;
        json_t *q = json_object();
        rec_copy(q, "metric", effect, "metric");
        rec_copy(q, "effect", effect, "effect");
        copy_interval(q, effect);
        json_array_append_new(list, q);
    }
    return list;
}

static json_t *record_of(const struct trial *t, const char *arch)
{
    json_t *r = json_object();
    rec_copy(r, "option", t->option, "option");
    rec_copy(r, "text", t->option, "text");
    json_object_set_new(r, "flags", flags_of(t->option));
    json_object_set_new(r, "arch", json_string(arch));
    json_object_set_new(r, "exact", json_boolean(t->is_exact));
    put_answers(r, t);
    if (rec_text(t->option, "against"))
        rec_copy(r, "against", t->option, "against");
    put_run(r, t);
    put_costs(r, t);
    json_object_set_new(r, "qualities", qualities_of(t));
    json_object_set_new(r, "claims", judge_claims(t));
    return r;
}

/* The records of an option on a system. If the option is for another device than that of the run,
 * there are none. */
static struct trial find_trial(const json_t *option, const char *first, json_t *metrics,
                               json_t *effects)
{
    const char *against = rec_text(option, "against"), *device = rec_text(option, "device");
    const char *base = against ? against : first;
    struct trial t = {.option = option, .name = rec_text(option, "option"), .first = first};
    t.metric = json_object_get(metrics, t.name);
    t.other = json_object_get(metrics, base);
    t.effect = json_object_get(json_object_get(effects, base), t.name);
    if (device && !rec_is(json_object_get(t.metric, "e2e_ns"), "device", device))
        t.metric = t.effect = NULL;
    return t;
}

json_t *ablation_judge(const json_t *options, const json_t *records)
{
    static const char *const both[] = {"llada", "llama", NULL}, *const all[] = {"llada", "llama",
                                                                                  "ltm", NULL};
    const char *first = rec_text(json_array_get(options, 0), "option");
    json_t *metrics = json_object(), *effects = json_object(), *list = json_array(), *o;
    const json_t *r;
    size_t i;
    json_array_foreach(records, i, r)
        if (!strcmp(rec_kind(r), "metric"))
            add_metric(metrics, r);
        else
            add_effect(effects, r, first);
    json_array_foreach(options, i, o) {
        const int is_chosen = json_object_get(o, "systems") != NULL;
        for (const char *const *s = is_chosen ? all : both; *s; s++) {
            json_t *metric = json_object_get(metrics, *s), *effect = json_object_get(effects, *s);
            if ((is_chosen && !rec_lists(o, "systems", *s)) || !(metric || effect))
                continue;
            struct trial t = find_trial(o, first, metric, effect);
            t.is_exact = rec_lists(o, "exact", *s);
            json_array_append_new(list, record_of(&t, *s));
        }
    }
    json_decref(metrics);
    json_decref(effects);
    return list;
}
