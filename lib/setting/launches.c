/* launches.c - see launches.h. The order of the points is a function of (seed, launch number,
 * round), so extending a schedule changes no launch that the schedule already holds. */
#include "lib/setting/launches.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

static const uint64_t SEED_MASK = ((uint64_t)1 << 53) - 1; /* exact in every JSON reader */

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "cannot build a schedule (out of memory)");
}

/* ---- points of the systems ---- */

void launches_say(struct launches_given *given, const char *name, const char *list)
{
    for (size_t d = 0; systems[d]; d++) {
        size_t row = settings_find(systems[d], name);
        if (row < systems[d]->n)
            given->text[d][row] = list;
    }
}

static int same_words(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* 1: two rows have the same type and choices; their defaults may differ. */
static int alike(const struct setting *a, const struct setting *b)
{
    return a->type == b->type && same_words(a->choices, b->choices);
}

/* 1: the rows of this name in all tables are alike. */
static int is_shared(const struct setting *setting)
{
    int shared = 1;
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *table = systems[d];
        size_t row = settings_find(table, setting->name);
        shared &= row == table->n || alike(setting, &table->row[row]);
    }
    return shared;
}

/* 1: an earlier table than systems[d] has made the option of this row. */
static int was_said(size_t d, const struct setting *setting)
{
    for (size_t i = 0; i < d; i++)
        if (settings_find(systems[i], setting->name) < systems[i]->n)
            return is_shared(setting);
    return 0;
}

/* 1: a row of some table has the name of this row's option. */
static int is_taken(const struct setting *setting)
{
    int taken = 0;
    for (size_t d = 0; systems[d] && setting->option; d++)
        taken |= settings_find(systems[d], setting->option) < systems[d]->n;
    return taken;
}

/* The alias of a row whose option differs from its name: "max-new" for max_new, whose option is
 * gen-length. The table must have this alias. */
static const char *alias_of(const struct settings_table *table, const char *row)
{
    const struct settings_alias *alias = table->alias;
    while (alias->word || strcmp(alias->row, row))
        alias++;
    return alias->option;
}

size_t launches_options(struct launches_given *given, struct opt **options,
                        struct settings_texts *texts)
{
    size_t n = 0;
    *options = NULL;
    for (size_t at = 0; systems[at]; at++) {
        const struct settings_table *table = systems[at];
        assert(at < LAUNCHES_SYSTEMS);
        *options = mem_resize(*options, n + table->n, sizeof **options);
        struct opt *to = *options + n,
                   *end = to + settings_options(table, given->text[at], to, texts);
        for (size_t i = 0; to < end; to++, i++) {
            struct opt *kept = *options + n;
            if (was_said(at, &table->row[i]))
                continue;
            *kept = *to;
            kept->letter = 0;
            if (!is_shared(&table->row[i]))
                kept->name = settings_texts_keep(texts,
                                                 mem_format("%s-%s", table->system, to->name));
            if (is_taken(&table->row[i])) {
                kept->name = alias_of(table, table->row[i].name);
                kept->rare = 1;
            }
            n++;
        }
    }
    return n;
}

/* given[] = the texts of the rows of systems[d]. The text of a shared option was stored for the
 * first table that has the row. */
static void gather(const struct launches_given *launches_given, size_t d, const char **given)
{
    const struct settings_table *table = systems[d];
    for (size_t i = 0; i < table->n; i++) {
        size_t k = 0, row = i;
        while (k < d && (row = settings_find(systems[k], table->row[i].name)) == systems[k]->n)
            k++;
        given[i] = k < d && is_shared(&table->row[i]) ? launches_given->text[k][row]
                                                      : launches_given->text[d][i];
    }
}

/* The list given for the length of the first system that has one, or NULL. */
static const char *length_of(const struct launches_given *given)
{
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            if (systems[d]->row[i].traits & SETTING_LENGTH && given->text[d][i])
                return given->text[d][i];
    return NULL;
}

static void add_point(struct launches *launches, size_t system, const struct settings *point)
{
    for (size_t i = 0; i < launches->points[system]; i++)
        if (settings_same(&launches->point[system][i], point))
            return;
    launches->point[system] = mem_resize(launches->point[system], launches->points[system] + 1,
                                         sizeof *point);
    launches->point[system][launches->points[system]++] = *point;
}

/* Appends the points of a system's methods, except points that launches->point[] already has. */
static int add_methods(struct launches *launches, size_t system, const struct methods *methods,
                       const char *const *given, struct err *e)
{
    for (size_t i = 0; methods && i < methods->n; i++) {
        struct settings *more;
        size_t n;
        if (methods->v[i].table != launches->table[system])
            continue;
        if (methods_points(&methods->v[i], given, &more, &n, e))
            return -1;
        for (size_t k = 0; k < n; k++)
            add_point(launches, system, &more[k]);
        free(more);
    }
    return 0;
}

