/* figure-methods.c - draws decoding methods side by side: the speed-up over the base of LLaDA and
 * the change of the accuracy from the base of the model, each with its interval. A second mark
 * shows the published speed-up of the method, which was measured with another model on another
 * machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"
#include "lib/setting/methods.h"

struct method_row {
    const char *name, *method; /* method: gives the look (style.gp) */
    int kind;                 /* 0: LLaDA, 1: LLaMA; selects the colour */
    double speed, lo, hi;     /* speed / speed of the LLaDA base, also for LLaMA */
    double effect, down, up;  /* change of the accuracy and its interval, points; NaN: unknown */
    double published;         /* speed-up over the published base; NaN: unknown */
};

static int is_ratio(const json_t *record)
{
    return rec_is(record, "by", "method") && rec_is(record, "effect", "ratio") &&
           rec_is(record, "metric", "e2e_ns");
}

static int is_llama(const json_t *record)
{
    return rec_is(record, "arch", "llama");
}

/* The largest published speed-up of a method; NaN: none. */
static double published_speedup(const struct method *method)
{
    const json_t *claim;
    double most = NAN;
    size_t k;
    json_array_foreach(method ? json_object_get(method->record, "published") : NULL, k, claim)
        most = fmax(most, rec_number(claim, "speedup"));
    return most;
}

/* The comparison record of the accuracies of the two points that `like` compares; NULL: none. */
static const json_t *find_effect(const json_t *list, const json_t *like)
{
    size_t i;
    const json_t *record;
    json_array_foreach(list, i, record)
        if (rec_is(record, "effect", "difference") && rec_is(record, "metric", "accuracy") &&
            json_equal(json_object_get(record, "point"), json_object_get(like, "point")) &&
            json_equal(json_object_get(record, "base_point"), json_object_get(like, "base_point")))
            return record;
    return NULL;
}

/* The time of an answer at the base of LLaDA (llama 0) or LLaMA (1), ns. If no LLaMA method was
 * compared, the time of the only LLaMA point. NaN: unknown. */
static double base_time(const struct runset *set, int llama)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (is_ratio(record) && is_llama(record) == llama)
            return rec_number(record, "base_value");
    json_array_foreach(runset_kind(set, "metric"), i, record)
        if (llama && is_llama(record) && rec_is(record, "metric", "e2e_ns"))
            return rec_number(record, "value");
    return NAN;
}

/* The name of the base in the comparison records. If LLaMA has no such record, its only point is a
 * plain one. */
static const char *base_name(const struct runset *set, int llama)
{
    size_t i;
    const json_t *record;
    json_array_foreach(runset_kind(set, "comparison"), i, record)
        if (is_ratio(record) && is_llama(record) == llama && rec_text(record, "base_setting"))
            return rec_text(record, "base_setting");
    return llama ? "plain" : "the base";
}

static struct method_row row_of(struct figure *figure, const struct methods *methods,
                                const json_t *list, const json_t *record, double unit)
{
    const json_t *e = find_effect(list, record);
    struct value value = {rec_number(record, "value"), rec_number(record, "lo"),
                          rec_number(record, "hi"), record};
    figure_used(figure, &value);
    return (struct method_row){
        .name = rec_text(record, "setting"),
        .kind = is_llama(record),
        .speed = unit / value.at,
        .lo = unit / value.hi,
        .hi = unit / value.lo,
        .effect = 100 * rec_number(e, "value"),
        .down = 100 * rec_number(e, "lo"),
        .up = 100 * rec_number(e, "hi"),
        .published = is_llama(record) ? (double)NAN
                                      : published_speedup(methods_named(
                                            methods, rec_text(record, "setting")))};
}

static int compare_speed(const void *pa, const void *pb)
{
    const struct method_row *a = pa, *b = pb;
    int d = (a->speed > b->speed) - (a->speed < b->speed);
    return d ? d : strcmp(a->name, b->name);
}

/* The rows of the figure, the slowest first: bases and compared methods. The caller frees. Without
 * a method record of its name, a row has its name as its method. */
