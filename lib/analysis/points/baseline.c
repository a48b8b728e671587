/* baseline.c - see baseline.h. Another value of BY may change further settings: a quantization
 * changes number formats, which the engine chooses, and another model has other weights. So the
 * first choice is a base with all other settings equal. The second choice is a base that differs
 * only in settings that follow from BY. */
#include "lib/analysis/points/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"

/* Settings that follow from BY. */
static const struct follow {
    const char *by, *name; /* by NULL: any */
} follows[] = {{NULL, "dtype"}, {NULL, "kv_dtype"}, {NULL, "library"}, {"model", "weights"},
               {"model", "conditions"}, {"z", "prior_weights"}, {"prior", "prior_weights"},
               {"stack", "model"}, {"stack", "device"}, {"stack", "quant"},
               {"stack", "tokenizer"}, {"stack", "conditions"}};
enum { FOLLOWS = sizeof follows / sizeof *follows };

static int is_for(const struct follow *follow, const char *by)
{
    return !follow->by || !strcmp(follow->by, by);
}

/* The value of --base; if that is not given, the default of BY. NULL: BY has no default. The caller
 * frees. */
static char *find_usual(const char *by, const char *base)
{
    struct buf text = {0};
    json_t *standard = about_default(by);
    if (base || !strcmp(by, "paradigm"))
        buf_text(&text, base ? base : "autoregressive");
    else
        about_value(&text, standard);
    json_decref(standard);
    return text.data;
}

static char *setting_of(const struct baseline *baseline, const struct point *point,
                        const struct method *method)
{
    struct buf text = {0};
    if (baseline->methods->n)
        return method ? methods_name(method, point->about) : mem_text("");
    about_value(&text, json_object_get(point->about, baseline->by));
    return text.data ? text.data : mem_text("");
}

static void learn_side(const struct baseline *baseline, const struct point *point,
                       struct baseline_side *side)
{
    side->method = baseline->methods->n ? methods_of(baseline->methods, point->about) : NULL;
    side->setting = setting_of(baseline, point, side->method);
    side->is_base = baseline->methods->n
                        ? methods_is_base(baseline->methods, side->method)
                        : !*side->setting ||
                              (baseline->usual && !strcmp(side->setting, baseline->usual));
    json_t *settings = about_of(point->about);
    settings_id(settings, baseline->by, side->rest[0]);
    for (size_t i = 0; i < FOLLOWS; i++)
        if (is_for(&follows[i], baseline->by))
            json_object_del(settings, follows[i].name);
    settings_id(settings, baseline->by, side->rest[1]);
    json_decref(settings);
}

void baseline_open(struct baseline *baseline, const struct points *points,
                   const struct methods *methods, const char *by, const char *base)
{
    *baseline = (struct baseline){points, methods, by, find_usual(by, base),
                                  mem_zero(points->n, sizeof *baseline->side)};
    for (size_t i = 0; i < points->n; i++)
        learn_side(baseline, &points->v[i], &baseline->side[i]);
}

void baseline_free(struct baseline *baseline)
{
    for (size_t i = 0; baseline->side && i < baseline->points->n; i++)
        free(baseline->side[i].setting);
    free(baseline->side);
    free(baseline->usual);
    *baseline = (struct baseline){0};
}

const struct baseline_side *baseline_side(const struct baseline *baseline,
                                          const struct point *point)
{
    return &baseline->side[point - baseline->points->v];
}

/* 1: the point has the same prompts as `of`, or `any` is 1. */
static int has_prompts_of(const struct point *point, const struct point *of, int any)
{
    return any || !strcmp(point->workload, of->workload);
}

/* For BY "paradigm" or "method": the base with the best points_rank(), in the same group and on the
 * same prompts; for a method also of the same model. */
static const struct point *find_rival(const struct baseline *baseline, const struct point *of,
                                      int any)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < baseline->points->n; i++) {
        const struct point *point = &baseline->points->v[i];
        if (baseline->side[i].is_base && points_same_place(point, of) &&
            has_prompts_of(point, of, any) &&
            (!baseline->methods->n || !strcmp(point->model, of->model)) &&
            (!best || points_rank(of, point) < points_rank(of, best)))
            best = point;
    }
    return best;
}

/* For BY "option" (make ablation): the point of the same system without options, on the same
 * prompts. An option may change any setting. */
static const struct point *find_without(const struct baseline *baseline, const struct point *of,
                                        int any)
{
    static const char *const same[] = {"arch", "mode", "target"};
    for (size_t i = 0; i < baseline->points->n; i++) {
        const struct point *point = &baseline->points->v[i];
        int fits = baseline->side[i].is_base && has_prompts_of(point, of, any);
        for (size_t k = 0; k < sizeof same / sizeof *same && fits; k++) {
            const char *mine = rec_text(point->about, same[k]),
                       *theirs = rec_text(of->about, same[k]);
            fits = mine && theirs ? !strcmp(mine, theirs) : mine == theirs;
        }
        if (fits)
            return point;
    }
    return NULL;
}

/* For BY "stack": a plain autoregressive point of this engine with the same prompts, contract and
 * length, whose batch is as large as the server's number of requests in flight. A point with the
 * same model name is preferred. The ratio then compares two programs. */
static const struct point *find_ours(const struct baseline *baseline, const struct point *of,
                                     int any)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < baseline->points->n; i++) {
        const struct point *point = &baseline->points->v[i];
        const int alike = !strcmp(point->model, of->model);
        if (!baseline->side[i].is_base || !point->is_rival || !point->is_plain ||
            !has_prompts_of(point, of, any) || strcmp(point->contract, of->contract) ||
            !(point->batch <= of->batch && point->batch >= of->batch) ||
            !(point->length <= of->length && point->length >= of->length))
            continue;
        if (!best || (alike && strcmp(best->model, of->model)))
            best = point;
    }
    return best;
}

/* If `any` is 1, the prompts may differ. */
static const struct point *find(const struct baseline *baseline, const struct point *of, int any)
{
    if (!strcmp(baseline->by, "paradigm") || baseline->methods->n)
        return find_rival(baseline, of, any);
    if (!strcmp(baseline->by, "option"))
        return find_without(baseline, of, any);
    if (!strcmp(baseline->by, "stack"))
        return find_ours(baseline, of, any);
    for (int lenient = 0; lenient < 2; lenient++)
        for (size_t i = 0; i < baseline->points->n; i++)
            if (baseline->side[i].is_base &&
                (any ||
                 !about_other_prompts(baseline->points->v[i].workload, of->workload)) &&
                !strcmp(baseline->side[i].rest[lenient],
                        baseline_side(baseline, of)->rest[lenient]))
                return &baseline->points->v[i];
    return NULL;
}

const struct point *baseline_find(const struct baseline *baseline, const struct point *of)
{
    return find(baseline, of, 0);
}

const struct point *baseline_elsewhere(const struct baseline *baseline, const struct point *of)
{
    const struct point *base = find(baseline, of, 1);
    return base && about_other_prompts(base->workload, of->workload) ? base : NULL;
}

json_t *baseline_also(const struct baseline *baseline, const struct point *base,
                      const struct point *point)
{
    json_t *list = json_array();
    for (size_t i = 0; i < FOLLOWS; i++) {
        const char *name = follows[i].name;
        json_t *x = json_object_get(point->about, name);
        json_t *y = json_object_get(base->about, name);
        int same = (!x || json_is_null(x)) ? !y || json_is_null(y) : json_equal(x, y);
        if (!same && is_for(&follows[i], baseline->by) && strcmp(name, baseline->by))
            json_array_append_new(list, json_string(name));
    }
    return list;
}
