/* baseline.c - see baseline.h. A quantization brings other number formats, which the engine
 * chooses, and another model brings its weights. So the first choice is a base with all other
 * settings equal, and the second choice a base that differs only in settings that follow from
 * BY. */
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

static int is_for(const struct follow *f, const char *by)
{
    return !f->by || !strcmp(f->by, by);
}

/* The value of --base, else the default of BY; NULL: it has none. The caller frees. */
static char *find_usual(const char *by, const char *base)
{
    struct buf b = {0};
    json_t *standard = about_default(by);
    if (base || !strcmp(by, "paradigm"))
        buf_text(&b, base ? base : "autoregressive");
    else
        about_value(&b, standard);
    json_decref(standard);
    return b.data;
}

static char *setting_of(const struct baseline *b, const struct point *p, const struct method *m)
{
    struct buf text = {0};
    if (b->methods->n)
        return mem_text(m ? m->name : "");
    about_value(&text, json_object_get(p->about, b->by));
    return text.data ? text.data : mem_text("");
}

static void learn_side(const struct baseline *b, const struct point *p, struct baseline_side *s)
{
    s->method = b->methods->n ? methods_of(b->methods, p->about) : NULL;
    s->setting = setting_of(b, p, s->method);
    s->is_base = b->methods->n ? methods_is_base(b->methods, s->method)
                               : !*s->setting || (b->usual && !strcmp(s->setting, b->usual));
    json_t *settings = about_of(p->about);
    settings_id(settings, b->by, s->rest[0]);
    for (size_t i = 0; i < FOLLOWS; i++)
        if (is_for(&follows[i], b->by))
            json_object_del(settings, follows[i].name);
    settings_id(settings, b->by, s->rest[1]);
    json_decref(settings);
}

void baseline_open(struct baseline *b, const struct points *points, const struct methods *methods,
                   const char *by, const char *base)
{
    *b = (struct baseline){points, methods, by, find_usual(by, base),
                           mem_zero(points->n, sizeof *b->side)};
    for (size_t i = 0; i < points->n; i++)
        learn_side(b, &points->v[i], &b->side[i]);
}

void baseline_free(struct baseline *b)
{
    for (size_t i = 0; b->side && i < b->points->n; i++)
        free(b->side[i].setting);
    free(b->side);
    free(b->usual);
    *b = (struct baseline){0};
}

const struct baseline_side *baseline_side(const struct baseline *b, const struct point *p)
{
    return &b->side[p - b->points->v];
}

/* For BY "paradigm" or "method": the point of best rank with the same work; for a method also
 * of the same model. */
static const struct point *find_rival(const struct baseline *b, const struct point *of)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < b->points->n; i++) {
        const struct point *p = &b->points->v[i];
        if (b->side[i].is_base && points_same_group(p, of) && !strcmp(p->workload, of->workload) &&
            (!b->methods->n || !strcmp(p->model, of->model)) &&
            (!best || points_rank(of, p) < points_rank(of, best)))
            best = p;
    }
    return best;
}

/* For BY "option" (make ablation): the point of the same system without options, on the same
 * prompts. An option may change any setting. */
static const struct point *find_without(const struct baseline *b, const struct point *of)
{
    static const char *const same[] = {"arch", "mode", "target"};
    for (size_t i = 0; i < b->points->n; i++) {
        const struct point *p = &b->points->v[i];
        int fits = b->side[i].is_base && !strcmp(p->workload, of->workload);
        for (size_t k = 0; k < sizeof same / sizeof *same && fits; k++) {
            const char *mine = rec_text(p->about, same[k]), *theirs = rec_text(of->about, same[k]);
            fits = mine && theirs ? !strcmp(mine, theirs) : mine == theirs;
        }
        if (fits)
            return p;
    }
    return NULL;
}

/* For BY "stack": the plain autoregressive point of this engine with the same work, and as many
 * prompts at once as the server had requests in flight; best of the same model. The ratio is one of
 * two programs. */
static const struct point *find_ours(const struct baseline *b, const struct point *of)
{
    const struct point *best = NULL;
    for (size_t i = 0; i < b->points->n; i++) {
        const struct point *p = &b->points->v[i];
        const int alike = !strcmp(p->model, of->model);
        if (!b->side[i].is_base || !p->is_rival || !p->is_plain ||
            strcmp(p->workload, of->workload) || strcmp(p->contract, of->contract) ||
            !(p->batch <= of->batch && p->batch >= of->batch) ||
            !(p->length <= of->length && p->length >= of->length))
            continue;
        if (!best || (alike && strcmp(best->model, of->model)))
            best = p;
    }
    return best;
}

const struct point *baseline_find(const struct baseline *b, const struct point *of)
{
    if (!strcmp(b->by, "paradigm") || b->methods->n)
        return find_rival(b, of);
    if (!strcmp(b->by, "option"))
        return find_without(b, of);
    if (!strcmp(b->by, "stack"))
        return find_ours(b, of);
    for (int lenient = 0; lenient < 2; lenient++)
        for (size_t i = 0; i < b->points->n; i++)
            if (b->side[i].is_base &&
                !strcmp(b->side[i].rest[lenient], baseline_side(b, of)->rest[lenient]))
                return &b->points->v[i];
    return NULL;
}

json_t *baseline_also(const struct baseline *b, const struct point *base,
                      const struct point *point)
{
    json_t *list = json_array();
    for (size_t i = 0; i < FOLLOWS; i++) {
        const char *name = follows[i].name;
        json_t *x = json_object_get(point->about, name);
        json_t *y = json_object_get(base->about, name);
        int same = (!x || json_is_null(x)) ? !y || json_is_null(y) : json_equal(x, y);
        if (!same && is_for(&follows[i], b->by) && strcmp(name, b->by))
            json_array_append_new(list, json_string(name));
    }
    return list;
}
