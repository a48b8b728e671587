/* methods.c - see methods.h. A record does not hold the name of its method: the method is found
 * from the settings of the record. A point belongs to a method if the free settings (methods.h) of
 * the point and one variant of the method together give the point. A variant has one value of each
 * list of the method. */
#include "lib/setting/methods.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { MOST = 256, VARIANTS_MOST = 64 };

/* 1: a method of the system names the setting. */
static int is_named(const struct methods *methods, const struct settings_table *table,
                    const char *setting)
{
    for (size_t i = 0; i < methods->n; i++)
        if (methods->v[i].table == table && json_object_get(methods->v[i].settings, setting))
            return 1;
    return 0;
}

/* 1: the setting is free for methods that do not name it. */
static int is_free_setting(const struct methods *methods, const struct settings_table *table,
                           const struct setting *row)
{
    return row->traits & SETTING_SHOWN || !is_named(methods, table, row->name);
}

/* ---- reading ---- */

static const char *find_unknown_key(const struct settings_table *table, json_t *settings)
{
    const char *key;
    json_t *value;
    json_object_foreach(settings, key, value)
        if (settings_find(table, key) == table->n)
            return key;
    return NULL;
}

/* The variants of these settings: an array of objects without lists, in which the list of the last
 * member changes first. NULL: a list is empty, or there are more than VARIANTS_MOST variants. */
static json_t *cross_lists(json_t *settings)
{
    json_t *all = json_array(), *list, *one;
    const char *key;
    json_array_append_new(all, json_deep_copy(settings));
    json_object_foreach(settings, key, list) {
        if (!json_is_array(list))
            continue;
        json_t *more = json_array(), *value;
        size_t i, k;
        json_array_foreach(all, i, one)
            json_array_foreach(list, k, value) {
                json_t *variant = json_copy(one);
                json_object_set(variant, key, value);
                json_array_append_new(more, variant);
                if (json_array_size(more) > VARIANTS_MOST)
                    break;
            }
        json_decref(all);
        all = more;
    }
    if (json_array_size(all) >= 1 && json_array_size(all) <= VARIANTS_MOST)
        return all;
    json_decref(all);
    return NULL;
}

static int check_variants(const struct method *now, const char *where, struct err *e)
{
    size_t i;
    json_t *variant;
    if (!now->variants) /* more than VARIANTS_MOST, or none */
        return err_set(e, EXIT_BAD_DATA, "%s: method '%.100s': expected lists of 1 or more values, "
                       "and at most %d combinations of them", where, now->name, VARIANTS_MOST);
    json_array_foreach(now->variants, i, variant) {
        struct settings settings = settings_default(now->table);
        if (settings_read(&settings, variant, where, e))
            return -1;
    }
    return 0;
}

static int check(const struct methods *methods, const struct method *now, const char *system,
                 const char *where, struct err *e)
{
    if (!now->name || !system || !json_is_object(now->settings))
        return err_set(e, EXIT_BAD_DATA, "%s: expected method and system (texts) and settings (an "
                       "object)", where);
    if (!now->table)
        return err_set(e, EXIT_BAD_DATA, "%s: system: expected llama, llada or ltm, got '%.40s'",
                       where, system);
    for (size_t i = 0; i < methods->n; i++)
        if (!strcmp(methods->v[i].name, now->name))
            return err_set(e, EXIT_BAD_DATA, "%s: method '%.100s' is there twice", where,
                           now->name);
    const char *key = find_unknown_key(now->table, now->settings);
    if (key)
        return err_set(e, EXIT_BAD_DATA, "%s: settings: '%.100s' is not a setting of %s", where,
                       key, system);
    return 0;
}

/* The names of the variants, each with the place of the method in the list. NULL: one of them is
 * the name of another variant too. */
static json_t *find_names(const struct methods *methods, const struct method *now,
                          const char *where, struct err *e)
{
    json_t *names = json_object(), *variant;
    size_t i;
    json_array_foreach(now->variants, i, variant) {
        char *name = methods_name(now, variant);
        if (json_object_get(methods->names, name) || json_object_get(names, name)) {
            err_set(e, EXIT_BAD_DATA, "%s: method '%.100s': the name '%.100s' is there twice",
                    where, now->name, name);
            json_decref(names);
            names = NULL;
        } else
            json_object_set_new(names, name, json_integer((json_int_t)methods->n));
        free(name);
        if (!names)
            return NULL;
    }
    return names;
}

int methods_take(struct methods *methods, json_t *record, const char *where, struct err *e)
{
    const char *system = rec_text(record, "system");
    struct method now = {system ? system_named(system) : NULL, rec_text(record, "method"),
                         record, json_object_get(record, "settings"), NULL};
    int bad = check(methods, &now, system, where, e);
    if (!bad && methods->n == MOST)
        bad = err_set(e, EXIT_BAD_DATA, "%s: expected at most %d methods", where, MOST);
    now.variants = bad ? NULL : cross_lists(now.settings);
    bad = bad || check_variants(&now, where, e);
    json_t *names = bad ? NULL : find_names(methods, &now, where, e);
    if (!names) {
        json_decref(now.variants);
        return -1;
    }
    methods->names = methods->names ? methods->names : json_object();
    json_object_update(methods->names, names);
    json_decref(names);
    methods->v = mem_resize(methods->v, methods->n + 1, sizeof *methods->v);
    now.record = json_incref(record);
    methods->v[methods->n++] = now;
    return 0;
}

