/* parallelism.c - see parallelism.h. Tokens, passes, right answers and answers are summed by point
 * and prompt. A record with `copies` N counts N times. If a prompt has several answers, it counts
 * with its share of right answers. */
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

struct curves { /* the curves of one task and set of prompts */
    const char *task;     /* "": records without a task */
    const char *workload; /* "": records that do not name their set of prompts */
    struct places points, ids, series;
    const json_t **about; /* [points]: a generation record of each point */
    ptrdiff_t *of;        /* [points]: place of its series; UNPAIRED: the point does not count */
    double *sum;          /* [points][ids][SUMS] */
    size_t n;             /* number of prompts that all points have; these come first in sum */
};

/* ---- records ---- */

static int is_timed(const json_t *record)
{
    const char *status = rec_text(record, "status"), *phase = rec_text(record, "phase");
    return !strcmp(rec_kind(record), "generation") && !(status && strcmp(status, "ok")) &&
           !(phase && strcmp(phase, "timed")) && !*about_stack(record);
}

static int is_right(const json_t *record)
{
    return !strcmp(rec_kind(record), "quality") && rec_is(record, "metric", "accuracy") &&
           !json_is_true(json_object_get(record, "summary"));
}

static const char *task_of(const json_t *record)
{
    const char *task = rec_text(record, "task");
    return task ? task : "";
}

/* Returns 1 if the record counts in these curves. A score that names no set of prompts counts in
 * every set. */
static int belongs(const struct curves *curves, const json_t *record)
{
    const char *workload = about_workload(record);
    return !strcmp(task_of(record), curves->task) &&
           (!strcmp(workload, curves->workload) || (is_right(record) && !*workload));
}

static size_t place(struct places *places, const char *text)
{
    return places_of(places, text, strlen(text));
}

/* Finds the points and prompts of the curves, and makes room for their sums. */
static void meet(struct curves *curves, const json_t *records)
{
    const json_t *record;
    size_t i;
    json_array_foreach(records, i, record) if (is_timed(record) && about_point(record) &&
                                               rec_text(record, "id") &&
                                               belongs(curves, record))
    {
        place(&curves->points, about_point(record));
        place(&curves->ids, rec_text(record, "id"));
    }
    curves->about = mem_zero(curves->points.n + 1, sizeof *curves->about);
    curves->of = mem_zero(curves->points.n + 1, sizeof *curves->of);
    curves->sum = mem_zero(curves->points.n * curves->ids.n * SUMS + 1, sizeof *curves->sum);
}

static void add(struct curves *curves, const json_t *record)
{
    const char *point = about_point(record), *id = rec_text(record, "id"),
               *series = rec_text(record, "series");
    if (!point || !id || !belongs(curves, record) ||
        !places_has(&curves->points, point, strlen(point)) ||
        !places_has(&curves->ids, id, strlen(id)))
        return;
    const size_t at = place(&curves->points, point);
    const double times = rec_copies(record);
    double *to = curves->sum + (at * curves->ids.n + place(&curves->ids, id)) * SUMS;
    if (is_timed(record)) {
        const double eos = rec_number(record, "tokens_to_eos"),
                     all = rec_number(record, "new_tokens");
        const double tokens = isnan(eos) ? all : eos,
                     passes = rec_number(record, "passes");
        curves->about[at] = record;
        if (!(tokens >= 0) || !(passes > 0))
            return;
        to[TOKENS] += times * tokens;
        to[PASSES] += times * passes;
        curves->of[at] = (ptrdiff_t)place(&curves->series, series ? series : point);
    } else if (is_right(record) && !isnan(rec_number(record, "value"))) {
        to[RIGHT] += times * rec_number(record, "value");
        to[ANSWERS] += times;
    }
}

static int has_pair(const struct curves *curves, size_t point, size_t id)
{
    const double *s = curves->sum + (point * curves->ids.n + id) * SUMS;
    return s[PASSES] > 0 && s[ANSWERS] > 0;
}

