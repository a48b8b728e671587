/* figure-load.c - draws the latency of prompts that arrive against the rate of arrivals. Each
 * setting is a curve; lines mark the rates at which LLaDA takes as long as LLaMA (X_rate). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/loads.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/figure/series.h"
#include "lib/record/rec.h"

enum { MAX_RATES = 32 };
struct range { double lo, hi; };

static void widen(struct range *range, double lo, double hi)
{
    range->lo = fmin(range->lo, lo);
    range->hi = fmax(range->hi, hi);
}

static struct value value_of(const json_t *record)
{
    return (struct value){rec_number(record, "value"), rec_number(record, "lo"),
                          rec_number(record, "hi"), record};
}

/* Returns the scale of the latency for the smallest value. */
static struct display_scale scale_of(const struct runset *set, const struct loads *loads,
                                     const char *metric)
{
    double least = (double)NAN;
    for (size_t i = 0; i < loads->n; i++)
        least = fmin(least, rec_number(loads_metric(set, &loads->v[i], metric), "value"));
    return display_scale(metric, least);
}

static void put_point(struct figure *figure, const struct load *load, const struct value *value,
                      const char *metric, double divide)
{
    struct buf text = {0};
    const int is_disturbed = json_is_true(json_object_get(value->record, "disturbed"));
    script_row(&figure->script, "nnnnn", load->rate, value->at, value->lo, value->hi,
               (double)is_disturbed);
    figure_put_value(&text, metric, value, divide);
    figure_tip(figure, 1, load->rate, value->at, NULL, "%s, %.4g requests/s: %s %s%s", load->name,
               load->rate, display_metric_name(metric), text.data,
               is_disturbed ? ", disturbed" : "");
    buf_free(&text);
}

/* Writes the curves, and widens the ranges of the two axes. */
static void put_curves(struct figure *figure, const struct runset *set, const struct loads *loads,
                       const char *metric, struct range *rates, struct range *times)
{
    const struct display_scale scale = scale_of(set, loads, metric);
    struct script *out = &figure->script;
    struct series series = {0};
    const char *open = "";
    script_table(out, "points", "rate cost cost_lo cost_hi disturbed");
    for (size_t i = 0; i < loads->n; i++) {
        const struct load *load = &loads->v[i];
        struct value value = value_of(loads_metric(set, load, metric));
        if (!figure_scale(figure, &value, scale.divide, 1))
            continue;
        if (strcmp(open, load->series) &&
            !series_open(out, &series, load->name, NULL, (double)load->kind, 1, 5)) {
            out->skipped++;
            continue;
        }
        open = load->series;
        put_point(figure, load, &value, metric, scale.divide);
        widen(rates, load->rate, load->rate);
        widen(times, value.lo * FIGURE_FAR > 2 * value.at ? value.lo : value.at, value.hi);
    }
    script_table_end(out);
    series_put(out, &series);
    char *label = mem_format("%s (%s)", display_metric_name(metric), scale.unit);
    script_text(out, "cost_label", label);
    free(label);
}

/* Adds sentences on X_rate of a series, and on whether its step count is as good as LLaMA. */
static void say_crossover(struct figure *figure, const struct load *load, const json_t *record)
{
    struct buf good = {0}, text = {0};
    const double at = rec_number(record, "at"), lo = rec_number(record, "lo"),
                 hi = rec_number(record, "hi");
    loads_as_good(&good, record);
    if (json_is_true(json_object_get(record, "exists")))
        display_interval(&text, "rate", at, lo, hi);
    if (text.len)
        figure_say(figure, "%s takes as long as LLaMA at %s requests/s.", load->name, text.data);
    else
        figure_say(figure, "%s: no rate at which it takes as long as LLaMA: %s.", load->name,
                   rec_text(record, "reason") ? rec_text(record, "reason") : "no reason given");
    if (good.len)
        figure_say(figure, "%s.", good.data);
    buf_free(&good);
    buf_free(&text);
}

/* Writes the measured rates, each once, for the ticks of the axis. */
static void put_rates(struct script *script, const struct loads *loads)
{
    double rates[MAX_RATES];
    int n = 0;
    for (size_t i = 0; i < loads->n; i++) {
        int at = 0;
        while (at < n && !figure_same(rates[at], loads->v[i].rate))
            at++;
        if (at == n && n < MAX_RATES)
            rates[n++] = loads->v[i].rate;
    }
    script_numbers(script, "rates", rates, n);
    script_number(script, "rate_count", n);
}

/* Writes the crossovers of the diffusion series that exist: place and interval. */
static void put_crossovers(struct figure *figure, const struct runset *set,
                           const struct loads *loads)
{
    double place[3][SERIES_MAX];
    int n = 0;
    for (size_t i = 0; i < loads->n && n < SERIES_MAX; i++) {
        const struct load *load = &loads->v[i];
        const int is_first = !i || strcmp(load->series, loads->v[i - 1].series);
        const json_t *record = is_first ? loads_crossover(set, load) : NULL;
        if (!record)
            continue;
        say_crossover(figure, load, record);
        if (isnan(rec_number(record, "at")))
            continue;
        place[0][n] = rec_number(record, "at");
        place[1][n] = rec_number(record, "lo");
        place[2][n++] = rec_number(record, "hi");
    }
    script_number(&figure->script, "cross_count", n);
    script_numbers(&figure->script, "cross_at", place[0], n);
    script_numbers(&figure->script, "cross_lo", place[1], n);
    script_numbers(&figure->script, "cross_hi", place[2], n);
}

void figure_load(struct figure *figure, const struct runset *set,
                 const struct figure_request *request)
{
    const char *metric = request->cost ? request->cost : "e2e_ns";
    struct range rates = {(double)NAN, (double)NAN}, times = rates;
    struct loads loads;
    loads_gather(&loads, set);
    figure_say(figure,
               "Requests that arrive at random times: %s against their rate. The time of an answer "
               "runs from the arrival and includes the wait for a place in the batch.",
               display_metric_name(metric));
    put_curves(figure, set, &loads, metric, &rates, &times);
    put_crossovers(figure, set, &loads);
    put_rates(&figure->script, &loads);
    script_number(&figure->script, "rate_lo", rates.lo);
    script_number(&figure->script, "rate_hi", rates.hi);
    script_number(&figure->script, "cost_lo", times.lo);
    script_number(&figure->script, "cost_hi", times.hi);
    if (!loads.n)
        figure->why = "no point has prompts that arrive (make load)";
    loads_free(&loads);
}