int launches_systems(struct launches *launches, const char *list, struct err *e)
{
    char *names = mem_text(list), *rest = NULL;
    int bad = 0;
    launches->n_systems = 0;
    for (char *name = strtok_r(names, ",", &rest); name && !bad;
         name = strtok_r(NULL, ",", &rest)) {
        const struct settings_table *table = system_named(name);
        size_t i = 0;
        while (i < launches->n_systems && launches->table[i] != table)
            i++;
        bad = !table || i < launches->n_systems;
        if (!bad)
            launches->table[launches->n_systems++] = table;
    }
    bad |= !launches->n_systems;
    free(names);
    return !bad ? 0
                : err_set(e, EXIT_BAD_USAGE, "--systems: expected llada, llama and ltm, each at "
                          "most once, got '%.100s'", list);
}

int launches_points(struct launches *launches, const struct launches_given *launches_given,
                    const struct methods *methods, struct err *e)
{
    for (size_t system = 0; system < launches->n_systems; system++) {
        const struct settings_table *table = launches->table[system];
        const char *given[SETTINGS_MAX] = {0};
        size_t at = 0;
        while (systems[at] != launches->table[system])
            at++;
        gather(launches_given, at, given);
        for (size_t i = 0; i < table->n; i++)
            if (table->row[i].traits & SETTING_LENGTH && !given[i])
                given[i] = length_of(launches_given);
        if (settings_cross(table, given, &launches->point[system], &launches->points[system], e))
            return -1;
        for (size_t i = 0; i < launches->points[system]; i++)
            if (settings_check(&launches->point[system][i], e))
                return -1;
        if (add_methods(launches, system, methods, given, e))
            return -1;
    }
    return 0;
}

void launches_free(struct launches *launches)
{
    for (size_t system = 0; system < launches->n_systems; system++)
        free(launches->point[system]);
    *launches = (struct launches){0};
}

/* The points of a system as JSON. */
static json_t *points_of(const struct launches *launches, size_t system)
{
    json_t *points = json_array();
    for (size_t i = 0; i < launches->points[system]; i++)
        must(json_array_append_new(points, settings_said(&launches->point[system][i])));
    return points;
}

/* ---- an earlier schedule ---- */

/* A copy of a point without its members round and bridge. The caller's reference. */
static json_t *strip_place(const json_t *point)
{
    json_t *bare = json_deep_copy(point);
    must(!bare);
    json_object_del(bare, "round");
    json_object_del(bare, "bridge");
    return bare;
}

static int holds(const json_t *points, const json_t *point)
{
    for (size_t i = 0; i < json_array_size(points); i++)
        if (json_equal(json_array_get(points, i), point))
            return 1;
    return 0;
}

/* The distinct points that earlier launches of a system hold. */
static json_t *old_points(const json_t *previous, const char *system)
{
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(previous); i++) {
        const json_t *launch = json_array_get(previous, i);
        const json_t *points = json_object_get(launch, "points");
        if (strcmp(json_string_value(json_object_get(launch, "system")), system))
            continue;
        for (size_t k = 0; k < json_array_size(points); k++) {
            json_t *bare = strip_place(json_array_get(points, k));
            if (!holds(all, bare))
                must(json_array_append(all, bare));
            json_decref(bare);
        }
    }
    return all;
}

static const json_int_t LAST = (json_int_t)1 << 52; /* so that later numbers stay below 2^53 */

/* Checks the records. *last = the largest launch number, or -1. */
static int check_previous(const json_t *previous, json_int_t *last, struct err *e)
{
    *last = -1;
    for (size_t i = 0; i < json_array_size(previous); i++) {
        const json_t *launch = json_array_get(previous, i);
        const json_t *n = json_object_get(launch, "launch");
        const json_t *points = json_object_get(launch, "points");
        if (!json_is_integer(n) || json_integer_value(n) < 0 || json_integer_value(n) > LAST ||
            !json_is_array(points) || !json_is_string(json_object_get(launch, "system")))
            return err_set(e, EXIT_BAD_DATA, "launch record %zu: expected launch (a number up to "
                           "%lld), system (a text) and points (an array)", i + 1, (long long)LAST);
        for (size_t k = 0; k < json_array_size(points); k++)
            if (!json_is_object(json_array_get(points, k)))
                return err_set(e, EXIT_BAD_DATA, "launch record %zu: points[%zu]: expected an "
                               "object", i + 1, k);
        *last = json_integer_value(n) > *last ? json_integer_value(n) : *last;
    }
    return 0;
}

