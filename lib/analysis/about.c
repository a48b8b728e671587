/* about.c - see about.h. The identity of a point is made of all settings that count. Two records
 * are of one point exactly if these are equal. The label and the workload of a record describe its
 * point; they are not part of the identity. */
#include "lib/analysis/about.h"

#include <math.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"
#include "lib/setting/engine_facts.h"
#include "lib/setting/system.h"

static const char *const models[] = {"model", "arch", "stack", "paradigm", "draft_model",
                                     "latent_file", "option", "weights",
                                     "draft_weights", "prior_weights", "conditions", NULL};

/* Options of score-ppl that identify a point when it scores given texts. */
static const char *const scoring[] = {"mode", "target", "elbo_samples", "kstep_orders", "prior",
                                      NULL};

/* Fields beside the settings: names of a point, and units of its numbers. */
static const char *const labels[] = {"config", "point", "axis", "series", "workload", "prompts",
                                     "weights_random", "flops_unit", "tokenizer", "draft_arch",
                                     NULL};

static void copy(json_t *to, const json_t *from, const char *key, int nulls)
{
    json_t *v = json_object_get(from, key), *had = json_object_get(to, key);
    if (v && (nulls || !json_is_null(v)) && (!had || json_is_null(had)))
        json_object_set(to, key, v);
}

static void copy_all(json_t *to, const json_t *from, const char *const *keys, int nulls)
{
    for (; *keys; keys++)
        copy(to, from, *keys, nulls);
}

static void copy_settings(json_t *to, const json_t *from, int nulls)
{
    copy_all(to, from, models, nulls);
    for (const struct engine_fact *f = engine_facts; f->name; f++)
        copy(to, from, f->name, nulls);
    copy_all(to, from, scoring, 0);
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            copy(to, from, systems[d]->row[i].name, nulls);
}

static size_t put_names(const char **to, const char *const *from)
{
    size_t n = 0;
    for (; from[n]; n++)
        to[n] = from[n];
    return n;
}

const char **about_names(void)
{
    const char *const *const lists[] = {labels, models, scoring};
    size_t n = 1, at = 0;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; lists[k][i]; i++)
            n++;
    for (size_t d = 0; systems[d]; d++)
        n += systems[d]->n;
    for (const struct engine_fact *f = engine_facts; f->name; f++)
        n++;
    const char **all = mem_zero(n, sizeof *all);
    for (const struct engine_fact *f = engine_facts; f->name; f++)
        all[at++] = f->name;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        at += put_names(all + at, lists[k]);
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            all[at++] = systems[d]->row[i].name;
    return all;
}

json_t *about_of(const json_t *r)
{
    json_t *s = json_object();
    copy_settings(s, r, 0);
    return s;
}

void about_add(json_t *about, const json_t *r)
{
    copy_all(about, r, labels, 1);
    copy_settings(about, r, 1);
}

json_t *about_carried(const json_t *r)
{
    json_t *s = json_object();
    about_add(s, r);
    return s;
}

void about_identify(json_t *r, const char *axis)
{
    char point[SETTINGS_ID], series[SETTINGS_ID];
    json_t *settings = about_of(r);
    settings_id(settings, NULL, point);
    settings_id(settings, axis, series);
    json_decref(settings);
    json_object_set_new(r, "point", json_string(point));
    rec_set_text(r, "axis", axis);
    json_object_set_new(r, "series", json_string(series));
}

/* 1: both have the same value, or both have none. */
static int agrees(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    x = json_is_null(x) ? NULL : x;
    y = json_is_null(y) ? NULL : y;
    return x == y || json_equal(x, y);
}

/* The first key in which they differ, or NULL. */
static const char *first_differing(const json_t *a, const json_t *b, const char *const *keys)
{
    while (*keys && agrees(a, b, *keys))
        keys++;
    return *keys;
}

int about_check(const json_t *about, const json_t *r, struct err *e)
{
    const char *key = first_differing(about, r, models);
    for (const struct engine_fact *f = engine_facts; !key && f->name; f++)
        key = agrees(about, r, f->name) ? NULL : f->name;
    key = key ? key : first_differing(about, r, scoring);
    for (size_t d = 0; !key && systems[d]; d++)
        for (size_t i = 0; !key && i < systems[d]->n; i++)
            if (!agrees(about, r, systems[d]->row[i].name))
                key = systems[d]->row[i].name;
    return key ? err_set(e, EXIT_BAD_DATA, "%s: config '%s' has two values of it", key,
                         rec_text(about, "config"))
               : 0;
}

static int by_number(double p, double q)
{
    return isnan(p) || isnan(q) ? isnan(q) - isnan(p) : (p > q) - (p < q);
}

static double axis_value(const json_t *r)
{
    const char *axis = rec_text(r, "axis");
    return axis ? rec_number(r, axis) : rec_number(r, "steps");
}

