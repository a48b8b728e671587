/* launches.c - see launches.h. Every random choice is a function of (seed, launch number, round),
 * so extending a schedule changes no launch that it already holds. */
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

void launches_say(struct launches_given *g, const char *name, const char *list)
{
    for (size_t d = 0; systems[d]; d++) {
        size_t row = settings_find(systems[d], name);
        if (row < systems[d]->n)
            g->text[d][row] = list;
    }
}

static int same_words(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* 1: two rows take the same values; their defaults may differ. */
static int alike(const struct setting *a, const struct setting *b)
{
    return a->type == b->type && same_words(a->choices, b->choices);
}

/* 1: all tables with a row of this name have the same values for it. */
static int is_shared(const struct setting *r)
{
    int shared = 1;
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *t = systems[d];
        size_t row = settings_find(t, r->name);
        shared &= row == t->n || alike(r, &t->row[row]);
    }
    return shared;
}

/* 1: the option of the row was made for an earlier table. */
static int was_said(size_t d, const struct setting *r)
{
    for (size_t i = 0; i < d; i++)
        if (settings_find(systems[i], r->name) < systems[i]->n)
            return is_shared(r);
    return 0;
}

/* The other option of a row whose option is not its name: --max-new. */
static const char *alias_of(const struct settings_table *t, const char *row)
{
    const struct settings_alias *a = t->alias;
    while (a->word || strcmp(a->row, row))
        a++;
    return a->option;
}

size_t launches_options(struct launches_given *g, struct opt **options,
                        struct settings_texts *texts)
{
    size_t n = 0;
    *options = NULL;
    for (size_t d = 0; systems[d]; d++) {
        const struct settings_table *t = systems[d];
        assert(d < LAUNCHES_SYSTEMS);
        *options = mem_resize(*options, n + t->n, sizeof **options);
        struct opt *to = *options + n, *end = to + settings_options(t, g->text[d], to, texts);
        for (size_t i = 0; to < end; to++, i++) {
            struct opt *kept = *options + n;
            if (was_said(d, &t->row[i]))
                continue;
            *kept = *to;
            kept->letter = 0;
            if (!is_shared(&t->row[i]))
                kept->name = settings_texts_keep(texts,
                                                 mem_format("%s-%s", t->system, to->name));
            if (t->row[i].option) { /* it may be the option of a row of another system */
                kept->name = alias_of(t, t->row[i].name);
                kept->rare = 1;
            }
            n++;
        }
    }
    return n;
}

/* Texts of the rows of systems[d]: an option that tables share was parsed into the first of
 * them. */
static void gather(const struct launches_given *g, size_t d, const char **given)
{
    const struct settings_table *t = systems[d];
    for (size_t i = 0; i < t->n; i++) {
        size_t k = 0, row = i;
        while (k < d && (row = settings_find(systems[k], t->row[i].name)) == systems[k]->n)
            k++;
        given[i] = k < d && is_shared(&t->row[i]) ? g->text[k][row] : g->text[d][i];
    }
}

/* The list given as the length of some system, or NULL. */
static const char *length_of(const struct launches_given *g)
{
    for (size_t d = 0; systems[d]; d++)
        for (size_t i = 0; i < systems[d]->n; i++)
            if (systems[d]->row[i].traits & SETTING_LENGTH && g->text[d][i])
                return g->text[d][i];
    return NULL;
}

static void add_point(struct launches *p, size_t s, const struct settings *point)
{
    for (size_t i = 0; i < p->points[s]; i++)
        if (settings_same(&p->point[s][i], point))
            return;
    p->point[s] = mem_resize(p->point[s], p->points[s] + 1, sizeof *point);
    p->point[s][p->points[s]++] = *point;
}

/* Appends the points of a system's methods that are not there yet. */
static int add_methods(struct launches *p, size_t s, const struct methods *m,
                       const char *const *given, struct err *e)
{
    for (size_t i = 0; m && i < m->n; i++) {
        struct settings *more;
        size_t n;
        if (m->v[i].table != p->table[s])
            continue;
        if (methods_points(&m->v[i], given, &more, &n, e))
            return -1;
        for (size_t k = 0; k < n; k++)
            add_point(p, s, &more[k]);
        free(more);
    }
    return 0;
}

int launches_systems(struct launches *p, const char *list, struct err *e)
{
    char *names = mem_text(list), *rest = NULL;
    int bad = 0;
    p->n_systems = 0;
    for (char *s = strtok_r(names, ",", &rest); s && !bad; s = strtok_r(NULL, ",", &rest)) {
        const struct settings_table *t = system_named(s);
        size_t i = 0;
        while (i < p->n_systems && p->table[i] != t)
            i++;
        bad = !t || i < p->n_systems;
        if (!bad)
            p->table[p->n_systems++] = t;
    }
    bad |= !p->n_systems;
    free(names);
    return !bad ? 0
                : err_set(e, EXIT_BAD_USAGE, "--systems: expected llada, llama and ltm, each at "
                          "most once, got '%.100s'", list);
}

int launches_points(struct launches *p, const struct launches_given *g, const struct methods *m,
                    struct err *e)
{
    for (size_t s = 0; s < p->n_systems; s++) {
        const struct settings_table *t = p->table[s];
        const char *given[SETTINGS_MAX] = {0};
        size_t d = 0;
        while (systems[d] != p->table[s])
            d++;
        gather(g, d, given);
        for (size_t i = 0; i < t->n; i++)
            if (t->row[i].traits & SETTING_LENGTH && !given[i])
                given[i] = length_of(g);
        if (settings_cross(t, given, &p->point[s], &p->points[s], e))
            return -1;
        for (size_t i = 0; i < p->points[s]; i++)
            if (settings_check(&p->point[s][i], e))
                return -1;
        if (add_methods(p, s, m, given, e))
            return -1;
    }
    return 0;
}

