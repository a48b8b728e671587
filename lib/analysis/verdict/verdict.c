/* verdict.c - see verdict.h. A crossover that does not exist is a result like any other, and a
 * bound is never written like a value. The measured range of a crossover is the range of its
 * series; steps measured in other series do not widen it. */
#include "lib/analysis/verdict/verdict.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

static int is_same(const json_t *record, const char *key, const char *expected)
{
    const char *got = rec_text(record, key);
    return !got || !expected || !strcmp(got, expected);
}

static double batch_of(const json_t *record)
{
    double batch = rec_number(record, "batch");
    return isnan(batch) ? 1 : batch;
}

const json_t *verdict_find(const struct runset *set, const char *name, double batch,
                           const char *quality, const char *series)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "crossover"), i, record) {
        const char *got = rec_text(record, "name");
        double b = batch_of(record);
        if (got && !strcmp(got, name) && b >= batch && b <= batch &&
            !rec_is(record, "rival", "fastest") &&
            is_same(record, "quality_metric", quality) && is_same(record, "series", series))
            return record;
    }
    return NULL;
}

static int exists(const json_t *record)
{
    return json_is_true(json_object_get(record, "exists"));
}

static const char *over_of(const json_t *record)
{
    const char *over = rec_text(record, "over");
    return over ? over : "steps";
}

double verdict_at(const json_t *crossover)
{
    double at = rec_number(crossover, "at");
    return isnan(at) ? rec_number(crossover, "steps") : at;
}

const char *verdict_unit(const json_t *crossover, int is_long)
{
    const char *over = over_of(crossover);
    return !is_long                        ? strcmp(over, "arrival_rate") ? over : "requests/s"
           : !strcmp(over, "steps")        ? "denoising steps"
           : !strcmp(over, "passes")       ? "denoising passes"
           : !strcmp(over, "batch")        ? "prompts at once"
           : !strcmp(over, "gen_length")   ? "tokens"
           : !strcmp(over, "arrival_rate") ? "requests per second"
                                           : "rows computed";
}

/* The least and the most measured work of the series. */
static void range_of(const struct runset *set, const json_t *record, double *least, double *most)
{
    const char *series = rec_text(record, "series"), *point;
    size_t i;
    json_t *entry;
    *least = *most = (double)NAN;
    const json_t *list = json_object_get(record, "points");
    json_array_foreach(list ? list : json_object_get(record, "cells"), i, entry) {
        *least = fmin(*least, rec_number(entry, "at"));
        *most = fmax(*most, rec_number(entry, "at"));
    }
    if (!isnan(*least) || !series)
        return;
    json_object_foreach(set->configs, point, entry) {
        const char *of = rec_text(entry, "series");
        if (!of || strcmp(of, series))
            continue;
        *least = fmin(*least, rec_number(entry, over_of(record)));
        *most = fmax(*most, rec_number(entry, over_of(record)));
    }
}

static void put_bound(struct buf *text, char sign, double v)
{
    if (isfinite(v))
        buf_format(text, "%c%.4g", sign, v);
    else
        buf_text(text, sign == '<' ? "less" : "more");
}

static int put_end(struct buf *text, const struct runset *set, const json_t *record,
                   const char *key, const char *censored)
{
    double least, most;
    range_of(set, record, &least, &most);
    const char *side = rec_text(record, censored);
    double value = rec_number(record, key);
    if (isfinite(value))
        display_digits(text, value);
    else if (side && !strcmp(side, "below"))
        put_bound(text, '<', least);
    else if (side)
        put_bound(text, '>', most);
    else
        return 0;
    return 1;
}

void verdict_place(struct buf *text, const struct runset *set, const json_t *crossover)
{
    if (!exists(crossover)) {
        buf_text(text, "none");
        return;
    }
    display_digits(text, verdict_at(crossover));
    struct buf lo = {0}, hi = {0};
    if (put_end(&lo, set, crossover, "lo", "lo_censored") &&
        put_end(&hi, set, crossover, "hi", "hi_censored"))
        buf_format(text, " [%s, %s]", lo.data, hi.data);
    buf_free(&lo);
    buf_free(&hi);
}

void verdict_values(struct buf *text, const json_t *crossover)
{
    const char *axis = rec_text(crossover, "axis");
    const json_t *pair = json_object_get(crossover, "bracket_values");
    struct buf ends[2] = {{0}, {0}};
    for (size_t i = 0; i < 2; i++)
        about_value(&ends[i], json_array_get(pair, i));
    if (axis && strcmp(axis, over_of(crossover)) && (ends[0].len || ends[1].len)) {
        if (ends[0].len && ends[1].len && strcmp(ends[0].data, ends[1].data))
            buf_format(text, " (%s %s to %s)", axis, ends[0].data, ends[1].data);
        else
            buf_format(text, " (%s %s)", axis, ends[1].len ? ends[1].data : ends[0].data);
    }
    buf_free(&ends[0]);
    buf_free(&ends[1]);
}
