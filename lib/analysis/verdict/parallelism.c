/* parallelism.c - see parallelism.h. The records of a task are summed by point and prompt: tokens,
 * passes, right answers, answers. Several answers to a prompt count as the share of right ones. */
#include "lib/analysis/verdict/parallelism.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/stat/aup.h"
#include "lib/stat/bootstrap.h"

static const double LEVEL = 0.95;

enum { TOKENS, PASSES, RIGHT, ANSWERS, SUMS };

enum { UNPAIRED = -1 }; /* the series of a point that has no prompt with tokens and accuracy */

struct curves { /* of a task */
    const char *task;     /* "": records without a task */
    struct places points, ids, series;
    const json_t **about; /* [points]: a generation record of each */
    ptrdiff_t *of;        /* [points]: its series; UNPAIRED: it does not count */
    double *sum;          /* [points][ids][SUMS] */
    size_t n;             /* prompts that all points have; they come first */
};

/* ---- records ---- */

static int is_timed(const json_t *r)
{
    const char *status = rec_text(r, "status"), *phase = rec_text(r, "phase");
    return !strcmp(rec_kind(r), "generation") && !(status && strcmp(status, "ok")) &&
           !(phase && strcmp(phase, "timed")) && !*about_stack(r);
}

static int is_right(const json_t *r)
{
    return !strcmp(rec_kind(r), "quality") && rec_is(r, "metric", "accuracy") &&
           !json_is_true(json_object_get(r, "summary"));
}

static const char *task_of(const json_t *r)
{
    const char *task = rec_text(r, "task");
    return task ? task : "";
}

static size_t place(struct places *p, const char *text)
{
    return places_of(p, text, strlen(text));
}

/* Names points, prompts and series. */
static void meet(struct curves *c, const json_t *records)
{
    const json_t *r;
    size_t i;
    json_array_foreach(records, i, r)
        if (is_timed(r) && about_point(r) && rec_text(r, "id") && !strcmp(task_of(r), c->task)) {
            place(&c->points, about_point(r));
            place(&c->ids, rec_text(r, "id"));
        }
    c->about = mem_zero(c->points.n + 1, sizeof *c->about);
    c->of = mem_zero(c->points.n + 1, sizeof *c->of);
    c->sum = mem_zero(c->points.n * c->ids.n * SUMS + 1, sizeof *c->sum);
}

static void add(struct curves *c, const json_t *r)
{
    const char *point = about_point(r), *id = rec_text(r, "id"), *series = rec_text(r, "series");
    if (!point || !id || strcmp(task_of(r), c->task) ||
        !places_has(&c->points, point, strlen(point)) || !places_has(&c->ids, id, strlen(id)))
        return;
    const size_t p = place(&c->points, point);
    double *to = c->sum + (p * c->ids.n + place(&c->ids, id)) * SUMS;
    if (is_timed(r)) {
        const double eos = rec_number(r, "tokens_to_eos"), all = rec_number(r, "new_tokens");
        const double tokens = isnan(eos) ? all : eos, passes = rec_number(r, "passes");
        c->about[p] = r;
        if (!(tokens >= 0) || !(passes > 0))
            return;
        to[TOKENS] += tokens;
        to[PASSES] += passes;
        c->of[p] = (ptrdiff_t)place(&c->series, series ? series : point);
    } else if (is_right(r) && !isnan(rec_number(r, "value"))) {
        const double copies = rec_number(r, "copies"), times = copies > 0 ? copies : 1;
        to[RIGHT] += times * rec_number(r, "value");
        to[ANSWERS] += times;
    }
}

static int has_pair(const struct curves *c, size_t p, size_t id)
{
    const double *s = c->sum + (p * c->ids.n + id) * SUMS;
    return s[PASSES] > 0 && s[ANSWERS] > 0;
}

/* Leaves out the points without any pair, which would leave no prompt in common. */
static void drop_unpaired(struct curves *c)
{
    for (size_t p = 0; p < c->points.n; p++) {
        size_t i = 0;
        while (i < c->ids.n && !has_pair(c, p, i))
            i++;
        if (i == c->ids.n)
            c->of[p] = UNPAIRED;
    }
}

/* Moves the prompts that every point has to the front; none if no point has a pair. */
static void keep_common(struct curves *c)
{
    const size_t ids = c->ids.n;
    for (size_t i = 0; i < ids; i++) {
        int all = 1, any = 0;
        for (size_t p = 0; p < c->points.n; p++) {
            const int has = has_pair(c, p, i);
            all &= has || c->of[p] == UNPAIRED;
            any |= has;
        }
        all &= any;
        for (size_t p = 0; all && p < c->points.n; p++)
            memmove(c->sum + (p * ids + c->n) * SUMS, c->sum + (p * ids + i) * SUMS,
                    SUMS * sizeof *c->sum);
        c->n += (size_t)all;
    }
}

/* ---- numbers ---- */

/* Fills point[p] for the points that count, over the prompts index[n]. NULL: each prompt once.
 * Returns the best accuracy. */
static double find_points(const struct curves *c, const uint32_t *index, struct aup_point *point)
{
    double best = 0;
    for (size_t p = 0; p < c->points.n; p++) {
        double tokens = 0, passes = 0, right = 0;
        if (c->of[p] == UNPAIRED)
            continue;
        for (size_t i = 0; i < c->n; i++) {
            const double *s = c->sum + (p * c->ids.n + (index ? index[i] : i)) * SUMS;
            tokens += s[TOKENS];
            passes += s[PASSES];
            right += s[RIGHT] / s[ANSWERS];
        }
        point[p] = (struct aup_point){tokens / passes, 100 * right / (double)c->n};
        best = fmax(best, point[p].accuracy);
    }
    return best;
}