/* The points of a system that earlier launches do not hold. */
static json_t *new_points(const struct launches *launches, const json_t *old, size_t system)
{
    json_t *wanted = points_of(launches, system), *run = json_array();
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        json_t *point = json_array_get(wanted, i);
        if (!holds(old, point) && !holds(run, point))
            must(json_array_append(run, point));
    }
    json_decref(wanted);
    return run;
}

/* Adds up to `most` random old points, marked as a bridge. */
static void add_bridge(const struct launches *launches, json_t *run, const json_t *old,
                       size_t system, size_t most, size_t earlier)
{
    size_t n = json_array_size(old);
    uint32_t *order = mem_alloc(n * sizeof *order);
    struct rng rng = {rng_derive(launches->seed, "bridge"), system, earlier * n};
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&rng, order, n);
    for (size_t i = 0; i < n && i < most; i++) {
        json_t *point = json_copy(json_array_get(old, order[i]));
        must(json_object_set_new(point, "bridge", json_true()));
        must(json_array_append_new(run, point));
    }
    free(order);
}

/* Sets the points of new launches: the new points of each system, and two old points as a bridge. A
 * system without new points repeats all its old points, for comparison with the other systems.
 * Returns 0 if no system has a new point. */
static int points_to_run(const struct launches *launches, const json_t *previous,
                         json_t *points[LAUNCHES_SYSTEMS])
{
    enum { BRIDGE = 2 };
    json_t *old[LAUNCHES_SYSTEMS];
    size_t any = 0;
    for (size_t system = 0; system < launches->n_systems; system++) {
        old[system] = old_points(previous, launches->table[system]->system);
        points[system] = new_points(launches, old[system], system);
        any += json_array_size(points[system]);
    }
    for (size_t system = 0; system < launches->n_systems; system++) {
        size_t most = json_array_size(points[system]) ? BRIDGE : json_array_size(old[system]);
        if (any)
            add_bridge(launches, points[system], old[system], system, most,
                       json_array_size(previous));
        json_decref(old[system]);
    }
    return any > 0;
}

/* ---- launches ---- */

static json_t *one_launch(const struct launches *launches, json_int_t number, size_t system,
                          const json_t *points, size_t units)
{
    char name[48];
    snprintf(name, sizeof name, "launch %lld", (long long)number);
    uint64_t seed = rng_derive(launches->seed, name) & SEED_MASK;
    size_t n = json_array_size(points);
    uint32_t *order = mem_alloc(n * sizeof *order);
    json_t *list = json_array();
    for (int64_t round = 0; round < launches->rounds; round++) {
        struct rng rng = {seed, (uint64_t)round, 0};
        for (size_t i = 0; i < n; i++)
            order[i] = (uint32_t)i;
        rng_shuffle(&rng, order, n);
        for (size_t i = 0; i < n; i++) {
            json_t *point = json_pack("{s:I}", "round", (json_int_t)round);
            must(!point || json_object_update(point, json_array_get(points, order[i])));
            must(json_array_append_new(list, point));
        }
    }
    free(order);
    const char *name_of = launches->table[system]->system;
    json_t *launch = json_pack("{s:I, s:s, s:I, s:I, s:I, s:o}", "launch", number, "system",
                               name_of, "seed", (json_int_t)seed, "rounds",
                               (json_int_t)launches->rounds, "units",
                               (json_int_t)units * (json_int_t)launches->rounds, "points", list);
    must(!launch);
    return launch;
}

json_t *launches_schedule(const struct launches *plan, const json_t *previous, struct err *e)
{
    assert(plan->n_systems >= 1 && plan->n_systems <= LAUNCHES_SYSTEMS);
    json_int_t number;
    json_t *points[LAUNCHES_SYSTEMS] = {NULL}, *out = json_array();
    if (check_previous(previous, &number, e)) {
        json_decref(out);
        return NULL;
    }
    int64_t launches = points_to_run(plan, previous, points) ? plan->launches : 0;
    size_t units = 1;
    for (size_t system = 0; system < plan->n_systems; system++)
        units = json_array_size(points[system]) > units ? json_array_size(points[system]) : units;
    for (int64_t i = 0; i < launches; i++, number++)
        for (size_t system = 0; system < plan->n_systems; system++)
            if (json_array_size(points[system]))
                must(json_array_append_new(
                    out, one_launch(plan, number + 1, system, points[system], units)));
    for (size_t system = 0; system < plan->n_systems; system++)
        json_decref(points[system]);
    return out;
}