static struct method_row *find_rows(struct figure *figure, const struct runset *set, size_t *n)
{
    struct methods methods;
    const json_t *list = runset_kind(set, "comparison"), *record;
    struct method_row *row = mem_zero(json_array_size(list) + 2, sizeof *row);
    double own = base_time(set, 0), other = base_time(set, 1);
    size_t i;
    *n = 0;
    methods_gather(&methods, runset_kind(set, "method"));
    if (!isnan(own))
        row[(*n)++] = (struct method_row){base_name(set, 0), NULL, 0, 1, 1, 1, 0, 0, 0, NAN};
    if (!isnan(own) && !isnan(other))
        row[(*n)++] = (struct method_row){base_name(set, 1), NULL, 1, own / other, own / other,
                                          own / other, NAN, NAN, NAN, NAN};
    json_array_foreach(list, i, record)
        if (is_ratio(record) && rec_number(record, "value") > 0 && !isnan(own))
            row[(*n)++] = row_of(figure, &methods, list, record,
                                 is_llama(record) ? own / other : 1);
    for (size_t k = 0; k < *n; k++) {
        const struct method *method = methods_named(&methods, row[k].name);
        row[k].method = method ? method->name : row[k].name;
    }
    methods_free(&methods); /* the texts are of records, which the run has too */
    qsort(row, *n, sizeof *row, compare_speed);
    return row;
}

static void put_tips(struct figure *figure, const struct method_row *row, double place,
                     const char *base)
{
    struct buf text = {0};
    buf_format(&text, "%s: %.3g", row->name, row->speed);
    if (row->hi > row->lo)
        buf_format(&text, " [%.3g, %.3g]", row->lo, row->hi);
    buf_format(&text, " times as fast as %s", base);
    if (isfinite(row->effect))
        buf_format(&text, ", accuracy %+.3g", row->effect);
    if (row->up > row->down)
        buf_format(&text, " [%+.3g, %+.3g]", row->down, row->up);
    buf_text(&text, isfinite(row->effect) ? " points" : "");
    figure_tip(figure, 1, row->speed, place, NULL, "%s", text.data);
    figure_tip(figure, 2, row->effect, place, NULL, "%s", text.data);
    figure_tip(figure, 1, row->published, place, NULL, "%s: %.3g times as fast, as published",
               row->name, row->published);
    buf_free(&text);
}

void figure_methods(struct figure *figure, const struct runset *set,
                    const struct figure_request *request)
{
    (void)request;
    size_t n;
    struct method_row *rows = find_rows(figure, set, &n);
    const char **names = mem_zero(n + 1, sizeof *names);
    const char **methods = mem_zero(n + 1, sizeof *methods);
    double *kinds = mem_zero(n + 1, sizeof *kinds);
    double lo = 1, hi = 1, least = 0, most = 0;
    script_table(&figure->script, "points",
                 "place kind speedup lo hi accuracy_points points_lo points_hi published");
    for (size_t i = 0; i < n; i++) {
        const struct method_row *row = &rows[i];
        names[i] = row->name;
        methods[i] = row->method;
        kinds[i] = row->kind;
        lo = fmin(lo, isnan(row->lo) ? row->speed : row->lo);
        hi = fmax(hi, fmax(isnan(row->hi) ? row->speed : row->hi, row->published));
        least = fmin(least, row->down);
        most = fmax(most, row->up);
        script_row(&figure->script, "nnnnnnnnn", (double)(i + 1), (double)row->kind, row->speed,
                   isnan(row->lo) ? row->speed : row->lo, isnan(row->hi) ? row->speed : row->hi,
                   row->effect, row->down, row->up, row->published);
        put_tips(figure, row, (double)(i + 1), base_name(set, 0));
    }
    script_table_end(&figure->script);
    script_texts(&figure->script, "method_name", names, (int)n);
    script_texts(&figure->script, "method_own", methods, (int)n);
    script_numbers(&figure->script, "method_kind", kinds, (int)n);
    script_number(&figure->script, "method_count", (double)n);
    script_number(&figure->script, "speed_lo", lo);
    script_number(&figure->script, "speed_hi", hi);
    script_number(&figure->script, "points_lo", least);
    script_number(&figure->script, "points_hi", most);
    figure_say(figure,
               "Decoding methods. Left: speed-up over %s (ratio of end-to-end latencies). "
               "Right: change of the share of right answers from the base of the model (LLaDA: "
               "%s; LLaMA: %s), in points. Hollow: the largest published speed-up of the "
               "method, with another model on another machine.",
               base_name(set, 0), base_name(set, 0), base_name(set, 1));
    if (!n)
        figure->why = "no comparison by method";
    free(kinds);
    free(methods);
    free(names);
    free(rows);
}
