/* ablation.c - see ablation.h. Records are indexed first, then each option is looked up:
 *
 *     metric   system -> option -> metric -> record
 *     effect   system -> base -> option -> metric -> record
 *
 * If a key has several records, the last one counts. Quality metrics of latent models begin with
 * elbo_; a claim names these metrics without elbo_. */
#include "lib/analysis/verdict/ablation.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/base/buf.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static const char NO_ANSWER[] = "differing_answers_ratio";

/* One option on one system. Members are borrowed. metric, other and effect are objects by metric,
 * or NULL: the metric records of the option, those of its base, and the comparison records. */
struct trial {
    const json_t *option;
    const char *name, *first; /* names of this option and of the first option */
    json_t *metric, *other, *effect;
    int is_exact;
};

/* ---- the index ---- */

static void add_metric(json_t *index, const json_t *record)
{
    const char *arch = rec_text(record, "arch"), *option = rec_text(record, "option");
    const char *metric = rec_text(record, "metric");
    if (arch && option && metric)
        json_object_set(json_within(json_within(index, arch), option), metric,
                        (json_t *)(uintptr_t)record);
}

static void add_effect(json_t *index, const json_t *record, const char *first)
{
    const char *arch = rec_text(record, "arch"), *base = rec_text(record, "base_setting");
    const char *option = rec_text(record, "setting"), *metric = rec_text(record, "metric");
    if (!arch || !option || !metric || !rec_is(record, "by", "option"))
        return;
    const char *name = strncmp(metric, "elbo_", 5) ? metric : metric + 5;
    json_t *of = json_within(json_within(index, arch), base ? base : first);
    json_object_set(json_within(of, option), name, (json_t *)(uintptr_t)record);
}

/* ---- effects ---- */

static double value_of(const json_t *records, const char *metric)
{
    return rec_number(json_object_get(records, metric), "value");
}

static double ratio_of(const struct trial *trial, const char *metric)
{
    const double a = value_of(trial->metric, metric), b = value_of(trial->other, metric);
    return a > 0 && b > 0 ? a / b : (double)NAN;
}

static const json_t *effect_of(const struct trial *trial, const char *metric)
{
    return json_object_get(trial->effect, metric);
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
static void put_measured(json_t *claim, const struct trial *trial, const char *metric)
{
    const json_t *effect = effect_of(trial, metric);
    if (display_ends_with(metric, "_bytes")) {
        set_number(claim, "value", ratio_of(trial, metric));
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
    struct buf text = {0};
    buf_format(&text, "needs %s", needs ? needs : "something that this machine does not have");
    json_object_set_new(to, key, json_string(text.data));
    buf_free(&text);
}

static int is_run(const struct trial *trial)
{
    return json_object_size(trial->metric) || json_object_size(trial->effect);
}

static void set_outcome(json_t *claim, const char *outcome, const char *why)
{
    json_object_set_new(claim, "outcome", json_string(outcome));
    if (why)
        json_object_set_new(claim, "outcome_reason", json_string(why));
}

static void judge(json_t *claim, const struct trial *trial)
{
    const char *metric = rec_text(claim, "metric");
    const double most = rec_number(claim, "most"), least = rec_number(claim, "least");
    put_measured(claim, trial, metric);
    const double value = rec_number(claim, "value");
    const int is_counter = display_ends_with(metric, "_bytes") || !strcmp(metric, NO_ANSWER);
    const double lo = is_counter ? value : rec_number(claim, "lo");
    const double hi = is_counter ? value : rec_number(claim, "hi");
    if (isnan(value) && !is_run(trial)) {
        set_outcome(claim, "not applicable", NULL);
        put_lack(claim, "outcome_reason", trial->option);
    } else if (isnan(value))
        set_outcome(claim, "not applicable",
                    fabs(value_of(trial->other, metric)) > 0 ||
                            isnan(value_of(trial->other, metric))
                        ? "the metric was not measured"
                        : "the base has a value of 0");
    else if (isnan(lo))
        set_outcome(claim, "undecided", "too few values for an interval");
    else if (hi <= most || lo >= least) /* false if there is no such bound (NaN) */
        set_outcome(claim, "held", NULL);
    else if (lo > most || hi < least)
        set_outcome(claim, "not held", NULL);
    else
        set_outcome(claim, "undecided", "the interval contains the bound");
}

/* A list of all claims of the option, judged. If the option is exact, the first claim says that no
 * answer changes. */
static json_t *judge_claims(const struct trial *trial)
{
    const char *flags = rec_text(trial->option, "flags");
    json_t *list = json_array(), *claim;
    size_t i;
    if (trial->is_exact && strcmp(trial->name, trial->first) && flags && *flags)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i}", "row", "0-51", "text",
                                              "no answer changes", "metric", NO_ANSWER, "most", 0));
    json_array_foreach(json_object_get(trial->option, "claims"), i, claim)
        if (rec_text(claim, "metric"))
            json_array_append_new(list, json_deep_copy(claim));
    json_array_foreach(list, i, claim)
        judge(claim, trial);
    return list;
}

/* ---- records ---- */

