/* about.c - see about.h. The identity of a point is made from all settings that have an effect. Two
 * records belong to one point exactly if these settings are equal. The label and the workload of a
 * record describe its point and are not part of the identity. */
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
    json_t *value = json_object_get(from, key), *had = json_object_get(to, key);
    if (value && (nulls || !json_is_null(value)) && (!had || json_is_null(had)))
        json_object_set(to, key, value);
}

static void copy_all(json_t *to, const json_t *from, const char *const *keys, int nulls)
{
    for (; *keys; keys++)
        copy(to, from, *keys, nulls);
}

static void copy_settings(json_t *to, const json_t *from, int nulls)
{
    copy_all(to, from, models, nulls);
    for (const struct engine_fact *fact = engine_facts; fact->name; fact++)
        copy(to, from, fact->name, nulls);
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
    for (size_t system = 0; systems[system]; system++)
        n += systems[system]->n;
    for (const struct engine_fact *fact = engine_facts; fact->name; fact++)
        n++;
    const char **all = mem_zero(n, sizeof *all);
    for (const struct engine_fact *fact = engine_facts; fact->name; fact++)
        all[at++] = fact->name;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        at += put_names(all + at, lists[k]);
    for (size_t system = 0; systems[system]; system++)
        for (size_t i = 0; i < systems[system]->n; i++)
            all[at++] = systems[system]->row[i].name;
    return all;
}

json_t *about_of(const json_t *record)
{
    json_t *s = json_object();
    copy_settings(s, record, 0);
    return s;
}

void about_add(json_t *about, const json_t *record)
{
    copy_all(about, record, labels, 1);
    copy_settings(about, record, 1);
}

json_t *about_carried(const json_t *record)
{
    json_t *s = json_object();
    about_add(s, record);
    return s;
}

void about_identify(json_t *record, const char *axis)
{
    char point[SETTINGS_ID], series[SETTINGS_ID];
    json_t *settings = about_of(record);
    settings_id(settings, NULL, point);
    settings_id(settings, axis, series);
    json_decref(settings);
    json_object_set_new(record, "point", json_string(point));
    rec_set_text(record, "axis", axis);
    json_object_set_new(record, "series", json_string(series));
}

/* 1: both have the same value, or both have none. Numbers are compared by value, because programs
 * that rewrite records may write 0.0 as 0. */
static int agrees(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    x = json_is_null(x) ? NULL : x;
    y = json_is_null(y) ? NULL : y;
    if (json_is_number(x) && json_is_number(y))
        return json_number_value(x) == json_number_value(y);
    return x == y || json_equal(x, y);
}

/* The first key in which both records differ, or NULL. */
static const char *first_differing(const json_t *a, const json_t *b, const char *const *keys)
{
    while (*keys && agrees(a, b, *keys))
        keys++;
    return *keys;
}

const char *about_difference(const json_t *about, const json_t *record)
{
    static const char *const facts[] = {"series", "tokenizer", "weights_random", NULL};
    const char *key = first_differing(about, record, models);
    for (const struct engine_fact *fact = engine_facts; !key && fact->name; fact++)
        key = agrees(about, record, fact->name) ? NULL : fact->name;
    key = key ? key : first_differing(about, record, scoring);
    for (size_t system = 0; !key && systems[system]; system++)
        for (size_t i = 0; !key && i < systems[system]->n; i++)
            if (!agrees(about, record, systems[system]->row[i].name))
                key = systems[system]->row[i].name;
    for (size_t i = 0; !key && facts[i]; i++)
        if (json_has(about, facts[i]) && json_has(record, facts[i]) &&
            !agrees(about, record, facts[i]))
            key = facts[i];
    return key;
}

/* Returns -1 if the value fits no row of this name. *e is then the message about the first row. */
static int check_value(const char *name, const json_t *value, const char *where, struct err *e)
{
    struct err first = {0};
    for (size_t system = 0; systems[system]; system++) {
        const struct settings_table *table = systems[system];
        const size_t row = settings_find(table, name);
        if (row < table->n && !settings_check_member(&table->row[row], value, where, &first))
            return 0;
    }
    return err_set(e, first.code, "%s", first.text);
}

int about_check(const json_t *record, const char *where, struct err *e)
{
    for (size_t system = 0; systems[system]; system++)
        for (size_t i = 0; i < systems[system]->n; i++) {
            const char *name = systems[system]->row[i].name;
            const json_t *value = json_object_get(record, name);
            if (value && !json_is_null(value) && check_value(name, value, where, e))
                return -1;
        }
    return 0;
}

static int by_number(double p, double q)
{
    return isnan(p) || isnan(q) ? isnan(q) - isnan(p) : (p > q) - (p < q);
}

static double axis_value(const json_t *record)
{
    const char *axis = rec_text(record, "axis");
    return axis ? rec_number(record, axis) : rec_number(record, "steps");
}

int about_order(const json_t *first, const json_t *second)
{
    static const char *const texts[] = {"model", "config", "point", "workload"};
    int order = 0;
    for (size_t i = 0; !order && i < sizeof texts / sizeof *texts; i++) {
        const char *one = rec_text(first, texts[i]), *other = rec_text(second, texts[i]);
        order = strcmp(one ? one : "", other ? other : "");
        if (i == 0 && !order)
            order = by_number(rec_number(first, "batch"), rec_number(second, "batch"));
        if (i == 0 && !order)
            order = by_number(about_length(first), about_length(second));
        if (i == 0 && !order)
            order = by_number(axis_value(first), axis_value(second));
    }
    return order;
}

const char *about_point(const json_t *record)
{
    const char *point = rec_text(record, "point"), *config = rec_text(record, "config");
    return point && *point ? point : config && *config ? config : NULL;
}