int methods_read(struct methods *methods, const char *path, struct err *e)
{
    *methods = (struct methods){0};
    struct rec_reader *reader = rec_read_open(&path, 1, e);
    json_t *record;
    int got = reader ? 1 : -1;
    while (got > 0 && (got = rec_read(reader, &record, e)) > 0) {
        if (!strcmp(rec_kind(record), "method") &&
            methods_take(methods, record, rec_where(reader), e))
            got = -1;
        json_decref(record);
    }
    rec_read_close(reader);
    if (got == 0 && methods->n == 0)
        got = err_set(e, EXIT_BAD_DATA, "%s: no methods", path);
    if (got < 0)
        methods_free(methods);
    return got;
}

void methods_gather(struct methods *methods, const json_t *records)
{
    size_t i;
    json_t *record;
    *methods = (struct methods){0};
    json_array_foreach(records, i, record) {
        struct err e = {0};
        methods_take(methods, record, "methods", &e);
    }
}

void methods_free(struct methods *methods)
{
    for (size_t i = 0; i < methods->n; i++) {
        json_decref(methods->v[i].variants);
        json_decref(methods->v[i].record);
    }
    json_decref(methods->names);
    free(methods->v);
    *methods = (struct methods){0};
}

/* ---- the method of a record ---- */

static int agrees(const json_t *a, const json_t *b)
{
    int none_a = !a || json_is_null(a), none_b = !b || json_is_null(b);
    if (none_a || none_b)
        return none_a && none_b;
    return json_is_number(a) && json_is_number(b)
               ? json_number_value(a) == json_number_value(b)
               : json_equal(a, b);
}

/* 1: the free settings of the record and this variant of the method together give the record. */
static int makes_record(const struct methods *methods, const struct method *of, json_t *variant,
                        const json_t *record)
{
    const struct settings_table *table = of->table;
    struct settings settings = settings_default(table);
    struct err e = {0};
    json_t *free_ones = json_object(), *made = json_object();
    for (size_t i = 0; i < table->n; i++) {
        json_t *value = json_object_get(record, table->row[i].name);
        if (value && is_free_setting(methods, of->table, &table->row[i]))
            json_object_set(free_ones, table->row[i].name, value);
    }
    int is = !settings_read(&settings, free_ones, "", &e) &&
             !settings_read(&settings, variant, "", &e);
    if (is)
        settings_put(&settings, made);
    for (size_t i = 0; i < table->n && is; i++)
        is = agrees(json_object_get(made, table->row[i].name),
                    json_object_get(record, table->row[i].name));
    json_decref(free_ones);
    json_decref(made);
    return is;
}

/* 1: the draft model of the record is of the family that the method needs, or it needs none. */
static int has_drafter(const struct method *of, const json_t *record)
{
    const char *needs = rec_text(of->record, "drafter"), *has = rec_text(record, "draft_arch");
    return !needs || (has && !strcmp(needs, has));
}

const struct method *methods_of(const struct methods *methods, const json_t *record)
{
    for (size_t i = 0; i < methods->n; i++) {
        const struct setting *length = system_length(methods->v[i].table);
        const json_t *value = json_object_get(record, length->name);
        json_t *variant;
        size_t k;
        if (!value || json_is_null(value) || !has_drafter(&methods->v[i], record))
            continue;
        json_array_foreach(methods->v[i].variants, k, variant)
            if (makes_record(methods, &methods->v[i], variant, record))
                return &methods->v[i];
    }
    return NULL;
}

char *methods_values(const struct method *method, const json_t *record)
{
    struct buf text = {0};
    const char *key;
    json_t *list;
    json_object_foreach(method->settings, key, list) {
        const json_t *value = json_object_get(record, key);
        if (!json_is_array(list))
            continue;
        buf_text(&text, text.len ? " " : "");
        if (json_is_number(value))
            buf_format(&text, "%.6g", json_number_value(value));
        else
            buf_text(&text, json_is_string(value) ? json_string_value(value)
                            : json_is_true(value) ? "on"
                            : json_is_false(value) ? "off"
                                                   : "none");
    }
    return text.data ? text.data : mem_text("");
}

char *methods_name(const struct method *method, const json_t *record)
{
    char *values = methods_values(method, record);
    char *name = mem_format("%s%s%s", method->name, *values ? " " : "", values);
    free(values);
    return name;
}

const struct method *methods_named(const struct methods *methods, const char *name)
{
    const json_t *place = name ? json_object_get(methods->names, name) : NULL;
    return place ? &methods->v[json_integer_value(place)] : NULL;
}

int methods_is_base(const struct methods *methods, const struct method *of)
{
    for (size_t i = 0; of && i < methods->n; i++)
        if (methods->v[i].table == of->table)
            return &methods->v[i] == of;
    return 0;
}

/* ---- the points of a method ---- */

int methods_points(const struct method *method, const char *const *given, struct settings **point,
                   size_t *n, struct err *e)
{
    const struct settings_table *table = method->table;
    const char *rest[SETTINGS_MAX] = {0};
    struct settings *all = NULL, *more;
    size_t count = 0, k;
    json_t *variant;
    int bad = 0;
    for (size_t i = 0; i < table->n; i++)
        rest[i] = json_object_get(method->settings, table->row[i].name) ? NULL : given[i];
    json_array_foreach(method->variants, k, variant) {
        size_t crossed;
        if (bad || (bad = settings_cross(table, rest, &more, &crossed, e)))
            break;
        all = mem_resize(all, count + crossed, sizeof *all);
        for (size_t i = 0; i < crossed && !bad; i++) {
            all[count + i] = more[i];
            bad = settings_read(&all[count + i], variant, method->name, e) ||
                  settings_check(&all[count + i], e);
        }
        count += crossed;
        free(more);
    }
    if (bad)
        free(all);
    *point = bad ? NULL : all;
    *n = bad ? 0 : count;
    return bad ? -1 : 0;
}
