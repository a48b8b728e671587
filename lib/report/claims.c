/* claims.c - finds claims of a run; see claims.h. If one claim about time is null because
 * launches were disturbed or too few, the page shows no ratio of times: all ratios come from the
 * same launches. */
#include "lib/report/claims.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"
#include "lib/stat/launch.h"
#include "lib/stat/paired.h"

const json_t *claims_find(const struct runset *set, const char *name, const char *key)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "claim"), i, record)
        if (rec_is(record, "name", name) && (!key || rec_is(record, "key", key)))
            return record;
    return NULL;
}

const char *claims_text(const json_t *claim)
{
    const char *text = rec_text(claim, "text");
    return text ? text : "";
}

int claims_is_decided(const json_t *claim)
{
    return json_is_true(json_object_get(claim, "decided"));
}

int claims_times_are_null(const struct runset *set)
{
    static const char *const reasons[] = {PAIRED_DISTURBED, LAUNCH_FEW, PAIRED_MISSING,
                                          PAIRED_PROMPTS};
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "claim"), i, record) {
        const char *why = rec_text(record, "clock") ? rec_text(record, "value_reason") : NULL;
        for (size_t k = 0; why && k < sizeof reasons / sizeof *reasons; k++)
            if (!strncmp(why, reasons[k], strlen(reasons[k])))
                return 1;
    }
    return 0;
}

int claims_allow_figure(const struct runset *set, const char *name)
{
    static const char *const ratios[] = {"methods", "ratio"};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        if (!strncmp(name, ratios[i], strlen(ratios[i])))
            return !claims_times_are_null(set);
    return 1;
}

int claims_are_of_processor(const struct runset *set)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "claim"), i, record)
        if (rec_text(record, "clock"))
            return rec_is(record, "clock", "cpu");
    return 0;
}

const json_t *claims_equal_quality(const struct runset *set, size_t k)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "claim"), i,
                       record) if (rec_is(record, "name", "crossing") &&
                                   rec_is(record, "key", "X_q") &&
                                   json_is_true(json_object_get(record, "primary")) &&
                                   rec_text(record, "quality_metric") && k-- == 0) return record;
    return NULL;
}

void claims_margin(struct buf *text, const json_t *claim)
{
    const char *task = rec_text(claim, "task"), *metric = rec_text(claim, "quality_metric");
    double margin = rec_number(claim, "margin");
    int is_share = metric && !strncmp(metric, "accuracy", strlen("accuracy"));
    buf_text(text, metric ? display_metric_name(metric) : "quality");
    buf_format(text, "%s%s", task ? " on " : "", task ? task : "");
    if (isnan(margin))
        return;
    buf_text(text, " within ");
    if (json_is_true(json_object_get(claim, "margin_relative")) || is_share)
        buf_format(text, "%.3g %s", 100 * margin, is_share ? "points" : "%");
    else
        display_digits(text, margin);
}