void launches_free(struct launches *p)
{
    for (size_t s = 0; s < p->n_systems; s++)
        free(p->point[s]);
    *p = (struct launches){0};
}

/* The points of a system as JSON. */
static json_t *points_of(const struct launches *p, size_t system)
{
    json_t *points = json_array();
    for (size_t i = 0; i < p->points[system]; i++)
        must(json_array_append_new(points, settings_said(&p->point[system][i])));
    return points;
}

/* ---- an earlier schedule ---- */

/* A point without round and bridge. The caller's reference. */
static json_t *strip_place(const json_t *point)
{
    json_t *p = json_deep_copy(point);
    must(!p);
    json_object_del(p, "round");
    json_object_del(p, "bridge");
    return p;
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
            json_t *p = strip_place(json_array_get(points, k));
            if (!holds(all, p))
                must(json_array_append(all, p));
            json_decref(p);
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
static json_t *new_points(const struct launches *p, const json_t *old, size_t system)
{
    json_t *wanted = points_of(p, system), *run = json_array();
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        json_t *point = json_array_get(wanted, i);
        if (!holds(old, point) && !holds(run, point))
            must(json_array_append(run, point));
    }
    json_decref(wanted);
    return run;
}

/* Adds up to `most` random old points, marked as a bridge. */
static void add_bridge(const struct launches *p, json_t *run, const json_t *old, size_t system,
                       size_t most, size_t earlier)
{
    size_t n = json_array_size(old);
    uint32_t *order = mem_alloc(n * sizeof *order);
    struct rng r = {rng_derive(p->seed, "bridge"), system, earlier * n};
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    rng_shuffle(&r, order, n);
    for (size_t i = 0; i < n && i < most; i++) {
        json_t *point = json_copy(json_array_get(old, order[i]));
        must(json_object_set_new(point, "bridge", json_true()));
        must(json_array_append_new(run, point));
    }
    free(order);
}

/* Sets the points of new launches: the new points of each system and a bridge of old ones. A system
 * without new points repeats all its old ones, for comparison with the other systems. 0: no system
 * has a new point. */
static int points_to_run(const struct launches *p, const json_t *previous,
                         json_t *points[LAUNCHES_SYSTEMS])
{
    enum { BRIDGE = 2 };
    json_t *old[LAUNCHES_SYSTEMS];
    size_t any = 0;
    for (size_t s = 0; s < p->n_systems; s++) {
        old[s] = old_points(previous, p->table[s]->system);
        points[s] = new_points(p, old[s], s);
        any += json_array_size(points[s]);
    }
    for (size_t s = 0; s < p->n_systems; s++) {
        size_t most = json_array_size(points[s]) ? BRIDGE : json_array_size(old[s]);
        if (any)
            add_bridge(p, points[s], old[s], s, most, json_array_size(previous));
        json_decref(old[s]);
    }
    return any > 0;
}

/* ---- launches ---- */

static json_t *one_launch(const struct launches *p, json_int_t number, size_t system,
                          const json_t *points, size_t units)
{
    char name[48];
    snprintf(name, sizeof name, "launch %lld", (long long)number);
    uint64_t seed = rng_derive(p->seed, name) & SEED_MASK;
    size_t n = json_array_size(points);
    uint32_t *order = mem_alloc(n * sizeof *order);
    json_t *list = json_array();
    for (int64_t round = 0; round < p->rounds; round++) {
        struct rng r = {seed, (uint64_t)round, 0};
        for (size_t i = 0; i < n; i++)
            order[i] = (uint32_t)i;
        rng_shuffle(&r, order, n);
        for (size_t i = 0; i < n; i++) {
            json_t *point = json_pack("{s:I}", "round", (json_int_t)round);
            must(!point || json_object_update(point, json_array_get(points, order[i])));
            must(json_array_append_new(list, point));
        }
    }
    free(order);
    const char *name_of = p->table[system]->system;
    json_t *launch = json_pack("{s:I, s:s, s:I, s:I, s:I, s:o}", "launch", number, "system",
                               name_of, "seed", (json_int_t)seed, "rounds",
                               (json_int_t)p->rounds, "units",
                               (json_int_t)units * (json_int_t)p->rounds, "points", list);
    must(!launch);
    return launch;
}

json_t *launches_schedule(const struct launches *p, const json_t *previous, struct err *e)
{
    assert(p->n_systems >= 1 && p->n_systems <= LAUNCHES_SYSTEMS);
    json_int_t number;
    json_t *points[LAUNCHES_SYSTEMS] = {NULL}, *out = json_array();
    if (check_previous(previous, &number, e)) {
        json_decref(out);
        return NULL;
    }
    int64_t launches = points_to_run(p, previous, points) ? p->launches : 0;
    size_t units = 1;
    for (size_t s = 0; s < p->n_systems; s++)
        units = json_array_size(points[s]) > units ? json_array_size(points[s]) : units;
    for (int64_t i = 0; i < launches; i++, number++)
        for (size_t s = 0; s < p->n_systems; s++)
            if (json_array_size(points[s]))
                must(json_array_append_new(out, one_launch(p, number + 1, s, points[s], units)));
    for (size_t s = 0; s < p->n_systems; s++)
        json_decref(points[s]);
    return out;
}
