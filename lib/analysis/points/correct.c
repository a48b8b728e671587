/* correct.c - see correct.h. Value = the metric record's value / the accuracy. Each bootstrap draw
 * resamples the launches for the one and the prompts for the other. A draw without a right answer
 * is infinitely expensive: an interval that reaches it has no upper end.
 */
#include "lib/analysis/points/correct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/rec.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/pooled.h"

int correct_take(struct correct *c, const json_t *r, struct err *e)
{
    int is_cost = !strcmp(rec_kind(r), "metric") && rec_is(r, "metric", "energy_j_per_request");
    const char *point = is_cost ? about_point(r) : NULL;
    if (!point)
        return 0;
    if (points_check_cost(r, e))
        return -1;
    if (!c->costs)
        c->costs = json_object();
    char *key = mem_format("%s\n%s", point, about_workload(r));
    json_object_set_new(c->costs, key, json_copy((json_t *)(uintptr_t)r));
    free(key);
    return 0;
}

/* Accuracy of point i as measured and in draw[draws]. Returns its prompts; 0: no accuracy. */
static size_t accuracy_of(const struct points *p, size_t i, uint64_t seed, size_t draws,
                          double *value, double *draw)
{
    size_t ids = p->ids.n, left_out, n = 0;
    unsigned char *there = mem_zero(ids, 1), has = 0;
    double *num = mem_zero(ids, sizeof *num), *den = mem_zero(ids, sizeof *den);
    uint32_t *index = mem_zero(ids, sizeof *index);
    double *work = mem_zero(2 * (ids + 1), sizeof *work);
    points_pool(p, "accuracy", POOLED_BY_PROMPT, i, 1, num, den, there, &has);
    if (has)
        n = pooled_common(num, den, there, &has, 1, ids, &left_out);
    if (n)
        pooled_draws(num, den, &has, 1, n, POOLED_PLAIN, rng_derive(seed, "prompts"), draws, value,
                     draw, index, work);
    free(index);
    free(work);
    free(there);
    free(num);
    free(den);
    return n;
}

/* draw[d] = joules in draw d / draw[d]. The launches of a model have the same draws everywhere. */
static void divide(const json_t *r, uint64_t seed, size_t draws, double *draw)
{
    const json_t *list = json_object_get(r, "launch_values");
    size_t n = json_array_size(list);
    struct launch_value *launch = mem_zero(n, sizeof *launch);
    double *cost = mem_zero(draws, sizeof *cost), *work = mem_zero(n, sizeof *work);
    const char *model = rec_text(r, "model");
    char *stream = mem_format("launch %s", model ? model : "");
    for (size_t i = 0; i < n; i++)
        launch[i] = (struct launch_value){rec_int(json_array_get(list, i), "launch", 0),
                                          rec_number(json_array_get(list, i), "value")};
    bootstrap_cost(rec_number(r, "value"), launch, n, rng_derive(seed, stream), draws, cost, 1,
                   work);
    for (size_t d = 0; d < draws; d++)
        draw[d] = cost[d] / draw[d];
    free(stream);
    free(work);
    free(launch);
    free(cost);
}

/* Why there is no value; NULL: there is one. `right`: the accuracy over n prompts. */
static const char *find_reason(const json_t *r, const struct point *p, size_t n, double right)
{
    const char *said = rec_text(r, "value_reason");
    return isnan(rec_number(r, "value")) ? said ? said : "its cost is not known"
           : p->random                   ? "random weights"
           : !n                          ? "no accuracy of this point"
           : !(right > 0)                ? "no answer is right"
                                         : NULL;
}

/* The record of point i, from the record of its joules. */
static json_t *correct_record(const json_t *r, const struct points *p, size_t i, size_t draws,
                              uint64_t seed, double level)
{
    double right = NAN, *draw = mem_zero(draws, sizeof *draw);
    size_t n = accuracy_of(p, i, seed, draws, &right, draw);
    const char *why = find_reason(r, &p->v[i], n, right), *unsure = rec_text(r, "lo_reason");
    struct interval v = {why ? (double)NAN : rec_number(r, "value") / right, NAN, NAN};
    if (!why && !isnan(rec_number(r, "lo"))) {
        divide(r, seed, draws, draw);
        v = bootstrap_interval(v.value, draw, draws, level);
    }
    free(draw);
    const char *unit = rec_text(r, "unit"), *label = rec_text(r, "label");
    json_t *j = about_carried(r);
    json_object_set_new(j, "metric", json_string("j_per_correct"));
    json_object_set_new(j, "unit", json_string(unit ? unit : ""));
    json_object_set_new(j, "direction", json_string("lower"));
    if (label)
        json_object_set_new(j, "label", json_string(label));
    rec_set_number(j, "value", v.value, why);
    why = why ? why : unsure ? unsure : "a draw has no right answer";
    rec_set_number(j, "lo", v.lo, why);
    rec_set_number(j, "hi", v.hi, why);
    json_object_set_new(j, "level", json_real(level));
    rec_set_int(j, "n", (int64_t)n);
    rec_set_int(j, "launches", rec_int(r, "launches", 0));
    json_object_set_new(j, "method", json_string("launches and prompts resampled"));
    return j;
}

json_t *correct_records(const struct correct *c, const struct points *p, size_t draws,
                        uint64_t seed, double level)
{
    json_t *list = json_array();
    for (size_t i = 0; c->costs && i < p->n; i++) {
        char *key = mem_format("%s\n%s", p->v[i].id, p->v[i].workload);
        const json_t *r = json_object_get(c->costs, key);
        if (r)
            json_array_append_new(list, correct_record(r, p, i, draws, seed, level));
        free(key);
    }
    return list;
}

void correct_free(struct correct *c)
{
    json_decref(c->costs);
}
