/* genplan.c - see genplan.h. A plan from flags and a plan from a file are the same list of points,
 * so that one loop runs both. */
#include "lib/run/genplan.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/opt.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

enum { MAX_LIST = 64, MAX_POINTS = 4096, MAX_ROUNDS = 1 << 20, MAX_VALUE = 1 << 20 };

static void fill_defaults(struct gen_point *p)
{
    if (!p->block_length)
        p->block_length = p->gen_length;
    if (!p->steps)
        p->steps = p->gen_length;
}

int gen_plan_cross(struct gen_plan *p, const struct gen_point *base, const char *steps,
                   const char *batches, size_t rounds, uint64_t seed, struct err *e)
{
    int64_t s[MAX_LIST] = {(int64_t)base->steps}, b[MAX_LIST];
    int n_s = steps ? opt_list(steps, s, MAX_LIST, 1, MAX_VALUE) : 1;
    int n_b = opt_list(batches, b, MAX_LIST, 1, MAX_VALUE);
    if (n_s < 0)
        return err_set(e, EXIT_BAD_USAGE, "--steps: expected integers from 1, like 16,32, got '%s'",
                       steps);
    if (n_b < 0)
        return err_set(e, EXIT_BAD_USAGE, "--batch: expected integers from 1, like 1,4,8, got '%s'",
                       batches);
    *p = (struct gen_plan){.points = (size_t)(n_s * n_b), .rounds = rounds, .seed = seed};
    p->point = mem_zero(p->points, sizeof *p->point);
    for (int i = 0; i < n_s; i++)
        for (int k = 0; k < n_b; k++) {
            struct gen_point *to = &p->point[i * n_b + k];
            *to = *base;
            to->steps = (size_t)s[i];
            to->batch = (size_t)b[k];
            fill_defaults(to);
        }
    return 0;
}

/* A member of a point: what the command line said when it is absent or null. */
static int member(const json_t *o, const char *where, const char *key, size_t *to, struct err *e)
{
    int64_t v;
    if (!json_has(o, key))
        return 0;
    if (json_int(o, where, key, 1, MAX_VALUE, &v, e))
        return -1;
    *to = (size_t)v;
    return 0;
}

static int read_point(struct gen_point *p, const json_t *o, const char *where, struct err *e)
{
    if (!json_is_object(o))
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected objects", where);
    if (member(o, where, "batch", &p->batch, e) || member(o, where, "steps", &p->steps, e) ||
        member(o, where, "gen_length", &p->gen_length, e) ||
        member(o, where, "block_length", &p->block_length, e) ||
        member(o, where, "max_new", &p->max_new, e))
        return -1;
    fill_defaults(p);
    return 0;
}

static int read_launch(struct gen_plan *p, const struct gen_point *base, const json_t *o,
                       const char *where, struct err *e)
{
    int64_t rounds, seed = 0;
    const json_t *points = json_object_get(o, "points");
    size_t n = json_array_size(points);
    if (json_int(o, where, "rounds", 1, MAX_ROUNDS, &rounds, e) ||
        (json_has(o, "seed") && json_int(o, where, "seed", 0, INT64_C(1) << 53, &seed, e)))
        return -1;
    if (n < 1 || n > MAX_POINTS)
        return err_set(e, EXIT_BAD_DATA, "%s: points: expected 1 to %d objects, got %zu", where,
                       MAX_POINTS, n);
    p->point = mem_zero(n, sizeof *p->point);
    p->points = n;
    p->rounds = (size_t)rounds;
    p->seed = (uint64_t)seed;
    for (size_t i = 0; i < n; i++) {
        p->point[i] = *base;
        if (read_point(&p->point[i], json_array_get(points, i), where, e))
            return -1;
    }
    return 0;
}

static int is_wanted(const json_t *o, int64_t launch, const char *system)
{
    const char *its = rec_text(o, "system");
    return !strcmp(rec_kind(o), "launch") && rec_int(o, "launch", -1) == launch &&
           (!its || !strcmp(its, system));
}

int gen_plan_read(struct gen_plan *p, const struct gen_point *base, const char *path,
                  int64_t launch, const char *system, struct err *e)
{
    *p = (struct gen_plan){.launch = launch};
    struct rec_reader *r = rec_read_open(&path, 1, e);
    if (!r)
        return -1;
    json_t *o = NULL;
    int got, found = 0;
    while (!found && (got = rec_read(r, &o, e)) > 0) {
        found = is_wanted(o, launch, system);
        if (found && read_launch(p, base, o, rec_where(r), e))
            got = -1;
        json_decref(o);
        if (got < 0)
            break;
    }
    rec_read_close(r);
    if (got >= 0 && found)
        return 0;
    gen_plan_free(p);
    return got < 0 ? -1
                   : err_set(e, EXIT_BAD_DATA, "%s: no launch record %lld for system %s",
                             path, (long long)launch, system);
}

void gen_plan_free(struct gen_plan *p)
{
    free(p->point);
    *p = (struct gen_plan){0};
}
