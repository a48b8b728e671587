/* crossing.c - see crossing.h. */
#include "lib/analysis/crossing.h"

#include <math.h>
#include <stdlib.h>

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

void crossing_set_pair(json_t *j, const struct point *llada, const struct point *llama)
{
    static const char *const copy[] = {"device", "batch", "gen_length"};
    json_object_set_new(j, "llada", json_string(llada->model));
    json_object_set_new(j, "llama", llama ? json_string(llama->model) : json_null());
    json_object_set_new(j, "llada_series", json_string(llada->series));
    json_object_set_new(j, "llama_config", llama ? json_string(llama->config) : json_null());
    for (size_t i = 0; i < sizeof copy / sizeof *copy; i++)
        if (json_object_get(llada->about, copy[i]))
            json_object_set(j, copy[i], json_object_get(llada->about, copy[i]));
}

json_t *crossing_record(const struct crossing *c, const struct point *llada,
                        const struct point *llama, double level)
{
    json_t *j = json_pack("{s:s}", "name", c->name);
    crossing_set_pair(j, llada, llama);
    json_object_set_new(j, "exists", json_boolean(c->reason == NULL));
    json_object_set_new(j, "steps", number_or_null(c->at));
    crossing_set(j, "lo", c->lo, c->interval_reason);
    crossing_set(j, "hi", c->hi, c->interval_reason);
    json_object_set_new(j, "level", json_real(level));
    json_object_set_new(j, "bracket", json_pack("[o, o]", number_or_null(c->below),
                                                number_or_null(c->above)));
    json_object_set_new(j, "censored", side(c->at));
    json_object_set_new(j, "probability", number_or_null(c->probability));
    json_object_set_new(j, "probability_below", number_or_null(c->p_below));
    json_object_set_new(j, "probability_above", number_or_null(c->p_above));
    json_object_set_new(j, "method", json_string(c->method));
    json_object_set_new(j, "reason", c->reason ? json_string(c->reason) : json_null());
    return j;
}

static json_t *direction(int higher)
{
    return json_string(higher ? "higher" : "lower");
}

json_t *crossing_front(const struct point *p, const struct standing *s, double level)
{
    const char *class = s->share >= 0.95 ? "on" : s->share <= 0.05 ? "off" : "possible";
    json_t *j = json_copy(p->about);
    if (!json_object_get(j, "steps"))
        json_object_set_new(j, "steps", json_null());
    json_object_set_new(j, "cost_metric", json_string(s->cost_metric));
    json_object_set_new(j, "quality_metric", json_string(s->quality_metric));
    rec_set_number(j, "cost", p->cost, NULL);
    rec_set_number(j, "cost_lo", s->cost_lo, "measured once");
    rec_set_number(j, "cost_hi", s->cost_hi, "measured once");
    json_object_set_new(j, "cost_direction", direction(s->cost_higher));
    rec_set_number(j, "quality", s->quality, NULL);
    rec_set_number(j, "quality_lo", s->quality_lo, "n<2");
    rec_set_number(j, "quality_hi", s->quality_hi, "n<2");
    json_object_set_new(j, "quality_direction", direction(s->quality_higher));
    json_object_set_new(j, "level", json_real(level));
    rec_set_number(j, "p_front", s->share, NULL);
    json_object_set_new(j, "class", json_string(class));
    json_object_set_new(j, "on_front", json_boolean(s->on));
    rec_set_int(j, "draws", (int64_t)s->draws);
    rec_set_int(j, "prompts", (int64_t)s->prompts);
    rec_set_int(j, "launches", (int64_t)p->n_launch);
    rec_set_int(j, "excluded_points", (int64_t)s->excluded_points);
    rec_set_int(j, "excluded_prompts", (int64_t)s->excluded_prompts);
    return j;
}

json_t *crossing_suggest(const struct point *llada, const struct point *llama, const char *quality,
                         const double *steps, size_t n, double prompts, double octaves,
                         int at_least)
{
    const char *why = "no interval of X_q to narrow";
    json_t *j = json_object(), *list = json_array();
    crossing_set_pair(j, llada, llama);
    json_object_set_new(j, "quality_metric", quality ? json_string(quality) : json_null());
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer((json_int_t)steps[i]));
    json_object_set_new(j, "steps", list);
    if (isfinite(prompts) && prompts < 1e15)
        rec_set_int(j, "prompts", (int64_t)prompts);
    else
        rec_set_number(j, "prompts", (double)NAN, why);
    json_object_set_new(j, "prompts_at_least", json_boolean(at_least));
    rec_set_number(j, "octaves", octaves, why);
    json_object_set_new(j, "reason", json_string(
        n             ? "a bracket is open or wider than one octave"
        : octaves > 1 ? "the interval of X_q is wider than one octave"
                      : "nothing to add"));
    return j;
}