const char *about_workload(const json_t *record)
{
    const char *workload = rec_text(record, "workload");
    return workload ? workload : "";
}

int about_other_prompts(const char *a, const char *b)
{
    return *a && *b && strcmp(a, b);
}

int about_other_tokens(const json_t *a, const json_t *b)
{
    const char *x = rec_text(a, "tokenizer"), *y = rec_text(b, "tokenizer");
    return x && y && strcmp(x, y);
}

int about_same_system(const json_t *a, const json_t *b)
{
    static const char *const keys[] = {"model", "dtype", "quant"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *one = rec_text(a, keys[i]), *other = rec_text(b, keys[i]);
        if (strcmp(one ? one : "", other ? other : "") != 0)
            return 0;
    }
    return 1;
}

/* The text after "chat=" in the conditions of a point, *n bytes of it; 0: no template. */
static const char *template_of(const json_t *about, size_t *n)
{
    static const char word[] = "chat=";
    const char *conditions = rec_text(about, "conditions"),
               *at = conditions ? strstr(conditions, word) : NULL;
    at = at ? at + strlen(word) : "";
    *n = strcspn(at, " ");
    return at;
}

int about_same_template(const json_t *a, const json_t *b)
{
    size_t n, m;
    const char *one = template_of(a, &n), *other = template_of(b, &m);
    return n == m && !memcmp(one, other, n);
}

int about_is_diffusion(const json_t *record)
{
    const char *paradigm = rec_text(record, "paradigm"), *arch = rec_text(record, "arch");
    if (paradigm)
        return about_is_latent(record) ? -1 : strcmp(paradigm, "autoregressive") != 0;
    return !arch ? -1 : !strcmp(arch, "llada") ? 1 : !strcmp(arch, "llama") ? 0 : -1;
}

const char *about_stack(const json_t *record)
{
    const char *stack = rec_text(record, "stack");
    return stack ? stack : "";
}

int about_is_latent(const json_t *record)
{
    const char *paradigm = rec_text(record, "paradigm");
    return paradigm && !strcmp(paradigm, "latent");
}

int about_is_drawn(const json_t *record)
{
    return about_is_latent(record) || rec_number(record, "temperature") > 0 ||
           rec_is(record, "remasking", "random");
}

double about_length(const json_t *record)
{
    double v = NAN;
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            if (isnan(v) && systems[d]->row[i].traits & SETTING_LENGTH)
                v = rec_number(record, systems[d]->row[i].name);
    return v;
}

void about_value(struct buf *text, const json_t *value)
{
    if (json_is_string(value))
        buf_text(text, json_string_value(value));
    else if (json_is_boolean(value))
        buf_text(text, json_is_true(value) ? "on" : "off");
    else if (json_is_number(value))
        buf_format(text, "%.6g", json_number_value(value));
}

const char *about_axis_name(const char *axis)
{
    return axis && strcmp(axis, "steps") ? axis : "denoising steps";
}

/* The record fields of a table's settings when all have their defaults. The caller's reference. */
static json_t *defaults_of(const struct settings_table *table)
{
    const struct settings point = settings_default(table);
    json_t *object = json_object();
    settings_put(&point, object);
    return object;
}

json_t *about_default(const char *setting)
{
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *table = systems[d];
        if (settings_find(table, setting) == table->n)
            continue;
        json_t *object = defaults_of(table), *value = json_incref(json_object_get(object, setting));
        json_decref(object);
        return value;
    }
    for (const struct engine_fact *fact = engine_facts; fact->name; fact++)
        if (!strcmp(setting, fact->name))
            return fact->standard ? json_loads(fact->standard, JSON_DECODE_ANY, NULL) : NULL;
    return strcmp(setting, "prior") ? NULL : json_string("normal"); /* score-ppl has no table */
}

int about_is_default(const json_t *record, const char *setting, const json_t *value)
{
    const struct settings_table *table = system_of_record(record);
    const size_t row = table ? settings_find(table, setting) : 0;
    const char *standard = table && row < table->n ? table->row[row].standard : NULL;
    struct buf text = {0};
    buf_text(&text, "");
    about_value(&text, value);
    const int same = standard && !strcmp(text.data, standard);
    buf_free(&text);
    return same;
}

/* 1: the setting is a size of the load and not a choice of the decoder: a size of the experiment,
 * or the arrival rate and admit=continuous, which arriving prompts need. */
static int is_load(const struct setting *row, const json_t *record)
{
    return row->traits & SETTING_SHOWN ||
           (rec_number(record, "arrival_rate") > 0 &&
            (!strcmp(row->name, "arrival_rate") || !strcmp(row->name, "admit")));
}

/* Returns 1 if the record has a setting that changes only speed and is not at its default. Appends
 * each such setting that is not null to text. text may be NULL. */
static int departs(const struct settings_table *table, const json_t *record, struct buf *text)
{
    json_t *standard = defaults_of(table);
    int does = 0;
    for (size_t i = 0; i < table->n; i++) {
        const struct setting *row = &table->row[i];
        int speed = (row->traits & (SETTING_TEXT | SETTING_SPEED)) == SETTING_SPEED &&
                    !is_load(row, record);
        if (!speed || !json_has(record, row->name) || agrees(standard, record, row->name))
            continue;
        if (text && !json_is_null(json_object_get(record, row->name))) {
            buf_format(text, "%s%s=", does ? ", " : "", row->name);
            about_value(text, json_object_get(record, row->name));
        }
        does = 1;
    }
    json_decref(standard);
    return does;
}

int about_is_plain(const json_t *record)
{
    const struct settings_table *table = system_of_record(record);
    return !table || !departs(table, record, NULL);
}

void about_put_speed(struct buf *text, const json_t *record)
{
    const struct settings_table *table = system_of_record(record);
    if (table)
        departs(table, record, text);
}
