/* figure-methods.c - decoding methods side by side: the speed-up over the base of the model and the
 * change of the accuracy, each with its interval. A second mark shows the published speed-up of the
 * method, which was measured with another model on another machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/record/rec.h"

struct method_row {
    const char *name;
    int kind;                 /* 0 LLaDA, 1 LLaMA; selects the colour */
    double speed, lo, hi;     /* speed / speed of the LLaDA base, also for LLaMA */
    double effect, down, up;  /* accuracy, points; NaN */
    double published;         /* speed-up over the published base; NaN */
};

static int is_ratio(const json_t *r)
{
    return rec_is(r, "by", "method") && rec_is(r, "effect", "ratio") &&
           rec_is(r, "metric", "e2e_ns");
}

static int is_llama(const json_t *r)
{
    return rec_is(r, "arch", "llama");
}

/* The largest published speed-up of a method; NaN: none. */
static double published_speedup(const struct runset *s, const char *name)
{
    const json_t *list = runset_kind(s, "method"), *r, *claim;
    double most = NAN;
    size_t i, k;
    json_array_foreach(list, i, r)
        if (rec_is(r, "method", name))
            json_array_foreach(json_object_get(r, "published"), k, claim)
                most = fmax(most, rec_number(claim, "speedup"));
    return most;
}

/* The comparison of the accuracies of the two points of `like`; NULL: none. */
static const json_t *find_effect(const json_t *list, const json_t *like)
{
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
        if (rec_is(r, "effect", "difference") && rec_is(r, "metric", "accuracy") &&
            json_equal(json_object_get(r, "point"), json_object_get(like, "point")) &&
            json_equal(json_object_get(r, "base_point"), json_object_get(like, "base_point")))
            return r;
    return NULL;
}

/* The time of an answer at the base of a system. If no method is compared with LLaMA, the time
 * of its only point. NaN: unknown. */
static double base_time(const struct runset *s, int llama)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (is_ratio(r) && is_llama(r) == llama)
            return rec_number(r, "base_value");
    json_array_foreach(runset_kind(s, "metric"), i, r)
        if (llama && is_llama(r) && rec_is(r, "metric", "e2e_ns"))
            return rec_number(r, "value");
    return NAN;
}

/* The name of the base in its comparisons. If LLaMA has none, its only point is a plain one. */
static const char *base_name(const struct runset *s, int llama)
{
    size_t i;
    const json_t *r;
    json_array_foreach(runset_kind(s, "comparison"), i, r)
        if (is_ratio(r) && is_llama(r) == llama && rec_text(r, "base_setting"))
            return rec_text(r, "base_setting");
    return llama ? "plain" : "the base";
}

static struct method_row row_of(struct figure *f, const struct runset *s, const json_t *list,
                                const json_t *r, double unit)
{
    const json_t *e = find_effect(list, r);
    struct value v = {rec_number(r, "value"), rec_number(r, "lo"), rec_number(r, "hi"), r};
    figure_used(f, &v);
    return (struct method_row){.name = rec_text(r, "setting"), .kind = is_llama(r),
                        .speed = unit / v.at, .lo = unit / v.hi, .hi = unit / v.lo,
                        .effect = 100 * rec_number(e, "value"), .down = 100 * rec_number(e, "lo"),
                        .up = 100 * rec_number(e, "hi"),
                        .published = is_llama(r) ? (double)NAN
                                                 : published_speedup(s, rec_text(r, "setting"))};
}

static int compare_speed(const void *pa, const void *pb)
{
    const struct method_row *a = pa, *b = pb;
    int d = (a->speed > b->speed) - (a->speed < b->speed);
    return d ? d : strcmp(a->name, b->name);
}