int about_order(const json_t *x, const json_t *y)
{
    static const char *const texts[] = {"model", "config", "point", "workload"};
    int order = 0;
    for (size_t i = 0; !order && i < sizeof texts / sizeof *texts; i++) {
        const char *p = rec_text(x, texts[i]), *q = rec_text(y, texts[i]);
        order = strcmp(p ? p : "", q ? q : "");
        if (i == 0 && !order)
            order = by_number(rec_number(x, "batch"), rec_number(y, "batch"));
        if (i == 0 && !order)
            order = by_number(about_length(x), about_length(y));
        if (i == 0 && !order)
            order = by_number(axis_value(x), axis_value(y));
    }
    return order;
}

const char *about_point(const json_t *r)
{
    const char *point = rec_text(r, "point"), *config = rec_text(r, "config");
    return point && *point ? point : config && *config ? config : NULL;
}

const char *about_workload(const json_t *r)
{
    const char *workload = rec_text(r, "workload");
    return workload ? workload : "";
}

int about_other_tokens(const json_t *a, const json_t *b)
{
    const char *x = rec_text(a, "tokenizer"), *y = rec_text(b, "tokenizer");
    return x && y && strcmp(x, y);
}

int about_is_diffusion(const json_t *r)
{
    const char *paradigm = rec_text(r, "paradigm"), *arch = rec_text(r, "arch");
    if (paradigm)
        return about_is_latent(r) ? -1 : strcmp(paradigm, "autoregressive") != 0;
    return !arch ? -1 : !strcmp(arch, "llada") ? 1 : !strcmp(arch, "llama") ? 0 : -1;
}

const char *about_stack(const json_t *r)
{
    const char *stack = rec_text(r, "stack");
    return stack ? stack : "";
}

int about_is_latent(const json_t *r)
{
    const char *paradigm = rec_text(r, "paradigm");
    return paradigm && !strcmp(paradigm, "latent");
}

int about_is_drawn(const json_t *r)
{
    return about_is_latent(r) || rec_number(r, "temperature") > 0 ||
           rec_is(r, "remasking", "random");
}

double about_length(const json_t *r)
{
    double v = NAN;
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            if (isnan(v) && systems[d]->row[i].traits & SETTING_LENGTH)
                v = rec_number(r, systems[d]->row[i].name);
    return v;
}

void about_value(struct buf *b, const json_t *v)
{
    if (json_is_string(v))
        buf_text(b, json_string_value(v));
    else if (json_is_boolean(v))
        buf_text(b, json_is_true(v) ? "on" : "off");
    else if (json_is_number(v))
        buf_format(b, "%.6g", json_number_value(v));
}

const char *about_axis_name(const char *axis)
{
    return axis && strcmp(axis, "steps") ? axis : "denoising steps";
}

/* The fields of a table's settings by default. The caller's reference. */
static json_t *defaults_of(const struct settings_table *t)
{
    const struct settings point = settings_default(t);
    json_t *o = json_object();
    settings_put(&point, o);
    return o;
}

json_t *about_default(const char *setting)
{
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *t = systems[d];
        if (settings_find(t, setting) == t->n)
            continue;
        json_t *o = defaults_of(t), *v = json_incref(json_object_get(o, setting));
        json_decref(o);
        return v;
    }
    for (const struct engine_fact *f = engine_facts; f->name; f++)
        if (!strcmp(setting, f->name))
            return f->standard ? json_loads(f->standard, JSON_DECODE_ANY, NULL) : NULL;
    return strcmp(setting, "prior") ? NULL : json_string("normal"); /* of score-ppl */
}

int about_is_default(const char *setting, const json_t *value)
{
    struct buf b = {0};
    int same = 0;
    buf_text(&b, "");
    about_value(&b, value);
    for (size_t d = 0; systems[d] && !same; d++) {
        const struct settings_table *t = systems[d];
        size_t row = settings_find(t, setting);
        const char *standard = row < t->n ? t->row[row].standard : NULL;
        same = standard && !strcmp(b.data, standard);
    }
    buf_free(&b);
    return same;
}

/* 1: a speed-only setting of the table is not at its default in the record. */
static int departs(const struct settings_table *t, const json_t *r)
{
    json_t *standard = defaults_of(t);
    int does = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct setting *row = &t->row[i];
        int speed = (row->traits & (SETTING_TEXT | SETTING_SPEED | SETTING_SHOWN)) == SETTING_SPEED;
        does |= speed && json_has(r, row->name) && !agrees(standard, r, row->name);
    }
    json_decref(standard);
    return does;
}

int about_is_plain(const json_t *r)
{
    const struct settings_table *t = system_of_record(r);
    return !t || !departs(t, r);
}
