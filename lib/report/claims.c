/* claims.c - see claims.h. If the machine makes one claim about time null, all ratios of times are
 * withheld: they come from the same launches. */
#include "lib/report/claims.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

const json_t *claims_find(const struct runset *s, const char *name, const char *key)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "claim"), i, r)
        if (rec_is(r, "name", name) && (!key || rec_is(r, "key", key)))
            return r;
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

int claims_times_are_null(const struct runset *s)
{
    static const char *const reasons[] = {"disturbed", "fewer than 5 launches"};
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "claim"), i, r) {
        const char *why = rec_text(r, "clock") ? rec_text(r, "value_reason") : NULL;
        for (size_t k = 0; why && k < sizeof reasons / sizeof *reasons; k++)
            if (!strncmp(why, reasons[k], strlen(reasons[k])))
                return 1;
    }
    return 0;
}

int claims_allow_figure(const struct runset *s, const char *name)
{
    static const char *const ratios[] = {"methods", "ratio"};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        if (!strncmp(name, ratios[i], strlen(ratios[i])))
            return !claims_times_are_null(s);
    return 1;
}

int claims_are_of_processor(const struct runset *s)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "claim"), i, r)
        if (rec_text(r, "clock"))
            return rec_is(r, "clock", "cpu");
    return 0;
}

const json_t *claims_equal_quality(const struct runset *s, size_t k)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "claim"), i, r)
        if (rec_is(r, "name", "crossing") && rec_is(r, "key", "X_q") &&
            json_is_true(json_object_get(r, "primary")) && rec_text(r, "quality_metric") &&
            k-- == 0)
            return r;
    return NULL;
}

void claims_margin(struct buf *b, const json_t *x)
{
    const char *task = rec_text(x, "task"), *metric = rec_text(x, "quality_metric");
    double margin = rec_number(x, "margin");
    int is_share = metric && !strncmp(metric, "accuracy", strlen("accuracy"));
    buf_text(b, metric ? display_metric_name(metric) : "quality");
    buf_format(b, "%s%s", task ? " on " : "", task ? task : "");
    if (isnan(margin))
        return;
    buf_text(b, " within ");
    if (json_is_true(json_object_get(x, "margin_relative")) || is_share)
        buf_format(b, "%.3g %s", 100 * margin, is_share ? "points" : "%");
    else
        display_digits(b, margin);
}
