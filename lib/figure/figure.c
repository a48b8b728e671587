/* figure.c - see figure.h: the table of figures, and the sentences that all captions share. Every
 * drawn value passes through figure_scale(), which notes its number of answers and launches and the
 * method of its interval, so that the caption describes exactly the drawn values. */
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
    {"trace", "trace", figure_trace},
    {"roofline", "roofline", figure_roofline},
    {"drift", "drift", figure_drift},
    {"training", "training", figure_training},
    {"claims", "claims", figure_claims},
    {0}};

const struct figure_type *figure_find(const char *name)
{
    for (const struct figure_type *t = figure_types; t->name; t++)
        if (!strcmp(t->name, name))
            return t;
    return NULL;
}

void figure_say(struct figure *f, const char *format, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (f->caption.len)
        buf_char(&f->caption, ' ');
    display_clean(&f->caption, text, sizeof text);
}

const char *figure_plural(double n)
{
    return n >= 0.999 && n <= 1.001 ? "" : "s";
}

void figure_tip(struct figure *f, int panel, double x, double y, const double box[2],
                const char *format, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    script_tip(&f->script, panel, x, y, box, text);
}

void figure_put_value(struct buf *b, const char *metric, const struct value *v, double divide)
{
    int known = v->hi > v->lo && v->lo * FIGURE_FAR > 2 * v->at;
    display_interval(b, metric, v->at * divide, known ? v->lo * divide : (double)NAN,
                     v->hi * divide);
}

/* "16 steps", "1 step", "threshold 0.9": a point of a sweep. The caller frees. */
static char *point_name(const struct config_row *c)
{
    int steps = c->axis && !strcmp(c->axis, "steps");
    return steps ? mem_format("%s step%s", c->along, figure_plural(c->value))
                 : mem_format("%s %s", c->axis ? c->axis : "", c->along);
}

char *figure_row_name(const struct config_row *c)
{
    if (!*c->along || c->is_method)
        return mem_text(c->name);
    char *at = point_name(c), *name = mem_format("%s, %s", c->name, at);
    free(at);
    return name;
}

char *figure_axes(const struct config_table *c)
{
    struct buf b = {0};
    for (size_t i = 0; i < c->n; i++) {
        const char *axis = c->v[i].axis;
        int seen = !axis;
        for (size_t k = 0; k < i && !seen; k++)
            seen = c->v[k].axis && !strcmp(c->v[k].axis, axis);
        if (!seen)
            buf_format(&b, "%s%s", b.len ? ", " : "", about_axis_name(axis));
    }
    return b.data ? b.data : mem_text("nothing");
}

int figure_same(double a, double b)
{
    return isnan(a) || isnan(b) ? isnan(a) && isnan(b) : !(a < b) && !(a > b);
}

static int keep_contract(const struct config_row *c, const void *contract)
{
    return !strcmp(c->contract, contract);
}

const char *figure_contract(struct config_table *c, const struct figure_request *q,
                            const char *best)
{
    const char *keep = q->contract ? q->contract : c->n ? c->v[0].contract : "";
    for (size_t i = 0; i < c->n && !q->contract; i++)
        if (!strcmp(c->v[i].contract, best))
            keep = c->v[i].contract;
    config_table_keep(c, keep_contract, keep);
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

void figure_used(struct figure *f, const struct value *v)
{
    if (!v->record)
        return;
    double n = rec_number(v->record, "n");
    n = isnan(n) ? rec_number(v->record, "prompts") : n;
    widen(&f->n_lo, &f->n_hi, n);
    widen(&f->launches_lo, &f->launches_hi, rec_number(v->record, "launches"));
    f->disturbed |= json_is_true(json_object_get(v->record, "disturbed"));
    f->level = fmin(f->level, rec_number(v->record, "level"));
    const char *method = rec_text(v->record, "method");
    if (!method || strstr(f->method, method))
        return;
    size_t len = strlen(f->method);
    snprintf(f->method + len, sizeof f->method - len, "%s%s", len ? ", " : "", method);
}

int figure_scale(struct figure *f, struct value *v, double divide, int log_axis)
{
    v->at /= divide;
    v->lo /= divide;
    v->hi /= divide;
    if (!gnuplot_drawable(v->at, log_axis)) {
        f->script.skipped++;
        return 0;
    }
    if (log_axis && v->lo <= 0) {
        v->lo = v->at / FIGURE_FAR;
        f->leaves = 1;
    }
    if (!gnuplot_drawable(v->lo, log_axis))
        v->lo = v->at;
    if (!gnuplot_drawable(v->hi, log_axis))
        v->hi = v->at;
    figure_used(f, v);
    return 1;
}

const char *figure_quality(const struct runset *s, const struct figure_request *q)
{
    if (q->quality)
        return q->quality;
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "front"), i, r) {
        if (rec_text(r, "quality_metric"))
            return rec_text(r, "quality_metric");
    }
    const char *first = NULL;
    json_array_foreach(runset_kind(s, "quality"), i, r) {
        const char *m = rec_text(r, "metric");
        if (m && !strcmp(m, "judge_ppl"))
            return m;
        first = first ? first : m;
    }
    return first ? first : "judge_ppl";
}

