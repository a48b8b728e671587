/* band.c - see band.h. Errors are kept as records. An error belongs to a forecast if both have
 * equal words in the same members. Errors under measured ceilings tell nothing about forecasts by
 * data sheet, because no program reaches the numbers of a data sheet. */
#include "lib/forecast/band.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

static int is_by_sheet(const json_t *r)
{
    return !rec_is(r, "hardware", "measured");
}

void band_take(struct band *b, const json_t *r)
{
    if (!rec_is(r, "against", "measurement") || !(rec_number(r, "ratio") > 0))
        return;
    if (!b->errors)
        b->errors = json_array();
    json_array_append_new(b->errors, json_deep_copy(r));
}

void band_free(struct band *b)
{
    json_decref(b->errors);
}

/* ---- the band ---- */

static int is_alike(const json_t *error, const json_t *r, const char *metric)
{
    static const char *const same[] = {"paradigm", "flops_unit", "quant", "form"};
    int alike = is_by_sheet(error) && rec_is(error, "metric", metric);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *word = rec_text(r, same[i]);
        alike = alike && word && rec_is(error, same[i], word);
    }
    return alike;
}

void band_set(const struct band *b, json_t *r, const char *key, const char *metric)
{
    double value = rec_number(r, key), least = INFINITY, most = 0;
    size_t i;
    const json_t *error;
    json_array_foreach(b->errors, i, error)
        if (is_alike(error, r, metric)) {
            least = fmin(least, rec_number(error, "ratio"));
            most = fmax(most, rec_number(error, "ratio"));
        }
    const char *why = isnan(value) ? "no forecast"
                      : !b->errors ? "no check: no measured points were given"
                                   : "no forecast of this kind was checked";
    rec_set_number(r, "lo", most > 0 ? value / most : (double)NAN, why);
    rec_set_number(r, "hi", most > 0 ? value / least : (double)NAN, why);
}

/* ---- the bias ---- */

static const char *const group_names[] = {"crossovers", "times of LLaDA", "times of LLaMA"};

static int is_of(const json_t *error, enum band_group g, int by_sheet)
{
    if (is_by_sheet(error) != by_sheet)
        return 0;
    if (g == BAND_CROSSOVER)
        return rec_is(error, "metric", "steps");
    return rec_is(error, "metric", "e2e_ns") &&
           rec_is(error, "paradigm", "autoregressive") == (g == BAND_LLAMA);
}

/* forecast / measured over n errors; spread NaN: a single error. */
struct bias { double ratio, spread, least, most; size_t n; };

static char *text_of(enum band_group g, const char *basis, const char *favours,
                     const struct bias *x)
{
    char *spread = x->n > 1 ? mem_format("spread %.2f, ", x->spread) : mem_text(""), *text;
    char *how = mem_format("forecast / measured: %.2f in the geometric mean, %s%.2f to %.2f, "
                           "n = %zu", x->ratio, spread, x->least, x->most, x->n);
    if (g != BAND_CROSSOVER)
        text = mem_format("forecasts %s, %s: %s", basis, group_names[g], how);
    else if (favours)
        text = mem_format("forecasts %s favour %s by %.0f %%, at every crossover (%s)", basis,
                          favours, 100 * fabs(x->ratio - 1), how);
    else
        text = mem_format("forecasts %s favour neither model (crossovers, %s)", basis,
                          how);
    free(spread);
    free(how);
    return text;
}

static struct bias bias_of(const struct band *b, enum band_group g, int by_sheet)
{
    struct bias x = {NAN, NAN, INFINITY, 0, 0};
    double *logs = mem_alloc((json_array_size(b->errors) + 1) * sizeof *logs);
    size_t i;
    const json_t *error;
    json_array_foreach(b->errors, i, error)
        if (is_of(error, g, by_sheet)) {
            double ratio = rec_number(error, "ratio");
            x.least = fmin(x.least, ratio);
            x.most = fmax(x.most, ratio);
            logs[x.n++] = log(ratio);
        }
    if (x.n)
        x.ratio = exp(stat_mean(logs, x.n));
    if (x.n > 1)
        x.spread = exp(stat_sd(logs, x.n));
    free(logs);
    return x;
}

json_t *band_bias(const struct band *b, enum band_group g, int by_sheet)
{
    const struct bias x = bias_of(b, g, by_sheet);
    if (!x.n)
        return NULL;
    const char *favours = g != BAND_CROSSOVER ? NULL : x.least > 1 ? "LLaDA"
                                                     : x.most < 1  ? "LLaMA" : NULL;
    char *text = text_of(g, by_sheet ? "by data sheet" : "under measured ceilings", favours, &x);
    json_t *r = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s?, s:s}", "what", "bias", "modelled", 1,
                          "basis", by_sheet ? "data sheet" : "ceilings", "metric",
                          g == BAND_CROSSOVER ? "steps" : "e2e_ns", "group", group_names[g],
                          "favours", favours, "text", text);
    free(text);
    rec_set_number(r, "ratio", x.ratio, NULL);
    rec_set_number(r, "spread_ratio", x.spread, "one error alone");
    rec_set_number(r, "least", x.least, NULL);
    rec_set_number(r, "most", x.most, NULL);
    rec_set_int(r, "n", (int64_t)x.n);
    return r;
}