/* Leaves out points without any pair, because with them no prompt would be common to all points. */
static void drop_unpaired(struct curves *curves)
{
    for (size_t point = 0; point < curves->points.n; point++) {
        size_t i = 0;
        while (i < curves->ids.n && !has_pair(curves, point, i))
            i++;
        if (i == curves->ids.n)
            curves->of[point] = UNPAIRED;
    }
}

/* Moves the prompts that every counting point has to the front of sum, and sets curves->n. */
static void keep_common(struct curves *curves)
{
    const size_t ids = curves->ids.n;
    for (size_t i = 0; i < ids; i++) {
        int all = 1, any = 0;
        for (size_t point = 0; point < curves->points.n; point++) {
            const int has = has_pair(curves, point, i);
            all &= has || curves->of[point] == UNPAIRED;
            any |= has;
        }
        all &= any;
        for (size_t point = 0; all && point < curves->points.n; point++)
            memmove(curves->sum + (point * ids + curves->n) * SUMS,
                    curves->sum + (point * ids + i) * SUMS, SUMS * sizeof *curves->sum);
        curves->n += (size_t)all;
    }
}

/* ---- numbers ---- */

/* Fills point[at] for the points that count, over the prompts index[n] (NULL: each prompt once).
 * Returns the best accuracy in percent. */
static double find_points(const struct curves *curves, const uint32_t *index,
                          struct aup_point *point)
{
    double best = 0;
    for (size_t at = 0; at < curves->points.n; at++) {
        double tokens = 0, passes = 0, right = 0;
        if (curves->of[at] == UNPAIRED)
            continue;
        for (size_t i = 0; i < curves->n; i++) {
            const double *sums = curves->sum + (at * curves->ids.n + (index ? index[i] : i)) * SUMS;
            tokens += sums[TOKENS];
            passes += sums[PASSES];
            right += sums[RIGHT] / sums[ANSWERS];
        }
        point[at] = (struct aup_point){tokens / passes, 100 * right / (double)curves->n};
        best = fmax(best, point[at].accuracy);
    }
    return best;
}

static double area(const struct curves *curves, size_t series, const struct aup_point *point,
                   double best, struct aup_point *work)
{
    size_t n = 0;
    for (size_t at = 0; at < curves->points.n; at++)
        if (curves->of[at] == (ptrdiff_t)series)
            work[n++] = point[at];
    return aup_of(work, n, best);
}

/* The interval of column `at` of draws[n][width], around the measured value. */
static struct interval interval_of(const double *draws, size_t n, size_t width, size_t at,
                                   double value)
{
    double *v = mem_zero(n, sizeof *v);
    for (size_t d = 0; d < n; d++)
        v[d] = draws[d * width + at];
    struct interval interval = bootstrap_interval(value, v, n, LEVEL);
    free(v);
    return interval;
}

static void put_interval(json_t *record, struct interval interval, const char *name, const char *lo,
                         const char *hi, size_t n)
{
    rec_set_number(record, name, interval.value, "undefined");
    rec_set_number(record, lo, n > 1 ? interval.lo : (double)NAN, "n<2");
    rec_set_number(record, hi, n > 1 ? interval.hi : (double)NAN, "n<2");
}

/* The labels of the points that do not count. */
static json_t *list_unpaired(const struct curves *curves)
{
    json_t *list = json_array();
    for (size_t point = 0; point < curves->points.n; point++)
        if (curves->of[point] == UNPAIRED)
            json_array_append(list, json_object_get(curves->about[point], "config"));
    return list;
}

