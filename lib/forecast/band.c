/* band.c - band and bias of forecasts; see band.h. Errors are kept as records. The band of a
 * forecast uses the errors of records that are equal in the members listed in is_alike(). Errors
 * under measured ceilings say nothing about forecasts by data sheet, because no program reaches the
 * numbers of a data sheet. */
#include "lib/forecast/band.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

static int is_by_sheet(const json_t *record)
{
    return !rec_is(record, "hardware", "measured");
}

void band_take(struct band *band, const json_t *record)
{
    if (!rec_is(record, "against", "measurement") || !(rec_number(record, "ratio") > 0))
        return;
    if (!band->errors)
        band->errors = json_array();
    json_array_append_new(band->errors, json_deep_copy(record));
}

void band_free(struct band *band)
{
    json_decref(band->errors);
}

/* ---- the band ---- */

/* 1: the error is of a forecast of the same kind as `record`, by data sheet. */
static int is_alike(const json_t *error, const json_t *record, const char *metric)
{
    static const char *const same[] = {"paradigm", "flops_unit", "quant", "form"};
    int alike = is_by_sheet(error) && rec_is(error, "metric", metric);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *word = rec_text(record, same[i]);
        alike = alike && word && rec_is(error, same[i], word);
    }
    return alike;
}

void band_set(const struct band *band, json_t *record, const char *key, const char *metric)
{
    double value = rec_number(record, key), least = INFINITY, most = 0;
    size_t i;
    const json_t *error;
    json_array_foreach(band->errors, i, error)
        if (is_alike(error, record, metric)) {
            least = fmin(least, rec_number(error, "ratio"));
            most = fmax(most, rec_number(error, "ratio"));
        }
    const char *why = isnan(value)    ? "no forecast"
                      : !band->errors ? "no check: no measured points were given"
                                      : "no forecast of this kind was checked";
    rec_set_number(record, "lo", most > 0 ? value / most : (double)NAN, why);
    rec_set_number(record, "hi", most > 0 ? value / least : (double)NAN, why);
}

/* ---- the bias ---- */

static const char *const group_names[] = {"crossovers", "times of LLaDA", "times of LLaMA"};

static int is_of(const json_t *error, enum band_group group, int by_sheet)
{
    if (is_by_sheet(error) != by_sheet)
        return 0;
    if (group == BAND_CROSSOVER)
        return rec_is(error, "metric", "steps");
    return rec_is(error, "metric", "e2e_ns") &&
           rec_is(error, "paradigm", "autoregressive") == (group == BAND_LLAMA);
}

/* Statistics of forecast / measured over n errors: geometric mean, geometric standard deviation
 * (NaN: n is 1), smallest, largest. */
struct bias { double ratio, spread, least, most; size_t n; };

/* The bias as a sentence. favours: the model that the forecasts favour; NULL: neither. */
static char *text_of(enum band_group group, const char *basis, const char *favours,
                     const struct bias *bias)
{
    char *spread = bias->n > 1 ? mem_format("spread %.2f, ", bias->spread) : mem_text(""), *text;
    char *how = mem_format("forecast / measured: %.2f in the geometric mean, %s%.2f to %.2f, "
                           "n = %zu", bias->ratio, spread, bias->least, bias->most, bias->n);
    if (group != BAND_CROSSOVER)
        text = mem_format("forecasts %s, %s: %s", basis, group_names[group], how);
    else if (favours)
        text = mem_format("forecasts %s favour %s by %.0f %%, at every crossover (%s)", basis,
                          favours, 100 * fabs(bias->ratio - 1), how);
    else
        text = mem_format("forecasts %s favour neither model (crossovers, %s)", basis,
                          how);
    free(spread);
    free(how);
    return text;
}

static struct bias bias_of(const struct band *band, enum band_group group, int by_sheet)
{
    struct bias bias = {NAN, NAN, INFINITY, 0, 0};
    double *logs = mem_alloc((json_array_size(band->errors) + 1) * sizeof *logs);
    size_t i;
    const json_t *error;
    json_array_foreach(band->errors, i, error)
        if (is_of(error, group, by_sheet)) {
            double ratio = rec_number(error, "ratio");
            bias.least = fmin(bias.least, ratio);
            bias.most = fmax(bias.most, ratio);
            logs[bias.n++] = log(ratio);
        }
    if (bias.n)
        bias.ratio = exp(stat_mean(logs, bias.n));
    if (bias.n > 1)
        bias.spread = exp(stat_sd(logs, bias.n));
    free(logs);
    return bias;
}

json_t *band_bias(const struct band *band, enum band_group group, int by_sheet)
{
    const struct bias bias = bias_of(band, group, by_sheet);
    if (!bias.n)
        return NULL;
    const char *favours = group != BAND_CROSSOVER ? NULL : bias.least > 1 ? "LLaDA"
                                                         : bias.most < 1  ? "LLaMA" : NULL;
    char *text = text_of(group, by_sheet ? "by data sheet" : "under measured ceilings", favours,
                         &bias);
    json_t *record = json_pack("{s:s, s:b, s:s, s:s, s:s, s:s?, s:s}", "what", "bias", "modelled",
                               1, "basis", by_sheet ? "data sheet" : "ceilings", "metric",
                               group == BAND_CROSSOVER ? "steps" : "e2e_ns", "group",
                               group_names[group], "favours", favours, "text", text);
    free(text);
    rec_set_number(record, "ratio", bias.ratio, NULL);
    rec_set_number(record, "spread_ratio", bias.spread, "only one error");
    rec_set_number(record, "least", bias.least, NULL);
    rec_set_number(record, "most", bias.most, NULL);
    rec_set_int(record, "n", (int64_t)bias.n);
    return record;
}
