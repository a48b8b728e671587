/* figure.c - see figure.h. This file has the table of figures and the sentences that all captions
 * share. Every drawn value passes through figure_scale(), which notes its number of answers and
 * launches and the method of its interval. So the caption describes exactly the drawn values. */
#include "lib/figure/figure.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/words/display.h"
#include "lib/base/mem.h"
#include "lib/record/machine/processor.h"
#include "lib/record/rec.h"

const struct figure_type figure_types[] = {
    {"pareto", "pareto", figure_pareto},
    {"steps", "steps", figure_steps},
    {"throughput", "throughput", figure_throughput},
    {"memory", "memory heat", figure_memory},
    {"ratio", "ratio heat", figure_ratio},
    {"methods", "methods", figure_methods},
    {"growth", "growth", figure_growth},
    {"load", "load", figure_load},
    {"trace", "trace", figure_trace},
    {"roofline", "roofline", figure_roofline},
    {"drift", "drift", figure_drift},
    {"training", "training", figure_training},
    {"claims", "claims", figure_claims},
    {"pairs", "pairs", figure_pairs},
    {0}};

const struct figure_type *figure_find(const char *name)
{
    for (const struct figure_type *type = figure_types; type->name; type++)
        if (!strcmp(type->name, name))
            return type;
    return NULL;
}

void figure_say(struct figure *figure, const char *format, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (figure->caption.len)
        buf_char(&figure->caption, ' ');
    display_clean(&figure->caption, text, sizeof text);
}

const char *figure_plural(double n)
{
    return n >= 0.999 && n <= 1.001 ? "" : "s";
}

void figure_tip(struct figure *figure, int panel, double x, double y, const double box[2],
                const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    script_tip(&figure->script, panel, x, y, box, text);
}

void figure_put_value(struct buf *text, const char *metric, const struct value *value,
                      double divide)
{
    int known = value->hi > value->lo && value->lo * FIGURE_FAR > 2 * value->at;
    display_interval(text, metric, value->at * divide, known ? value->lo * divide : (double)NAN,
                     value->hi * divide);
}

/* The name of a point of a sweep: "16 steps", "1 step", "threshold 0.9". The caller frees. */
static char *point_name(const struct config_row *row)
{
    int steps = row->axis && !strcmp(row->axis, "steps");
    return steps ? mem_format("%s step%s", row->along, figure_plural(row->value))
                 : mem_format("%s %s", row->axis ? row->axis : "", row->along);
}

char *figure_row_name(const struct config_row *row)
{
    if (!*row->along || row->method)
        return mem_text(row->name);
    char *at = point_name(row), *name = mem_format("%s, %s", row->name, at);
    free(at);
    return name;
}

char *figure_axes(const struct config_table *table)
{
    struct buf text = {0};
    for (size_t i = 0; i < table->n; i++) {
        const char *axis = table->v[i].axis;
        int seen = !axis;
        for (size_t k = 0; k < i && !seen; k++)
            seen = table->v[k].axis && !strcmp(table->v[k].axis, axis);
        if (!seen)
            buf_format(&text, "%s%s", text.len ? ", " : "", about_axis_name(axis));
    }
    return text.data ? text.data : mem_text("nothing");
}

int figure_same(double a, double b)
{
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !(a < b) && !(a > b);
}

static int keep_contract(const struct config_row *row, const void *contract)
{
    return !strcmp(row->contract, contract);
}

const char *figure_contract(struct config_table *table, const struct figure_request *request,
                            const char *best)
{
    const char *keep = request->contract ? request->contract : table->n ? table->v[0].contract : "";
    for (size_t i = 0; i < table->n && !request->contract; i++)
        if (!strcmp(table->v[i].contract, best))
            keep = table->v[i].contract;
    config_table_keep(table, keep_contract, keep);
    return keep;
}

char *figure_deliver(const char *contract, double length)
{
    if (!strcmp(contract, "fixed"))
        return mem_format("exactly %.0f tokens", length);
    return mem_format("%sat most %.0f tokens", *contract ? "to the end of the text, " : "", length);
}

static void widen(double *lo, double *hi, double v)
{
    *lo = fmin(*lo, v);
    *hi = fmax(*hi, v);
}

void figure_used(struct figure *figure, const struct value *value)
{
    if (!value->record)
        return;
    double n = rec_number(value->record, "n");
    n = isnan(n) ? rec_number(value->record, "prompts") : n;
    widen(&figure->n_lo, &figure->n_hi, n);
    widen(&figure->launches_lo, &figure->launches_hi, rec_number(value->record, "launches"));
    figure->disturbed |= json_is_true(json_object_get(value->record, "disturbed"));
    figure->level = fmin(figure->level, rec_number(value->record, "level"));
    const char *method = rec_text(value->record, "method");
    if (!method || strstr(figure->method, method))
        return;
    size_t len = strlen(figure->method);
    snprintf(figure->method + len, sizeof figure->method - len, "%s%s", len ? ", " : "", method);
}

int figure_scale(struct figure *figure, struct value *value, double divide, int log_axis)
{
    value->at /= divide;
    value->lo /= divide;
    value->hi /= divide;
    if (!gnuplot_drawable(value->at, log_axis)) {
        figure->script.skipped++;
        return 0;
    }
    if (log_axis && value->lo <= 0) {
        value->lo = value->at / FIGURE_FAR;
        figure->leaves = 1;
    }
    if (!gnuplot_drawable(value->lo, log_axis))
        value->lo = value->at;
    if (!gnuplot_drawable(value->hi, log_axis))
        value->hi = value->at;
    figure_used(figure, value);
    return 1;
}

