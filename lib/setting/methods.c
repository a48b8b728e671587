/* methods.c - see methods.h. A record does not hold the name of its method: the method is found
 * from the settings of the record. A point belongs to a method if the free settings (methods.h) of
 * the point and the settings of the method together give the point. */
#include "lib/setting/methods.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

enum { MOST = 256 };

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
    struct settings settings = settings_default(now->table);
    return settings_read(&settings, now->settings, where, e);
}

int methods_take(struct methods *methods, json_t *record, const char *where, struct err *e)
{
    const char *system = rec_text(record, "system");
    struct method now = {system ? system_named(system) : NULL, rec_text(record, "method"),
                         record, json_object_get(record, "settings")};
    if (check(methods, &now, system, where, e))
        return -1;
    if (methods->n == MOST)
        return err_set(e, EXIT_BAD_DATA, "%s: expected at most %d methods", where, MOST);
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
    for (size_t i = 0; i < methods->n; i++)
        json_decref(methods->v[i].record);
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

/* 1: the free settings of the record and the settings of the method together give the record. */
static int makes_record(const struct methods *methods, const struct method *of,
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
             !settings_read(&settings, of->settings, "", &e);
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
        if (value && !json_is_null(value) && has_drafter(&methods->v[i], record) &&
            makes_record(methods, &methods->v[i], record))
            return &methods->v[i];
    }
    return NULL;
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
    for (size_t i = 0; i < table->n; i++)
        rest[i] = json_object_get(method->settings, table->row[i].name) ? NULL : given[i];
    if (settings_cross(table, rest, point, n, e))
        return -1;
    int bad = 0;
    for (size_t i = 0; i < *n && !bad; i++)
        bad = settings_read(&(*point)[i], method->settings, method->name, e) ||
              settings_check(&(*point)[i], e);
    if (bad)
        free(*point);
    return bad ? -1 : 0;
}
