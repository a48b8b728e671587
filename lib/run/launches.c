/* runplan.c - see runplan.h. Every random choice is a function of (seed, launch number, round), so
 * an extended schedule and the one it extends never share or disturb each other's numbers. */
#include "lib/run/runplan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"

static const uint64_t SEED_MASK = ((uint64_t)1 << 53) - 1; /* integers that JSON readers keep */

static void must(int bad)
{
    if (bad)
        err_machine(__FILE__, __LINE__, "cannot build a schedule (out of memory)");
}

int runplan_check(const struct runplan *p, struct err *e)
{
    for (size_t g = 0; g < p->gen_length.n; g++)
        for (size_t b = 0; b < p->block_length.n; b++) {
            int64_t gen = p->gen_length.v[g], block = p->block_length.v[b];
            if (gen % block)
                return err_set(e, EXIT_BAD_USAGE, "--block-length %lld does not divide "
                               "--gen-length %lld", (long long)block, (long long)gen);
            for (size_t s = 0; s < p->steps.n; s++)
                if (p->steps.v[s] < gen / block)
                    return err_set(e, EXIT_BAD_USAGE, "--steps %lld: expected at least one step "
                                   "for each of the %lld blocks of --gen-length %lld",
                                   (long long)p->steps.v[s], (long long)(gen / block),
                                   (long long)gen);
        }
    return 0;
}

static void add_diffusion(const struct runplan *p, int64_t gen, int64_t batch, json_t *points)
{
    for (size_t b = 0; b < p->block_length.n; b++)
        for (size_t s = 0; s < p->steps.n; s++)
            must(json_array_append_new(
                points, json_pack("{s:I, s:I, s:I, s:I}", "steps", (json_int_t)p->steps.v[s],
                                  "gen_length", (json_int_t)gen, "block_length",
                                  (json_int_t)p->block_length.v[b], "batch", (json_int_t)batch)));
}

/* The points of a system, each once. */
static json_t *points_of(const struct runplan *p, const char *system)
{
    json_t *points = json_array();
    for (size_t g = 0; g < p->gen_length.n; g++)
        for (size_t b = 0; b < p->batch.n; b++) {
            int64_t gen = p->gen_length.v[g], batch = p->batch.v[b];
            if (!strcmp(system, "llada"))
                add_diffusion(p, gen, batch, points);
            else
                must(json_array_append_new(points, json_pack("{s:I, s:I}", "max_new",
                                                             (json_int_t)gen, "batch",
                                                             (json_int_t)batch)));
        }
    return points;
}

/* ---- what was there before ---- */

/* A point without what belongs to its place in a launch. The caller's reference. */
static json_t *bare(const json_t *point)
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
            json_t *p = bare(json_array_get(points, k));
            if (!holds(all, p))
                must(json_array_append(all, p));
            json_decref(p);
        }
    }
    return all;
}

/* Checks the records; *last becomes the largest launch number, -1 without any. */
static int check_previous(const json_t *previous, json_int_t *last, struct err *e)
{
    *last = -1;
    for (size_t i = 0; i < json_array_size(previous); i++) {
        const json_t *launch = json_array_get(previous, i);
        const json_t *n = json_object_get(launch, "launch");
        const json_t *points = json_object_get(launch, "points");
        if (!json_is_integer(n) || json_integer_value(n) < 0 || !json_is_array(points) ||
            !json_is_string(json_object_get(launch, "system")))
            return err_set(e, EXIT_BAD_DATA, "launch record %zu: expected launch (a number), "
                           "system (a text) and points (an array)", i + 1);
        for (size_t k = 0; k < json_array_size(points); k++)
            if (!json_is_object(json_array_get(points, k)))
                return err_set(e, EXIT_BAD_DATA, "launch record %zu: points[%zu]: expected an "
                               "object", i + 1, k);
        *last = json_integer_value(n) > *last ? json_integer_value(n) : *last;
    }
    return 0;
}

/* The points that new launches of a system run: the new ones, and a bridge of old ones when there
 * are both. NULL: nothing new. */
static json_t *points_to_run(const struct runplan *p, const json_t *previous, size_t system)
{
    json_t *wanted = points_of(p, p->systems[system]);
    json_t *old = old_points(previous, p->systems[system]), *run = json_array();
    for (size_t i = 0; i < json_array_size(wanted); i++) {
        json_t *point = json_array_get(wanted, i);
        if (!holds(old, point) && !holds(run, point))
            must(json_array_append(run, point));
    }
    size_t n = json_array_size(old);
    if (n > 0 && json_array_size(run) > 0) {
        uint32_t *order = mem_alloc(n * sizeof *order);
        struct rng r = {rng_derive(p->seed, "bridge"), system, json_array_size(previous) * n};
        for (size_t i = 0; i < n; i++)
            order[i] = (uint32_t)i;
        rng_shuffle(&r, order, n);
        for (size_t i = 0; i < n && i < 2; i++) {
            json_t *point = json_copy(json_array_get(old, order[i]));
            must(json_object_set_new(point, "bridge", json_true()));
            must(json_array_append_new(run, point));
        }
        free(order);
    }
    json_decref(wanted);
    json_decref(old);
    if (json_array_size(run) > 0)
        return run;
    json_decref(run);
    return NULL;
}

/* ---- launches ---- */

static json_t *one_launch(const struct runplan *p, json_int_t number, size_t system,
                          const json_t *points)
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
    json_t *launch = json_pack("{s:I, s:s, s:I, s:I, s:o}", "launch", number, "system",
                               p->systems[system], "seed", (json_int_t)seed, "rounds",
                               (json_int_t)p->rounds, "points", list);
    must(!launch);
    return launch;
}

json_t *runplan_schedule(const struct runplan *p, const json_t *previous, struct err *e)
{
    assert(p->n_systems == 1 || p->n_systems == 2);
    json_int_t number;
    json_t *points[2] = {NULL, NULL}, *out = json_array();
    if (check_previous(previous, &number, e)) {
        json_decref(out);
        return NULL;
    }
    for (size_t s = 0; s < p->n_systems; s++)
        points[s] = points_to_run(p, previous, s);
    /* A B, then B A, ...; an extension goes on with the other order than the last pair had. */
    int64_t first = (int64_t)(json_array_size(previous) / p->n_systems);
    for (int64_t pair = first; pair < first + p->launches; pair++)
        for (size_t i = 0; i < p->n_systems; i++) {
            size_t s = pair % 2 ? p->n_systems - 1 - i : i;
            if (points[s])
                must(json_array_append_new(out, one_launch(p, ++number, s, points[s])));
        }
    for (size_t s = 0; s < p->n_systems; s++)
        json_decref(points[s]);
    return out;
}
