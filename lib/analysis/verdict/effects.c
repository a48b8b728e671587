/* effects.c - see effects.h. The values of a samples record are effects already, so the base value
 * of a ratio is 1 and of a difference 0. A single value has no interval, unless it is a count. */
#include "lib/analysis/verdict/effects.h"

#include <math.h>
#include <stdlib.h>

#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

static const double LEVEL = 0.95;

static struct interval interval_of(const json_t *sample, size_t *n)
{
    const json_t *values = json_object_get(sample, "values"), *value;
    double *x = mem_zero(json_array_size(values), sizeof *x);
    size_t i;
    *n = 0;
    json_array_foreach(values, i, value)
        if (json_is_number(value))
            x[(*n)++] = json_number_value(value);
    struct interval interval = stat_t(x, *n, LEVEL);
    free(x);
    if (json_is_true(json_object_get(sample, "log")))
        interval = (struct interval){exp(interval.value), exp(interval.lo), exp(interval.hi)};
    if (json_is_true(json_object_get(sample, "counted")))
        interval.lo = interval.hi = interval.value;
    return interval;
}

static json_t *comparison_of(const json_t *sample, struct interval interval, size_t n)
{
    const char *option = rec_text(sample, "option"), *metric = rec_text(sample, "metric");
    const char *arch = rec_text(sample, "arch");
    const int is_difference = display_ends_with(metric, "_distance");
    json_t *record = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "by", "option", "arch",
                               arch ? arch : "", "model", arch ? arch : "", "config", option,
                               "base_config", "base", "setting", option, "metric", metric);
    rec_set_number(record, "config_value", interval.value, "undefined");
    json_object_set_new(record, "effect", json_string(is_difference ? "difference" : "ratio"));
    rec_set_int(record, "base_value", !is_difference);
    rec_set_number(record, "value", interval.value, "undefined");
    rec_set_number(record, "lo", interval.lo, "n<2");
    rec_set_number(record, "hi", interval.hi, "n<2");
    rec_set_int(record, "n", (int64_t)n);
    return record;
}

json_t *effects_of(const json_t *samples)
{
    json_t *list = json_array();
    const json_t *s;
    size_t i, n;
    json_array_foreach(samples, i, s) {
        if (!rec_text(s, "option") || !rec_text(s, "metric"))
            continue;
        struct interval interval = interval_of(s, &n);
        if (n)
            json_array_append_new(list, comparison_of(s, interval, n));
    }
    return list;
}
