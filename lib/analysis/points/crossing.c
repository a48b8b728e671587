/* crossing.c - see crossing.h. Every record names its axis and its unit, so that a reader need not
 * know how the series was made. A number that does not exist is null with a reason or a side; no
 * value stands in its place. */
#include "lib/analysis/points/crossing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static json_t *side(double value)
{
    return isinf(value) ? json_string(value < 0 ? "below" : "above") : json_null();
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *s)
{
    return s ? json_string(s) : json_null();
}

void crossing_set(json_t *j, const char *key, double value, const char *reason)
{
    if (!isinf(value)) {
        rec_set_number(j, key, value, reason);
        return;
    }
    char *name = mem_format("%s_censored", key);
    json_object_set_new(j, key, json_null());
    json_object_set_new(j, name, side(value));
    free(name);
}

const char *crossing_obstacle(const struct crossing_series *s)
{
    if (s->v->work != POINTS_NONE)
        return NULL;
    for (size_t i = 0; i < s->n; i++)
        if (isnan(s->v[i].passes) && isnan(s->v[i].rows))
            return "the passes of its points were not measured";
    return "all its points do the same work: no computation to read a crossover from";
}

/* Appends the settings in which `rival` differs from `of` (b NULL: appends nothing). Returns how
 * many. */
static int differ(const struct point *of, const struct point *rival, struct buf *b)
{
    static const char *const names[] = {"device", "batch", "length", "contract"};
    const char *mine[] = {of->device, NULL, NULL, of->contract};
    const char *theirs[] = {rival->device, NULL, NULL, rival->contract};
    const double my[] = {0, of->batch, of->length, 0};
    const double other[] = {0, rival->batch, rival->length, 0};
    int n = 0;
    for (int i = 0; i < 4; i++) {
        if (mine[i] ? !strcmp(mine[i], theirs[i])
                    : (isnan(my[i]) && isnan(other[i])) || (my[i] >= other[i] && my[i] <= other[i]))
            continue;
        const char *before = n++ ? "; " : "";
        if (b && mine[i])
            buf_format(b, "%sLLaMA has %s %s, this one %s", before, names[i],
                       *theirs[i] ? theirs[i] : "not said", *mine[i] ? mine[i] : "not said");
        else if (b)
            buf_format(b, "%sLLaMA has %s %.0f, this one %.0f", before, names[i], other[i], my[i]);
    }
    return n;
}

char *crossing_no_rival(const struct points *all, const struct point *of)
{
    const struct point *nearest = NULL;
    struct buf b = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct point *p = &all->v[i];
        if (p->is_rival && (!nearest || differ(of, p, NULL) < differ(of, nearest, NULL)))
            nearest = p;
    }
    if (!nearest)
        buf_text(&b, "no LLaMA is in the input");
    else
        differ(of, nearest, &b);
    char *text = mem_text(b.data);
    buf_free(&b);
    return text;
}

/* The value along the axis of the point measured at `at`; of several points there, that of the
 * first or the last. */
static json_t *value_at(const struct crossing_series *s, double at, int last)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].at >= at && s->v[i].at <= at && (last || !found))
            found = points_value(&s->v[i]);
    return found ? json_incref((json_t *)(uintptr_t)found) : json_null();
}

static json_t *points_of(const struct crossing_series *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n; i++) {
        const json_t *value = points_value(&s->v[i]);
        json_array_append_new(list, json_pack("{s:O?, s:o}", "value", value, "at",
                                              number_or_null(s->v[i].at)));
    }
    return list;
}

/* Sets the members that name the series and the rival. */
static void set_pair(json_t *j, const struct crossing_series *s, const struct point *llama)
{
    static const char *const copy[] = {"device", "batch", "gen_length", "contract"};
    const struct point *llada = s->v;
    json_object_set_new(j, "llada", json_string(llada->model));
    json_object_set_new(j, "llama", text_or_null(llama ? llama->model : NULL));
    json_object_set_new(j, "llama_config", text_or_null(llama ? llama->config : NULL));
    json_object_set_new(j, "llama_point", text_or_null(llama ? llama->id : NULL));
    json_object_set_new(j, "axis", text_or_null(llada->axis));
    json_object_set_new(j, "series", json_string(llada->series));
    json_object_set_new(j, "over", llada->work == POINTS_NONE
                                       ? json_null()
                                       : json_string(points_work_names[llada->work]));
    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        if (json_object_get(llada->about, copy[i]))
            json_object_set(j, copy[i], json_object_get(llada->about, copy[i]));
}

json_t *crossing_record(const struct crossing *c, const struct crossing_series *s,
                        const struct point *llama, double level)
{
    json_t *j = json_pack("{s:s}", "name", c->name);
    set_pair(j, s, llama);
    json_object_set_new(j, "exists", c->exists < 0 ? json_null() : json_boolean(c->exists));
    json_object_set_new(j, "at", number_or_null(c->at));
    json_object_set_new(j, "steps", number_or_null(s->v->work == POINTS_STEPS ? c->at
                                                                             : (double)NAN));
    crossing_set(j, "lo", c->lo, c->interval_reason);
    crossing_set(j, "hi", c->hi, c->interval_reason);
    json_object_set_new(j, "level", json_real(level));
    json_object_set_new(j, "bracket", json_pack("[o, o]", number_or_null(c->below),
                                                number_or_null(c->above)));
    json_object_set_new(j, "bracket_values", json_pack("[o, o]", value_at(s, c->below, 1),
                                                       value_at(s, c->above, 0)));
    json_object_set_new(j, "points", points_of(s));
    json_object_set_new(j, "censored", side(c->at));
    json_object_set_new(j, "probability", number_or_null(c->probability));
    json_object_set_new(j, "probability_below", number_or_null(c->p_below));
    json_object_set_new(j, "probability_above", number_or_null(c->p_above));
    json_object_set_new(j, "method", json_string(c->method));
    json_object_set_new(j, "reason", text_or_null(c->reason));
    return j;
}