static void say_range(struct figure *f, const char *what, double lo, double hi)
{
    if (isfinite(lo) && hi > lo)
        figure_say(f, "%s: %.0f to %.0f.", what, lo, hi);
    else if (isfinite(lo))
        figure_say(f, "%s: %.0f.", what, lo);
}

static const char *meta_text(const struct runset *s, const char *key)
{
    return json_string_value(runset_meta(s, key));
}

/* Adds the device of a record or a configuration to `on`: the name of a GPU, or "" for the
 * processor. */
static void note_device(json_t *on, const json_t *r)
{
    const char *device = rec_text(r, "device"), *name = rec_text(r, "device_name");
    if (name)
        json_object_set_new(on, name, json_true());
    else if (device && strcmp(device, "cuda"))
        json_object_set_new(on, "", json_true());
}

/* Names the devices that the records name; if they name none, those of the machine. */
static void say_machine(struct figure *f, const struct runset *s)
{
    json_t *on = json_object(), *v;
    const char *key;
    size_t i;
    json_object_foreach(s->configs, key, v)
        note_device(on, v);
    json_array_foreach(runset_kind(s, "roofline"), i, v)
        note_device(on, v);
    const json_t *machine = runset_machine(s);
    const char *gpu = rec_text(machine, "gpu");
    char *cpu = processor_name(machine);
    int any = json_object_size(on) > 0, host = any ? json_object_get(on, "") != NULL : !gpu;
    if (!any && gpu)
        json_object_set_new(on, gpu, json_true());
    struct buf names = {0};
    json_object_foreach(on, key, v)
        if (*key)
            buf_format(&names, "%s%s", names.len ? ", " : "", key);
    double cores = json_number_value(json_object_get(machine, "cores"));
    if (host && cpu)
        buf_format(&names, "%s%s, %.0f core%s", names.len ? "; " : "", cpu, cores,
                   figure_plural(cores));
    if (names.len)
        figure_say(f, "Machine: %s.", names.data);
    free(cpu);
    buf_free(&names);
    json_decref(on);
}

/* Adds the end of every caption: intervals, numbers of values, machine, date, version. */
static void say_facts(struct figure *f, const struct runset *s)
{
    if (isfinite(f->level))
        figure_say(f, "Error bars and brackets: %.0f %% intervals%s%s%s.", 100 * f->level,
                   *f->method ? " (" : "", f->method, *f->method ? ")" : "");
    if (f->leaves && isfinite(f->level))
        figure_say(f, "An error bar that leaves the frame reaches zero, because launches are too "
                      "few.");
    if (f->disturbed)
        figure_say(f, "Hollow points have no interval, because other work ran on the machine "
                      "whenever they were timed.");
    say_range(f, "Values per point", f->n_lo, f->n_hi);
    say_range(f, "Launches", f->launches_lo, f->launches_hi);
    say_machine(f, s);
    if (meta_text(s, "start"))
        figure_say(f, "Date: %.10s.", meta_text(s, "start"));
    if (meta_text(s, "commit"))
        figure_say(f, "Commit: %s.", meta_text(s, "commit"));
    if (s->set_aside)
        figure_say(f, "%lld configurations were measured on several sets of prompts; the figure "
                      "shows the largest set.",
                   (long long)s->set_aside);
    if (f->script.skipped)
        figure_say(f, "Values left out, because they are missing or outside the axis: %lld.",
                   (long long)f->script.skipped);
}

void figure_build(struct figure *f, const struct figure_type *t, const struct runset *s,
                  const struct figure_request *q)
{
    *f = (struct figure){.n_lo = (double)NAN, .n_hi = (double)NAN, .launches_lo = (double)NAN,
                         .launches_hi = (double)NAN, .level = (double)NAN};
    if (q->title)
        figure_say(f, "%s.", q->title);
    t->build(f, s, q);
    if (!f->script.points) {
        buf_clear(&f->caption);
        figure_say(f, "No data: no record has a value for a figure of type %s%s%s.", t->name,
                   f->why ? ": " : "", f->why ? f->why : "");
        int64_t skipped = f->script.skipped;
        script_free(&f->script);
        f->script = (struct script){.skipped = skipped};
        script_text(&f->script, "figure_type", t->name);
        script_text(&f->script, "why", f->why ? f->why : "");
    }
    script_tips_end(&f->script);
    say_facts(f, s);
}

void figure_free(struct figure *f)
{
    script_free(&f->script);
    buf_free(&f->caption);
}
