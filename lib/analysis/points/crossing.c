/* crossing.c - see crossing.h. Every record names its axis and its unit, so that a reader need not
 * know how the series was made. A number that does not exist is null with a reason or a side, never
 * another number. */
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

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
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

const char *crossing_obstacle(const struct crossing_series *series)
{
    if (series->v->work != POINTS_NONE)
        return NULL;
    for (size_t i = 0; i < series->n; i++)
        if (isnan(series->v[i].passes) && isnan(series->v[i].rows))
            return "the passes of the points were not measured";
    return "all points of the series do the same work, so no order gives a crossover";
}

/* Appends the settings in which `rival` differs from `of` (text NULL: appends nothing). Returns the
 * number of these settings. */
static int differ(const struct point *of, const struct point *rival, struct buf *text)
{
    enum { NAMES = 6 };
    static const char *const names[NAMES] = {"device", "batch", "length", "arrival rate",
                                             "contract", "prompts of workload"};
    const char *mine[NAMES] = {[0] = of->device, [4] = of->contract, of->prompts};
    const char *theirs[NAMES] = {[0] = rival->device, [4] = rival->contract,
                                 rival->prompts};
    const double my[NAMES] = {0, of->batch, of->length, of->rate, 0, 0};
    const double other[NAMES] = {0, rival->batch, rival->length, rival->rate, 0, 0};
    int n = 0;
    for (int i = 0; i < NAMES; i++) {
        if (mine[i] ? !strcmp(mine[i], theirs[i])
                    : (isnan(my[i]) && isnan(other[i])) || (my[i] >= other[i] && my[i] <= other[i]))
            continue;
        const char *before = n++ ? "; " : "";
        if (text && mine[i])
            buf_format(text, "%sLLaMA has %s %s, this one %s", before, names[i],
                       *theirs[i] ? theirs[i] : "unknown", *mine[i] ? mine[i] : "unknown");
        else if (text)
            buf_format(text, "%sLLaMA has %s %.15g, this one %.15g", before, names[i], other[i],
                       my[i]);
    }
    return n;
}

char *crossing_no_rival(const struct points *all, const struct point *of)
{
    const struct point *nearest = NULL;
    struct buf buffer = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct point *point = &all->v[i];
        if (point->is_rival && (!nearest || differ(of, point, NULL) < differ(of, nearest, NULL)))
            nearest = point;
    }
    if (!nearest)
        buf_text(&buffer, "no LLaMA is in the input");
    else
        differ(of, nearest, &buffer);
    char *text = mem_text(buffer.data);
    buf_free(&buffer);
    return text;
}

/* The value along the axis of the point at `at`. If several points are there, `last` selects the
 * last of them (1) or the first (0). */
static json_t *value_at(const struct crossing_series *series, double at, int last)
{
    const json_t *found = NULL;
    for (size_t i = 0; i < series->n; i++)
        if (series->v[i].at >= at && series->v[i].at <= at && (last || !found))
            found = points_value(&series->v[i]);
    return found ? json_incref((json_t *)(uintptr_t)found) : json_null();
}

static json_t *points_of(const struct crossing_series *series)
{
    json_t *list = json_array();
    for (size_t i = 0; i < series->n; i++) {
        const json_t *value = points_value(&series->v[i]);
        json_array_append_new(list, json_pack("{s:O?, s:o}", "value", value, "at",
                                              number_or_null(series->v[i].at)));
    }
    return list;
}

/* Sets the members that name the series and the rival. */
static void set_pair(json_t *j, const struct crossing_series *series, const struct point *llama)
{
    static const char *const copy[] = {"device", "batch", "gen_length", "contract"};
    const struct point *llada = series->v;
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
    if (llada->rate > 0)
        json_object_set_new(j, "arrival_rate", json_real(llada->rate));
}

json_t *crossing_record(const struct crossing *crossing, const struct crossing_series *series,
                        const struct point *llama, double level)
{
    json_t *j = json_pack("{s:s}", "name", crossing->name);
    set_pair(j, series, llama);
    json_object_set_new(j, "exists",
                        crossing->exists < 0 ? json_null() : json_boolean(crossing->exists));
    json_object_set_new(j, "at", number_or_null(crossing->at));
    json_object_set_new(j, "steps", number_or_null(series->v->work == POINTS_STEPS ? crossing->at
                                                                                   : (double)NAN));
    crossing_set(j, "lo", crossing->lo, crossing->interval_reason);
    crossing_set(j, "hi", crossing->hi, crossing->interval_reason);
    json_object_set_new(j, "level", json_real(level));
    json_object_set_new(j, "bracket", json_pack("[o, o]", number_or_null(crossing->below),
                                                number_or_null(crossing->above)));
    json_object_set_new(j, "bracket_values", json_pack("[o, o]",
                                                       value_at(series, crossing->below, 1),
                                                       value_at(series, crossing->above, 0)));
    json_object_set_new(j, "points", points_of(series));
    json_object_set_new(j, "censored", side(crossing->at));
    json_object_set_new(j, "probability", number_or_null(crossing->probability));
    json_object_set_new(j, "probability_below", number_or_null(crossing->p_below));
    json_object_set_new(j, "probability_above", number_or_null(crossing->p_above));
    json_object_set_new(j, "method", json_string(crossing->method));
    json_object_set_new(j, "reason", text_or_null(crossing->reason));
    return j;
}