static json_t *direction_name(int higher)
{
    return json_string(higher ? "higher" : "lower");
}

json_t *crossing_front(const struct point *p, const struct standing *s, double level)
{
    const char *class = s->share >= 0.95 ? "on" : s->share <= 0.05 ? "off" : "possible";
    const char *why = s->ratio->reason;
    int placed = !isnan(s->ratio->lo);
    json_t *j = json_copy(p->about);
    if (!json_object_get(j, "steps"))
        json_object_set_new(j, "steps", json_null());
    json_object_set_new(j, "axis", text_or_null(p->axis));
    json_object_set_new(j, "series", json_string(p->series));
    rec_set_number(j, "passes", p->passes, "no denoising passes");
    rec_set_number(j, "rows", p->rows, "not measured");
    json_object_set_new(j, "cost_metric", json_string(s->cost_metric));
    json_object_set_new(j, "quality_metric", json_string(s->quality_metric));
    rec_set_number(j, "cost", p->cost, NULL);
    rec_set_number(j, "cost_lo", s->cost_lo, "measured once");
    rec_set_number(j, "cost_hi", s->cost_hi, "measured once");
    json_object_set_new(j, "cost_direction", direction_name(s->cost_higher));
    rec_set_number(j, "quality", s->quality, NULL);
    rec_set_number(j, "quality_lo", s->quality_lo, "n<2");
    rec_set_number(j, "quality_hi", s->quality_hi, "n<2");
    json_object_set_new(j, "quality_direction", direction_name(s->quality_higher));
    json_object_set_new(j, "level", json_real(level));
    json_object_set_new(j, "cost_base", text_or_null(s->base));
    rec_set_number(j, "cost_ratio", s->ratio->value, why);
    rec_set_number(j, "cost_ratio_lo", s->ratio->lo, why);
    rec_set_number(j, "cost_ratio_hi", s->ratio->hi, why);
    rec_set_number(j, "p_front", placed ? s->share : (double)NAN, why);
    json_object_set_new(j, "class", placed ? json_string(class) : json_null());
    json_object_set_new(j, "on_front", placed ? json_boolean(s->on) : json_null());
    json_object_set_new(j, "task", text_or_null(s->task));
    rec_set_int(j, "draws", (int64_t)s->draws);
    rec_set_int(j, "prompts", (int64_t)s->prompts);
    rec_set_int(j, "launches", (int64_t)p->n_launch);
    rec_set_int(j, "excluded_points", (int64_t)s->excluded_points);
    rec_set_int(j, "excluded_prompts", (int64_t)s->excluded_prompts);
    return j;
}

/* Appends the value halfway between the ends of a bracket that is too wide; nothing if there is no
 * bracket or the axis has no numbers. */
static void add_between(json_t *values, const struct crossing_series *s,
                        const struct contest_verdict *v, double octaves)
{
    json_t *a = value_at(s, v->below, 1), *b = value_at(s, v->above, 0);
    if (json_is_number(a) && json_is_number(b) && log2(v->above / v->below) > octaves)
        json_array_append_new(values,
                              json_real((json_number_value(a) + json_number_value(b)) / 2));
    json_decref(a);
    json_decref(b);
}

json_t *crossing_suggest(const struct crossing_series *s, const struct point *llama,
                         const char *quality, const struct contest_result *r,
                         const struct contest_advice *a)
{
    const char *why = "no interval of X_q to narrow";
    json_t *j = json_object(), *values = json_array();
    int over_steps = s->v->work == POINTS_STEPS;
    set_pair(j, s, llama);
    json_object_set_new(j, "quality_metric", text_or_null(quality));
    for (size_t i = 0; i < a->n && over_steps; i++)
        json_array_append_new(values, json_integer((json_int_t)a->steps[i]));
    if (!over_steps) {
        add_between(values, s, &r->lat, a->wanted);
        if (quality)
            add_between(values, s, &r->q, a->wanted);
    }
    json_object_set_new(j, "steps", over_steps ? json_incref(values) : json_null());
    json_object_set_new(j, "values", values);
    if (isfinite(a->prompts) && a->prompts < 1e15)
        rec_set_int(j, "prompts", (int64_t)a->prompts);
    else
        rec_set_number(j, "prompts", (double)NAN, why);
    json_object_set_new(j, "prompts_at_least", json_boolean(a->at_least));
    rec_set_number(j, "octaves", a->octaves, why);
    json_object_set_new(j, "reason", json_string(
        json_array_size(values)  ? "a bracket is open or too wide"
        : a->octaves > a->wanted ? "the interval of X_q is too wide"
                                 : "nothing to add"));
    return j;
}
