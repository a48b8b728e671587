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

int run_plan_cross(struct run_plan *p, const struct settings_table *t, const char *const *given,
                   size_t rounds, uint64_t seed, struct err *e)
{
    *p = (struct run_plan){.rounds = rounds, .seed = seed};
    return settings_cross(t, given, &p->point, &p->points, e);
}

/* The first key of a point that is neither a setting nor "round" or "bridge"; NULL: none. */
static const char *find_unknown_key(const struct settings_table *t, const json_t *o)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)o, key, value)
        if (settings_find(t, key) == t->n && !json_is_null(value) && strcmp(key, "round") &&
            strcmp(key, "bridge"))
            return key;
    return NULL;
}

static int read_point(struct settings *p, const json_t *o, const char *where, struct err *e)
{
    if (!json_is_object(o))
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected objects", where);
    const char *key = find_unknown_key(p->table, o);
    if (key) {
        struct near near = {.got = key};
        char hint[NEAR_HINT];
        for (size_t i = 0; i < p->table->n; i++)
            near_add(&near, p->table->row[i].name);
        return err_set(e, EXIT_BAD_DATA, "%s: points: '%.100s' is not a setting of %s%s", where,
                       key, p->table->system, near_hint(&near, "", hint));
    }
    return settings_read(p, o, where, e);
}

static int read_launch(struct run_plan *p, const struct settings *base, const json_t *o,
                       const char *where, struct err *e)
{
    int64_t rounds, seed = 0, units = 0;
    const json_t *points = json_object_get(o, "points");
    size_t n = json_array_size(points);
    if (json_int(o, where, "rounds", 1, MAX_ROUNDS, &rounds, e) ||
        (json_has(o, "units") &&
         json_int(o, where, "units", 1, SETTINGS_POINTS, &units, e)) ||
        (json_has(o, "seed") && json_int(o, where, "seed", 0, INT64_C(1) << 53, &seed, e)))
        return -1;
    if (n < 1 || n > SETTINGS_POINTS)
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected 1 to %d objects, got %zu", where,
                       SETTINGS_POINTS, n);
    p->point = mem_zero(n, sizeof *p->point);
    p->round = mem_zero(n, sizeof *p->round);
    p->points = n;
    p->rounds = json_has(json_array_get(points, 0), "round") ? 1 : (size_t)rounds;
    p->units = (size_t)units;
    p->seed = (uint64_t)seed;
    for (size_t i = 0; i < n; i++) {
        p->point[i] = *base;
        const json_t *point = json_array_get(points, i);
        if (read_point(&p->point[i], point, where, e) ||
            (json_has(point, "round") &&
             json_int(point, where, "round", 0, rounds - 1, &p->round[i], e)))
            return -1;
    }
    return 0;
}

static int is_wanted(const json_t *o, int64_t launch, const char *system)
{
    const char *named = rec_text(o, "system");
    return !strcmp(rec_kind(o), "launch") && rec_int(o, "launch", -1) == launch &&
           (!named || !strcmp(named, system));
}

/* 1: found; 0: the file has no such launch; -1: *e. */
static int find_launch(struct run_plan *p, const struct settings *base, struct rec_reader *r,
                       struct err *e)
{
    json_t *o = NULL;
    int got, found = 0;
    while (!found && (got = rec_read(r, &o, e)) > 0) {
        found = is_wanted(o, p->launch, base->table->system);
        int bad = found && read_launch(p, base, o, rec_where(r), e);
        json_decref(o);
        if (bad)
            return -1;
    }
    return found ? 1 : got;
}

int run_plan_read(struct run_plan *p, const struct settings_table *t, const char *const *given,
                  const char *path, int64_t launch, struct err *e)
{
    struct settings *base;
    size_t n;
    *p = (struct run_plan){.launch = launch};
    if (settings_cross(t, given, &base, &n, e))
        return -1;
    struct rec_reader *r = NULL;
    int got = -1;
    if (n > 1)
        err_set(e, EXIT_BAD_USAGE, "--schedule sets the points: expected one value of each "
                "setting on the command line, got %zu combinations", n);
    else if ((r = rec_read_open(&path, 1, e)))
        got = find_launch(p, base, r, e);
    rec_read_close(r);
    free(base);
    if (got > 0)
        return 0;
    run_plan_free(p);
    return got < 0 ? -1
                   : err_set(e, EXIT_BAD_DATA, "%s: no launch record %lld for system %s", path,
                             (long long)launch, t->system);
}

void run_plan_free(struct run_plan *p)
{
    free(p->point);
    free(p->round);
    *p = (struct run_plan){0};
}