static double area(const struct curves *c, size_t series, const struct aup_point *point,
                   double best, struct aup_point *work)
{
    size_t n = 0;
    for (size_t p = 0; p < c->points.n; p++)
        if (c->of[p] == (ptrdiff_t)series)
            work[n++] = point[p];
    return aup_of(work, n, best);
}

/* One column of draws[draws][width], with the measured value. */
static struct interval interval_of(const double *draws, size_t n, size_t width, size_t at,
                                   double value)
{
    double *v = mem_zero(n, sizeof *v);
    for (size_t d = 0; d < n; d++)
        v[d] = draws[d * width + at];
    struct interval x = bootstrap_interval(value, v, n, LEVEL);
    free(v);
    return x;
}

static void put_interval(json_t *r, struct interval v, const char *name, const char *lo,
                         const char *hi, size_t n)
{
    rec_set_number(r, name, v.value, "undefined");
    rec_set_number(r, lo, n > 1 ? v.lo : (double)NAN, "n<2");
    rec_set_number(r, hi, n > 1 ? v.hi : (double)NAN, "n<2");
}

/* The labels of the points that do not count. */
static json_t *list_unpaired(const struct curves *c)
{
    json_t *list = json_array();
    for (size_t p = 0; p < c->points.n; p++)
        if (c->of[p] == UNPAIRED)
            json_array_append(list, json_object_get(c->about[p], "config"));
    return list;
}

static json_t *record_of(const struct curves *c, size_t series, const struct aup_point *point,
                         const struct interval *v, double best)
{
    json_t *list = json_array(), *r = json_object();
    for (size_t p = 0; p < c->points.n; p++) {
        if (c->of[p] != (ptrdiff_t)series)
            continue;
        json_t *one = json_pack("{s:s, s:s, s:f}", "point", places_text(&c->points, p), "config",
                                rec_text(c->about[p], "config"), "accuracy_percent",
                                point[p].accuracy);
        put_interval(one, v[p], "tokens_per_forward", "lo", "hi", c->n);
        json_array_append_new(list, one);
        if (json_array_size(list) == 1) {
            json_object_set(r, "model", json_object_get(c->about[p], "model"));
            json_object_set(r, "arch", json_object_get(c->about[p], "arch"));
        }
    }
    json_object_set_new(r, "series", json_string(places_text(&c->series, series)));
    rec_set_text(r, "task", *c->task ? c->task : NULL);
    put_interval(r, v[c->points.n + series], "value", "lo", "hi", c->n);
    json_object_set_new(r, "level", json_real(LEVEL));
    json_object_set_new(r, "best_percent", json_real(best));
    rec_set_int(r, "n", (int64_t)c->n);
    rec_set_int(r, "left_out", (int64_t)(c->ids.n - c->n));
    json_object_set_new(r, "unpaired", list_unpaired(c));
    json_object_set_new(r, "method", json_string("prompts resampled, the same for all points"));
    json_object_set_new(r, "curve", list);
    return r;
}

static void solve(const struct curves *c, uint64_t seed, size_t draws, json_t *list)
{
    const size_t points = c->points.n, width = points + c->series.n;
    struct aup_point *point = mem_zero(points, sizeof *point), *work = mem_zero(points,
                                                                               sizeof *work);
    struct interval *v = mem_zero(width, sizeof *v);
    double *drawn = mem_zero(draws * width, sizeof *drawn), best;
    uint32_t *index = mem_zero(c->n, sizeof *index);
    for (size_t d = 0; d < draws; d++) {
        bootstrap_draw(seed, d, c->n, index);
        best = find_points(c, index, point);
        for (size_t p = 0; p < points; p++)
            drawn[d * width + p] = point[p].per_forward;
        for (size_t s = 0; s < c->series.n; s++)
            drawn[d * width + points + s] = area(c, s, point, best, work);
    }
    best = find_points(c, NULL, point);
    for (size_t i = 0; i < width; i++)
        v[i] = interval_of(drawn, draws, width, i,
                           i < points ? point[i].per_forward
                                      : area(c, i - points, point, best, work));
    for (size_t s = 0; s < c->series.n; s++)
        if (!isnan(v[points + s].value)) /* some point of it counts */
            json_array_append_new(list, record_of(c, s, point, v, best));
    free(point);
    free(work);
    free(v);
    free(drawn);
    free(index);
}

static void solve_task(const json_t *records, const char *task, uint64_t seed, size_t draws,
                       json_t *list)
{
    struct curves c = {.task = task};
    const json_t *r;
    size_t i;
    meet(&c, records);
    json_array_foreach(records, i, r)
        add(&c, r);
    drop_unpaired(&c);
    keep_common(&c);
    if (c.n)
        solve(&c, seed, draws, list);
    places_free(&c.points);
    places_free(&c.ids);
    places_free(&c.series);
    free(c.about);
    free(c.of);
    free(c.sum);
}

json_t *parallelism_of(const json_t *records, uint64_t seed, size_t draws)
{
    struct places tasks = {0};
    json_t *list = json_array();
    const json_t *r;
    size_t i;
    json_array_foreach(records, i, r)
        place(&tasks, task_of(r));
    for (size_t t = 0; t < tasks.n; t++)
        solve_task(records, places_text(&tasks, t), seed, draws, list);
    places_free(&tasks);
    return list;
}