static json_t *record_of(const struct curves *curves, size_t series, const struct aup_point *point,
                         const struct interval *interval, double best)
{
    json_t *list = json_array(), *record = json_object();
    for (size_t at = 0; at < curves->points.n; at++) {
        if (curves->of[at] != (ptrdiff_t)series)
            continue;
        json_t *one = json_pack("{s:s, s:s, s:f}", "point", places_text(&curves->points, at),
                                "config", rec_text(curves->about[at], "config"), "accuracy_percent",
                                point[at].accuracy);
        put_interval(one, interval[at], "tokens_per_forward", "lo", "hi", curves->n);
        size_t place = json_array_size(list); /* points are in the order of the curve */
        while (place && rec_number(json_array_get(list, place - 1), "tokens_per_forward") >
                            point[at].per_forward)
            place--;
        json_array_insert_new(list, place, one);
        if (json_array_size(list) == 1) {
            json_object_set(record, "model", json_object_get(curves->about[at], "model"));
            json_object_set(record, "arch", json_object_get(curves->about[at], "arch"));
        }
    }
    json_object_set_new(record, "series", json_string(places_text(&curves->series, series)));
    rec_set_text(record, "task", *curves->task ? curves->task : NULL);
    rec_set_text(record, "workload", *curves->workload ? curves->workload : NULL);
    put_interval(record, interval[curves->points.n + series], "value", "lo", "hi", curves->n);
    json_object_set_new(record, "level", json_real(LEVEL));
    json_object_set_new(record, "best_percent", json_real(best));
    rec_set_int(record, "n", (int64_t)curves->n);
    rec_set_int(record, "left_out", (int64_t)(curves->ids.n - curves->n));
    json_object_set_new(record, "unpaired", list_unpaired(curves));
    json_object_set_new(record, "method",
                        json_string("prompts resampled, the same for all points"));
    json_object_set_new(record, "curve", list);
    return record;
}

static void solve(const struct curves *curves, uint64_t seed, size_t draws, json_t *list)
{
    const size_t points = curves->points.n, width = points + curves->series.n;
    struct aup_point *point = mem_zero(points, sizeof *point),
                     *work = mem_zero(points, sizeof *work);
    struct interval *interval = mem_zero(width, sizeof *interval);
    double *drawn = mem_zero(draws * width, sizeof *drawn), best;
    uint32_t *index = mem_zero(curves->n, sizeof *index);
    for (size_t at = 0; at < draws; at++) {
        bootstrap_draw(seed, at, curves->n, index);
        best = find_points(curves, index, point);
        for (size_t which = 0; which < points; which++)
            drawn[at * width + which] = point[which].per_forward;
        for (size_t series = 0; series < curves->series.n; series++)
            drawn[at * width + points + series] = area(curves, series, point, best, work);
    }
    best = find_points(curves, NULL, point);
    for (size_t i = 0; i < width; i++)
        interval[i] = interval_of(drawn, draws, width, i,
                                  i < points ? point[i].per_forward
                                             : area(curves, i - points, point, best, work));
    for (size_t series = 0; series < curves->series.n; series++)
        if (!isnan(interval[points + series].value)) /* a point of the series counts */
            json_array_append_new(list, record_of(curves, series, point, interval, best));
    free(point);
    free(work);
    free(interval);
    free(drawn);
    free(index);
}

/* `like` is a generation record that has the task and the set of prompts. */
static void solve_set(const json_t *records, const json_t *like, uint64_t seed, size_t draws,
                      json_t *list)
{
    struct curves curves = {.task = task_of(like), .workload = about_workload(like)};
    const json_t *record;
    size_t i;
    meet(&curves, records);
    json_array_foreach(records, i, record)
        add(&curves, record);
    drop_unpaired(&curves);
    keep_common(&curves);
    if (curves.n)
        solve(&curves, seed, draws, list);
    places_free(&curves.points);
    places_free(&curves.ids);
    places_free(&curves.series);
    free(curves.about);
    free(curves.of);
    free(curves.sum);
}

json_t *parallelism_of(const json_t *records, uint64_t seed, size_t draws)
{
    struct places sets = {0};
    json_t *list = json_array();
    const json_t *record;
    size_t i;
    json_array_foreach(records, i, record) {
        if (!is_timed(record))
            continue;
        char *set = mem_format("%s\n%s", task_of(record), about_workload(record));
        const size_t known = sets.n;
        if (place(&sets, set) == known)
            solve_set(records, record, seed, draws, list);
        free(set);
    }
    places_free(&sets);
    return list;
}
