/* verdict.c - see verdict.h. A crossover that does not exist is a result like any other, and a
 * bound is never written like a value. The range of a crossover is that of its own series: steps
 * measured in other series do not widen it. */
#include "lib/analysis/verdict/verdict.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/record/rec.h"

static int is_same(const json_t *r, const char *key, const char *expected)
{
    const char *got = rec_text(r, key);
    return !got || !expected || !strcmp(got, expected);
}

static double batch_of(const json_t *r)
{
    double batch = rec_number(r, "batch");
    return isnan(batch) ? 1 : batch;
}

const json_t *verdict_find(const struct runset *s, const char *name, double batch,
                           const char *quality, const char *series)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "crossover"), i, r) {
        const char *got = rec_text(r, "name");
        double b = batch_of(r);
        if (got && !strcmp(got, name) && b >= batch && b <= batch &&
            is_same(r, "quality_metric", quality) && is_same(r, "series", series))
            return r;
    }
    return NULL;
}

static int exists(const json_t *r)
{
    return json_is_true(json_object_get(r, "exists"));
}

static const char *over_of(const json_t *r)
{
    const char *over = rec_text(r, "over");
    return over ? over : "steps";
}

double verdict_at(const json_t *r)
{
    double at = rec_number(r, "at");
    return isnan(at) ? rec_number(r, "steps") : at;
}

const char *verdict_unit(const json_t *r, int is_long)
{
    const char *over = over_of(r);
    return !is_long                 ? over
           : !strcmp(over, "steps")  ? "denoising steps"
           : !strcmp(over, "passes") ? "denoising passes"
           : !strcmp(over, "batch")  ? "prompts at once"
           : !strcmp(over, "gen_length") ? "tokens"
                                     : "rows computed";
}

/* The least and the most measured work of the series. */
static void range_of(const struct runset *s, const json_t *r, double *least, double *most)
{
    const char *series = rec_text(r, "series"), *point;
    size_t i;
    json_t *p;
    *least = *most = (double)NAN;
    const json_t *list = json_object_get(r, "points");
    json_array_foreach(list ? list : json_object_get(r, "cells"), i, p) {
        *least = fmin(*least, rec_number(p, "at"));
        *most = fmax(*most, rec_number(p, "at"));
    }
    if (!isnan(*least) || !series)
        return;
    json_object_foreach(s->configs, point, p) {
        const char *of = rec_text(p, "series");
        if (!of || strcmp(of, series))
            continue;
        *least = fmin(*least, rec_number(p, over_of(r)));
        *most = fmax(*most, rec_number(p, over_of(r)));
    }
}

static void put_bound(struct buf *b, char sign, double v)
{
    if (isfinite(v))
        buf_format(b, "%c%.4g", sign, v);
    else
        buf_text(b, sign == '<' ? "less" : "more");
}

static int put_end(struct buf *b, const struct runset *s, const json_t *r, const char *key,
                   const char *censored)
{
    double least, most;
    range_of(s, r, &least, &most);
    const char *side = rec_text(r, censored);
    double v = rec_number(r, key);
    if (isfinite(v))
        display_digits(b, v);
    else if (side && !strcmp(side, "below"))
        put_bound(b, '<', least);
    else if (side)
        put_bound(b, '>', most);
    else
        return 0;
    return 1;
}

void verdict_place(struct buf *b, const struct runset *s, const json_t *crossover)
{
    if (!exists(crossover)) {
        buf_text(b, "none");
        return;
    }
    display_digits(b, verdict_at(crossover));
    struct buf lo = {0}, hi = {0};
    if (put_end(&lo, s, crossover, "lo", "lo_censored") &&
        put_end(&hi, s, crossover, "hi", "hi_censored"))
        buf_format(b, " [%s, %s]", lo.data, hi.data);
    buf_free(&lo);
    buf_free(&hi);
}

void verdict_values(struct buf *b, const json_t *r)
{
    const char *axis = rec_text(r, "axis");
    const json_t *pair = json_object_get(r, "bracket_values");
    struct buf v[2] = {{0}, {0}};
    for (size_t i = 0; i < 2; i++)
        about_value(&v[i], json_array_get(pair, i));
    if (axis && strcmp(axis, over_of(r)) && (v[0].len || v[1].len)) {
        if (v[0].len && v[1].len && strcmp(v[0].data, v[1].data))
            buf_format(b, " (%s %s to %s)", axis, v[0].data, v[1].data);
        else
            buf_format(b, " (%s %s)", axis, v[1].len ? v[1].data : v[0].data);
    }
    buf_free(&v[0]);
    buf_free(&v[1]);
}