/* The rows, the slowest first. The caller frees. */
static struct method_row *find_rows(struct figure *f, const struct runset *s, size_t *n)
{
    const json_t *list = runset_kind(s, "comparison"), *r;
    struct method_row *v = mem_zero(json_array_size(list) + 2, sizeof *v);
    double own = base_time(s, 0), other = base_time(s, 1);
    size_t i;
    *n = 0;
    if (!isnan(own))
        v[(*n)++] = (struct method_row){base_name(s, 0), 0, 1, 1, 1, 0, 0, 0, NAN};
    if (!isnan(own) && !isnan(other))
        v[(*n)++] = (struct method_row){base_name(s, 1), 1, own / other, own / other, own / other,
                                 NAN, NAN, NAN, NAN};
    json_array_foreach(list, i, r)
        if (is_ratio(r) && rec_number(r, "value") > 0 && !isnan(own))
            v[(*n)++] = row_of(f, s, list, r, is_llama(r) ? own / other : 1);
    qsort(v, *n, sizeof *v, compare_speed);
    return v;
}

static void put_tips(struct figure *f, const struct method_row *r, double place, const char *base)
{
    struct buf b = {0};
    buf_format(&b, "%s: %.3g", r->name, r->speed);
    if (r->hi > r->lo)
        buf_format(&b, " [%.3g, %.3g]", r->lo, r->hi);
    buf_format(&b, " times as fast as %s", base);
    if (isfinite(r->effect))
        buf_format(&b, ", accuracy %+.3g", r->effect);
    if (r->up > r->down)
        buf_format(&b, " [%+.3g, %+.3g]", r->down, r->up);
    buf_text(&b, isfinite(r->effect) ? " points" : "");
    figure_tip(f, 1, r->speed, place, NULL, "%s", b.data);
    figure_tip(f, 2, r->effect, place, NULL, "%s", b.data);
    figure_tip(f, 1, r->published, place, NULL, "%s: %.3g times as fast, as published", r->name,
               r->published);
    buf_free(&b);
}

void figure_methods(struct figure *f, const struct runset *s, const struct figure_request *q)
{
    (void)q;
    size_t n;
    struct method_row *v = find_rows(f, s, &n);
    const char **names = mem_zero(n + 1, sizeof *names);
    double *kinds = mem_zero(n + 1, sizeof *kinds);
    double lo = 1, hi = 1, least = 0, most = 0;
    script_table(&f->script, "points",
                 "place kind speedup lo hi accuracy_points points_lo points_hi published");
    for (size_t i = 0; i < n; i++) {
        const struct method_row *r = &v[i];
        names[i] = r->name;
        kinds[i] = r->kind;
        lo = fmin(lo, isnan(r->lo) ? r->speed : r->lo);
        hi = fmax(hi, fmax(isnan(r->hi) ? r->speed : r->hi, r->published));
        least = fmin(least, r->down);
        most = fmax(most, r->up);
        script_row(&f->script, "nnnnnnnnn", (double)(i + 1), (double)r->kind, r->speed,
                   isnan(r->lo) ? r->speed : r->lo, isnan(r->hi) ? r->speed : r->hi, r->effect,
                   r->down, r->up, r->published);
        put_tips(f, r, (double)(i + 1), base_name(s, 0));
    }
    script_table_end(&f->script);
    script_texts(&f->script, "method_name", names, (int)n);
    script_numbers(&f->script, "method_kind", kinds, (int)n);
    script_number(&f->script, "method_count", (double)n);
    script_number(&f->script, "speed_lo", lo);
    script_number(&f->script, "speed_hi", hi);
    script_number(&f->script, "points_lo", least);
    script_number(&f->script, "points_hi", most);
    figure_say(f, "Decoding methods. Left: speed-up over %s (ratio of end-to-end latencies). "
                  "Right: change of the share of right answers from the base of the model (LLaDA: "
                  "%s; LLaMA: %s), in points. Hollow: the largest published speed-up of the "
                  "method, with another model on another machine.",
               base_name(s, 0), base_name(s, 0), base_name(s, 1));
    if (!n)
        f->why = "no comparison by method";
    free(kinds);
    free(names);
    free(v);
}
