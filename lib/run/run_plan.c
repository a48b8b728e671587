/* run_plan.c - see run_plan.h. A plan from options and a plan from a file are the same list of
 * points, so one loop runs both. Each point begins with the settings of the command line; a launch
 * record overwrites those that it names. */
#include "lib/run/run_plan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/cli/near.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

enum { MAX_ROUNDS = 1 << 20 };

int run_plan_cross(struct run_plan *plan, const struct settings_table *table,
                   const char *const *given, size_t rounds, uint64_t seed, struct err *e)
{
    *plan = (struct run_plan){.rounds = rounds, .seed = seed};
    return settings_cross(table, given, &plan->point, &plan->points, e);
}

/* The first key of a point that is neither a setting nor "round" or "bridge"; NULL: none. */
static const char *find_unknown_key(const struct settings_table *table, const json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
        if (settings_find(table, key) == table->n && !json_is_null(value) && strcmp(key, "round") &&
            strcmp(key, "bridge"))
            return key;
    return NULL;
}

static int read_point(struct settings *settings, const json_t *object, const char *where,
                      struct err *e)
{
    if (!json_is_object(object))
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected objects", where);
    const char *key = find_unknown_key(settings->table, object);
    if (key) {
        struct near near = {.got = key};
        char hint[NEAR_HINT];
        for (size_t i = 0; i < settings->table->n; i++)
            near_add(&near, settings->table->row[i].name);
        return err_set(e, EXIT_BAD_DATA, "%s: points: '%.100s' is not a setting of %s%s", where,
                       key, settings->table->system, near_hint(&near, "", hint));
    }
    return settings_read(settings, object, where, e);
}

static int read_launch(struct run_plan *plan, const struct settings *base, const json_t *object,
                       const char *where, struct err *e)
{
    int64_t rounds, seed = 0, units = 0;
    const json_t *points = json_object_get(object, "points");
    size_t n = json_array_size(points);
    if (json_int(object, where, "rounds", 1, MAX_ROUNDS, &rounds, e) ||
        (json_has(object, "units") &&
         json_int(object, where, "units", 1, SETTINGS_POINTS, &units, e)) ||
        (json_has(object, "seed") &&
         json_int(object, where, "seed", 0, INT64_C(1) << 53, &seed, e)))
        return -1;
    if (n < 1 || n > SETTINGS_POINTS)
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected 1 to %d objects, got %zu", where,
                       SETTINGS_POINTS, n);
    plan->point = mem_zero(n, sizeof *plan->point);
    plan->round = mem_zero(n, sizeof *plan->round);
    plan->points = n;
    plan->rounds = json_has(json_array_get(points, 0), "round") ? 1 : (size_t)rounds;
    plan->units = (size_t)units;
    plan->seed = (uint64_t)seed;
    for (size_t i = 0; i < n; i++) {
        plan->point[i] = *base;
        const json_t *point = json_array_get(points, i);
        if (read_point(&plan->point[i], point, where, e) ||
            (json_has(point, "round") &&
             json_int(point, where, "round", 0, rounds - 1, &plan->round[i], e)))
            return -1;
    }
    return 0;
}

static int is_wanted(const json_t *object, int64_t launch, const char *system)
{
    const char *named = rec_text(object, "system");
    return !strcmp(rec_kind(object), "launch") && rec_int(object, "launch", -1) == launch &&
           (!named || !strcmp(named, system));
}

/* 1: found; 0: the file has no such launch; -1: *e. */
static int find_launch(struct run_plan *plan, const struct settings *base,
                       struct rec_reader *reader, struct err *e)
{
    json_t *object = NULL;
    int got, found = 0;
    while (!found && (got = rec_read(reader, &object, e)) > 0) {
        found = is_wanted(object, plan->launch, base->table->system);
        int bad = found && read_launch(plan, base, object, rec_where(reader), e);
        json_decref(object);
        if (bad)
            return -1;
    }
    return found ? 1 : got;
}

int run_plan_read(struct run_plan *plan, const struct settings_table *table,
                  const char *const *given, const char *path, int64_t launch, struct err *e)
{
    struct settings *base;
    size_t n;
    *plan = (struct run_plan){.launch = launch};
    if (settings_cross(table, given, &base, &n, e))
        return -1;
    struct rec_reader *reader = NULL;
    int got = -1;
    if (n > 1)
        err_set(e, EXIT_BAD_USAGE, "--schedule sets the points: expected one value of each "
                "setting on the command line, got %zu combinations", n);
    else if ((reader = rec_read_open(&path, 1, e)))
        got = find_launch(plan, base, reader, e);
    rec_read_close(reader);
    free(base);
    if (got > 0)
        return 0;
    run_plan_free(plan);
    return got < 0 ? -1
                   : err_set(e, EXIT_BAD_DATA, "%s: no launch record %lld for system %s", path,
                             (long long)launch, table->system);
}

/* Rounds of points of a schedule count from 0. */
size_t run_plan_rounds(const struct run_plan *plan)
{
    size_t rounds = 1;
    for (size_t k = 0; plan->round && k < plan->points; k++)
        rounds = (size_t)plan->round[k] + 1 > rounds ? (size_t)plan->round[k] + 1 : rounds;
    return rounds * plan->rounds;
}

void run_plan_free(struct run_plan *plan)
{
    free(plan->point);
    free(plan->round);
    *plan = (struct run_plan){0};
}