static json_t *flags_of(const json_t *option)
{
    const char *pack = rec_text(option, "pack"), *flags = rec_text(option, "flags");
    struct buf buffer = {0};
    buf_format(&buffer, "%s%s%s", pack ? pack : "", pack && *pack && flags && *flags ? " " : "",
               flags ? flags : "");
    json_t *text = json_string(buffer.data);
    buf_free(&buffer);
    return text;
}

static void put_answers(json_t *record, const struct trial *trial)
{
    const json_t *differ = effect_of(trial, NO_ANSWER);
    const double share = rec_number(differ, "value"), n = rec_number(differ, "n");
    rec_copy(record, "answers", differ, "n");
    json_object_set_new(record, "differing_answers",
                        isnan(share * n) ? json_null() : json_integer(llround(share * n)));
}

/* Sets the model, the device and the launches of the run, or the reason why there is no run. */
static void put_run(json_t *record, const struct trial *trial)
{
    const json_t *time = json_object_get(trial->metric, "e2e_ns");
    if (!is_run(trial))
        put_lack(record, "not_run_reason", trial->option);
    if (!json_object_size(trial->metric))
        return;
    rec_copy(record, "model", time, "model");
    rec_copy(record, "device", time, "device");
    rec_copy(record, "launches", time, "launches");
}

static void put_costs(json_t *record, const struct trial *trial)
{
    static const char *const memory[] = {"memory_weights_bytes", "memory_kv_bytes",
                                         "memory_activations_bytes", "memory_allocated_peak_bytes",
                                         "memory_reserved_peak_bytes"};
    static const char *const rate[] = {"e2e_ns", "output_tokens_per_s"};
    const json_t *time = effect_of(trial, "e2e_ns");
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        rec_copy(record, memory[i], json_object_get(trial->metric, memory[i]), "value");
    set_number(record, "memory_ratio", ratio_of(trial, "memory_allocated_peak_bytes"));
    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        rec_copy(record, rate[i], json_object_get(trial->metric, rate[i]), "value");
    rec_copy(record, "time_ratio", time, "value");
    rec_copy(record, "time_lo", time, "lo");
    rec_copy(record, "time_hi", time, "hi");
}

static json_t *qualities_of(const struct trial *trial)
{
    static const char *const metrics[] = {"ppl", "accuracy"};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const json_t *effect = effect_of(trial, metrics[i]);
        if (!effect)
            continue;
        json_t *quality = json_object();
        rec_copy(quality, "metric", effect, "metric");
        rec_copy(quality, "effect", effect, "effect");
        copy_interval(quality, effect);
        json_array_append_new(list, quality);
    }
    return list;
}

static json_t *record_of(const struct trial *trial, const char *arch)
{
    json_t *record = json_object();
    rec_copy(record, "option", trial->option, "option");
    rec_copy(record, "text", trial->option, "text");
    json_object_set_new(record, "flags", flags_of(trial->option));
    json_object_set_new(record, "arch", json_string(arch));
    json_object_set_new(record, "exact", json_boolean(trial->is_exact));
    put_answers(record, trial);
    if (rec_text(trial->option, "against"))
        rec_copy(record, "against", trial->option, "against");
    put_run(record, trial);
    put_costs(record, trial);
    json_object_set_new(record, "qualities", qualities_of(trial));
    json_object_set_new(record, "claims", judge_claims(trial));
    return record;
}

/* Finds the records of an option on a system. If the option is for one device and the run was on
 * another, the trial has no records of the option. */
static struct trial find_trial(const json_t *option, const char *first, json_t *metrics,
                               json_t *effects)
{
    const char *against = rec_text(option, "against"), *device = rec_text(option, "device");
    const char *base = against ? against : first;
    struct trial trial = {.option = option, .name = rec_text(option, "option"), .first = first};
    trial.metric = json_object_get(metrics, trial.name);
    trial.other = json_object_get(metrics, base);
    trial.effect = json_object_get(json_object_get(effects, base), trial.name);
    if (device && !rec_is(json_object_get(trial.metric, "e2e_ns"), "device", device))
        trial.metric = trial.effect = NULL;
    return trial;
}

json_t *ablation_judge(const json_t *options, const json_t *records)
{
    static const char *const both[] = {"llada", "llama", NULL}, *const all[] = {"llada", "llama",
                                                                                  "ltm", NULL};
    const char *first = rec_text(json_array_get(options, 0), "option");
    json_t *metrics = json_object(), *effects = json_object(), *list = json_array(), *object;
    const json_t *record;
    size_t i;
    json_array_foreach(records, i, record)
        if (!strcmp(rec_kind(record), "metric"))
            add_metric(metrics, record);
        else
            add_effect(effects, record, first);
    json_array_foreach(options, i, object) {
        const int is_chosen = json_object_get(object, "systems") != NULL;
        for (const char *const *system = is_chosen ? all : both; *system; system++) {
            json_t *metric = json_object_get(metrics, *system),
                   *effect = json_object_get(effects, *system);
            if ((is_chosen && !rec_lists(object, "systems", *system)) || !(metric || effect))
                continue;
            struct trial trial = find_trial(object, first, metric, effect);
            trial.is_exact = rec_lists(object, "exact", *system);
            json_array_append_new(list, record_of(&trial, *system));
        }
    }
    json_decref(metrics);
    json_decref(effects);
    return list;
}