const char *figure_quality(const struct runset *set, const struct figure_request *request)
{
    if (request->quality)
        return request->quality;
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "front"), i, record) {
        if (rec_text(record, "quality_metric"))
            return rec_text(record, "quality_metric");
    }
    const char *first = NULL;
    json_array_foreach(runset_kind(set, "quality"), i, record) {
        const char *metric = rec_text(record, "metric");
        if (metric && !strcmp(metric, "judge_ppl"))
            return metric;
        first = first ? first : metric;
    }
    return first ? first : "judge_ppl";
}

static void say_range(struct figure *figure, const char *what, double lo, double hi)
{
    if (isfinite(lo) && hi > lo)
        figure_say(figure, "%s: %.0f to %.0f.", what, lo, hi);
    else if (isfinite(lo))
        figure_say(figure, "%s: %.0f.", what, lo);
}

static const char *meta_text(const struct runset *set, const char *key)
{
    return json_string_value(runset_meta(set, key));
}

/* Adds the device of a record or a configuration to `on`: the name of a GPU, or "" for the
 * processor. */
static void note_device(json_t *on, const json_t *record)
{
    const char *device = rec_text(record, "device"), *name = rec_text(record, "device_name");
    if (name)
        json_object_set_new(on, name, json_true());
    else if (device && strcmp(device, "cuda"))
        json_object_set_new(on, "", json_true());
}

/* Adds the devices that the records name; if they name none, the devices of the machine. */
static void say_machine(struct figure *figure, const struct runset *set)
{
    json_t *on = json_object(), *value;
    const char *key;
    size_t i;
    json_object_foreach(set->configs, key, value)
        note_device(on, value);
    json_array_foreach(runset_kind(set, "roofline"), i, value)
        note_device(on, value);
    const json_t *machine = runset_machine(set);
    const char *gpu = rec_text(machine, "gpu");
    char *cpu = processor_name(machine);
    int any = json_object_size(on) > 0, host = any ? json_object_get(on, "") != NULL : !gpu;
    if (!any && gpu)
        json_object_set_new(on, gpu, json_true());
    struct buf names = {0};
    json_object_foreach(on, key, value)
        if (*key)
            buf_format(&names, "%s%s", names.len ? ", " : "", key);
    double cores = json_number_value(json_object_get(machine, "cores"));
    if (host && cpu)
        buf_format(&names, "%s%s, %.0f core%s", names.len ? "; " : "", cpu, cores,
                   figure_plural(cores));
    if (names.len)
        figure_say(figure, "Machine: %s.", names.data);
    free(cpu);
    buf_free(&names);
    json_decref(on);
}

/* Adds the end of every caption: intervals, numbers of values, machine, date, version. */
static void say_facts(struct figure *figure, const struct runset *set)
{
    if (isfinite(figure->level))
        figure_say(figure, "Error bars and brackets: %.0f %% intervals%s%s%s.", 100 * figure->level,
                   *figure->method ? " (" : "", figure->method, *figure->method ? ")" : "");
    if (figure->leaves && isfinite(figure->level))
        figure_say(figure,
                   "An error bar that leaves the frame reaches zero, because launches are too "
                   "few.");
    if (figure->disturbed)
        figure_say(figure, "Hollow points have no interval, because other work ran on the machine "
                           "whenever they were timed.");
    say_range(figure, "Values per point", figure->n_lo, figure->n_hi);
    say_range(figure, "Launches", figure->launches_lo, figure->launches_hi);
    say_machine(figure, set);
    if (meta_text(set, "start"))
        figure_say(figure, "Date: %.10s.", meta_text(set, "start"));
    if (meta_text(set, "commit"))
        figure_say(figure, "Commit: %s.", meta_text(set, "commit"));
    if (set->set_aside)
        figure_say(figure,
                   "%lld configurations were measured on several sets of prompts; the figure "
                   "shows the largest set.",
                   (long long)set->set_aside);
    if (figure->script.skipped)
        figure_say(figure, "Values left out, because they are missing or outside the axis: %lld.",
                   (long long)figure->script.skipped);
}

void figure_build(struct figure *figure, const struct figure_type *type, const struct runset *set,
                  const struct figure_request *request)
{
    *figure = (struct figure){.n_lo = (double)NAN, .n_hi = (double)NAN, .launches_lo = (double)NAN,
                              .launches_hi = (double)NAN, .level = (double)NAN};
    if (request->title)
        figure_say(figure, "%s.", request->title);
    type->build(figure, set, request);
    if (!figure->script.points) {
        buf_clear(&figure->caption);
        figure_say(figure, "No data: no record has a value for a figure of type %s%s%s.",
                   type->name, figure->why ? ": " : "", figure->why ? figure->why : "");
        int64_t skipped = figure->script.skipped;
        script_free(&figure->script);
        figure->script = (struct script){.skipped = skipped};
        script_text(&figure->script, "figure_type", type->name);
        script_text(&figure->script, "why", figure->why ? figure->why : "");
    }
    script_tips_end(&figure->script);
    say_facts(figure, set);
}

void figure_free(struct figure *figure)
{
    script_free(&figure->script);
    buf_free(&figure->caption);
}