static json_t *direction_name(int higher)
{
    return json_string(higher ? "higher" : "lower");
}

json_t *crossing_front(const struct point *point, const struct standing *standing, double level)
{
    const char *class = standing->share >= 0.95   ? "on"
                        : standing->share <= 0.05 ? "off"
                                                  : "possible";
    const char *why = standing->ratio->reason;
    int placed = !isnan(standing->ratio->lo);
    json_t *j = json_copy(point->about);
    if (!json_object_get(j, "steps"))
        json_object_set_new(j, "steps", json_null());
    json_object_set_new(j, "axis", text_or_null(point->axis));
    json_object_set_new(j, "series", json_string(point->series));
    rec_set_number(j, "passes", point->passes, "no denoising passes");
    rec_set_number(j, "rows", point->rows, "not measured");
    json_object_set_new(j, "cost_metric", json_string(standing->cost_metric));
    json_object_set_new(j, "quality_metric", json_string(standing->quality_metric));
    rec_set_number(j, "cost", point->cost, NULL);
    rec_set_number(j, "cost_lo", standing->cost_lo, "measured once");
    rec_set_number(j, "cost_hi", standing->cost_hi, "measured once");
    json_object_set_new(j, "cost_direction", direction_name(standing->cost_higher));
    rec_set_number(j, "quality", standing->quality, NULL);
    rec_set_number(j, "quality_lo", standing->quality_lo, "n<2");
    rec_set_number(j, "quality_hi", standing->quality_hi, "n<2");
    json_object_set_new(j, "quality_direction", direction_name(standing->quality_higher));
    json_object_set_new(j, "level", json_real(level));
    json_object_set_new(j, "cost_base", text_or_null(standing->base));
    rec_set_number(j, "cost_ratio", standing->ratio->value, why);
    rec_set_number(j, "cost_ratio_lo", standing->ratio->lo, why);
    rec_set_number(j, "cost_ratio_hi", standing->ratio->hi, why);
    rec_set_number(j, "p_front", placed ? standing->share : (double)NAN, why);
    json_object_set_new(j, "class", placed ? json_string(class) : json_null());
    json_object_set_new(j, "on_front", placed ? json_boolean(standing->on) : json_null());
    json_object_set_new(j, "task", text_or_null(standing->task));
    rec_set_int(j, "draws", (int64_t)standing->draws);
    rec_set_int(j, "prompts", (int64_t)standing->prompts);
    rec_set_int(j, "launches", (int64_t)point->n_launch);
    rec_set_int(j, "excluded_points", (int64_t)standing->excluded_points);
    rec_set_int(j, "excluded_prompts", (int64_t)standing->excluded_prompts);
    return j;
}

/* If the bracket is wider than `octaves`, appends the value halfway between its ends. Appends
 * nothing if there is no bracket, or if the values of the axis are no numbers. */
static void add_between(json_t *values, const struct crossing_series *series,
                        const struct contest_verdict *verdict, double octaves)
{
    json_t *low = value_at(series, verdict->below, 1), *high = value_at(series, verdict->above, 0);
    if (json_is_number(low) && json_is_number(high) &&
        log2(verdict->above / verdict->below) > octaves)
        json_array_append_new(values,
                              json_real((json_number_value(low) + json_number_value(high)) / 2));
    json_decref(low);
    json_decref(high);
}

json_t *crossing_suggest(const struct crossing_series *series, const struct point *llama,
                         const char *quality, const struct contest_result *result,
                         const struct contest_advice *advice)
{
    const char *why = "no interval of X_q to narrow";
    json_t *j = json_object(), *values = json_array();
    int over_steps = series->v->work == POINTS_STEPS;
    set_pair(j, series, llama);
    json_object_set_new(j, "quality_metric", text_or_null(quality));
    for (size_t i = 0; i < advice->n && over_steps; i++)
        json_array_append_new(values, json_integer((json_int_t)advice->steps[i]));
    if (!over_steps) {
        add_between(values, series, &result->lat, advice->wanted);
        if (quality)
            add_between(values, series, &result->q, advice->wanted);
    }
    json_object_set_new(j, "steps", over_steps ? json_incref(values) : json_null());
    json_object_set_new(j, "values", values);
    if (isfinite(advice->prompts) && advice->prompts < 1e15)
        rec_set_int(j, "prompts", (int64_t)advice->prompts);
    else
        rec_set_number(j, "prompts", (double)NAN, why);
    json_object_set_new(j, "prompts_at_least", json_boolean(advice->at_least));
    rec_set_number(j, "octaves", advice->octaves, why);
    json_object_set_new(j, "reason", json_string(
        json_array_size(values)            ? "a bracket is open or too wide"
        : advice->octaves > advice->wanted ? "the interval of X_q is too wide"
                                           : "nothing to add"));
    return j;
}
