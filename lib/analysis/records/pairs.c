/* pairs.c - see pairs.h. A table of several points covers all launches and prompts that any of them
 * has. A cell that a point lacks is NaN, so callers need no list of missing cells. The records are
 * kept, because the texts are borrowed from them. */
#include "lib/analysis/records/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/base/mem.h"
#include "lib/base/order.h"
#include "lib/record/rec.h"

const char *const pairs_clocks[PAIRS_CLOCKS] = {"e2e_ns", "cpu_ns"};

/* ---- reading records ---- */

static int read_names(struct pairs_point *point, const json_t *record, struct err *e)
{
    const json_t *ids = json_object_get(record, "ids"), *tasks = json_object_get(record, "tasks");
    point->prompts = json_array_size(ids);
    if (json_array_size(tasks) != point->prompts)
        return err_set(e, EXIT_BAD_DATA, "tasks: expected %zu entries, as many as ids, got %zu",
                       point->prompts, json_array_size(tasks));
    point->id = mem_zero(point->prompts, sizeof *point->id);
    point->task = mem_zero(point->prompts, sizeof *point->task);
    for (size_t i = 0; i < point->prompts; i++) {
        point->id[i] = json_string_value(json_array_get(ids, i));
        point->task[i] = json_string_value(json_array_get(tasks, i));
        if (!point->id[i] || (i && strcmp(point->id[i - 1], point->id[i]) >= 0))
            return err_set(e, EXIT_BAD_DATA, "ids[%zu]: expected texts in ascending order", i);
    }
    return 0;
}

static int read_launches(struct pairs_point *point, const json_t *record, struct err *e)
{
    const json_t *list = json_object_get(record, "launches");
    point->launches = json_array_size(list);
    point->launch = mem_zero(point->launches, sizeof *point->launch);
    for (size_t i = 0; i < point->launches; i++) {
        const json_t *one = json_array_get(list, i);
        point->launch[i] = json_integer_value(one);
        if (!json_is_integer(one) || point->launch[i] < 0 ||
            (i && point->launch[i] <= point->launch[i - 1]))
            return err_set(e, EXIT_BAD_DATA, "launches[%zu]: expected a number above the one "
                           "before", i);
    }
    return 0;
}

static int read_times(struct pairs_point *point, const json_t *record, enum pairs_clock clock,
                      struct err *e)
{
    const json_t *rows = json_object_get(record, pairs_clocks[clock]);
    point->ns[clock] = mem_zero(point->launches * point->prompts, sizeof *point->ns[clock]);
    if (json_array_size(rows) != point->launches)
        return err_set(e, EXIT_BAD_DATA, "%s: expected %zu rows, one a launch, got %zu",
                       pairs_clocks[clock], point->launches, json_array_size(rows));
    for (size_t launch = 0; launch < point->launches; launch++) {
        const json_t *row = json_array_get(rows, launch);
        if (json_array_size(row) != point->prompts)
            return err_set(e, EXIT_BAD_DATA, "%s[%zu]: expected %zu times, got %zu",
                           pairs_clocks[clock], launch, point->prompts, json_array_size(row));
        for (size_t i = 0; i < point->prompts; i++) {
            const json_t *one = json_array_get(row, i);
            double ns = json_is_number(one) ? json_number_value(one) : (double)NAN;
            if (!(json_is_null(one) || (ns >= 0 && ns < 1e18)))
                return err_set(e, EXIT_BAD_DATA, "%s[%zu][%zu]: expected nanoseconds or null",
                               pairs_clocks[clock], launch, i);
            point->ns[clock][launch * point->prompts + i] = ns > 0 ? ns : (double)NAN;
        }
    }
    return 0;
}

static void free_point(struct pairs_point *point)
{
    free(point->id);
    free(point->task);
    free(point->launch);
    for (int i = 0; i < PAIRS_CLOCKS; i++)
        free(point->ns[i]);
    json_decref(point->record);
}

static int read_point(struct pairs_point *point, const json_t *record, struct err *e)
{
    if (!point->point)
        return err_set(e, EXIT_BAD_DATA, "point, config: expected a text, got none");
    return read_names(point, record, e) || read_launches(point, record, e) ||
                   read_times(point, record, PAIRS_WALL, e) ||
                   read_times(point, record, PAIRS_CPU, e)
               ? -1
               : 0;
}

int pairs_take(struct pairs *pairs, const json_t *record, struct err *e)
{
    if (strcmp(rec_kind(record), "times"))
        return 0;
    struct pairs_point one = {.record = json_incref((json_t *)(uintptr_t)record),
                              .point = about_point(record), .workload = about_workload(record)};
    int bad = read_point(&one, record, e);
    for (size_t i = 0; i < pairs->n && !bad; i++)
        if (!strcmp(pairs->v[i].point, one.point) && !strcmp(pairs->v[i].workload, one.workload))
            bad = err_set(e, EXIT_BAD_DATA, "times of point %s: expected one record, got two",
                          one.point);
    if (bad) {
        free_point(&one);
        return -1;
    }
    MEM_GROW(pairs->v, pairs->n, pairs->cap);
    pairs->v[pairs->n++] = one;
    return 1;
}

const struct pairs_point *pairs_find(const struct pairs *pairs, const char *point)
{
    const struct pairs_point *best = NULL;
    for (size_t i = 0; i < pairs->n && point; i++)
        if (!strcmp(pairs->v[i].point, point) &&
            (!best || pairs->v[i].prompts > best->prompts ||
             (pairs->v[i].prompts == best->prompts &&
              strcmp(pairs->v[i].workload, best->workload) < 0)))
            best = &pairs->v[i];
    return best;
}

void pairs_free(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        free_point(&pairs->v[i]);
    free(pairs->v);
    *pairs = (struct pairs){0};
}

/* ---- tables ---- */

static int is_of_task(const struct pairs_of *of, const char *task)
{
    return !of->task || (task && !strcmp(task, of->task));
}

/* The prompt ids that any of the points has and that belong to the task, ascending. */
static const char **ids_of(const struct pairs_point *const *point, size_t n,
                           const struct pairs_of *of, size_t *count)
{
    const char **ids = NULL;
    size_t all = 0, cap = 0, kept = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < point[k]->prompts; i++)
            if (is_of_task(of, point[k]->task[i])) {
                MEM_GROW(ids, all, cap);
                ids[all++] = point[k]->id[i];
            }
    if (all)
        qsort(ids, all, sizeof *ids, order_texts);
    for (size_t i = 0; i < all; i++)
        if (!kept || strcmp(ids[kept - 1], ids[i]))
            ids[kept++] = ids[i];
    *count = kept;
    return ids;
}

/* 1: the records of two points name different sets of prompts. */
static int have_other_prompts(const struct pairs_point *const *point, size_t n)
{
    for (size_t k = 1; k < n; k++)
        for (size_t i = 0; i < k; i++)
            if (about_other_prompts(point[i]->workload, point[k]->workload))
                return 1;
    return 0;
}

/* 1: the points have launch numbers in common, or there is a single point. */
static int share_numbers(const struct pairs_point *const *point, size_t n)
{
    for (size_t k = 1; k < n; k++)
        for (size_t i = 0; i < point[k]->launches; i++)
            if (bsearch(&point[k]->launch[i], point[0]->launch, point[0]->launches, sizeof(int64_t),
                        order_ints))
                return 1;
    return n < 2;
}

/* 1: the i-th launches of all points are neighbours in the schedule: their numbers are at most one
 * apart. */
static int are_neighbours(const struct pairs_point *const *point, size_t n)
{
    for (size_t k = 1; k < n; k++) {
        if (point[k]->launches != point[0]->launches)
            return 0;
        for (size_t i = 0; i < point[0]->launches; i++)
            if (point[k]->launch[i] > point[0]->launch[i] + 1 ||
                point[k]->launch[i] + 1 < point[0]->launch[i])
                return 0;
    }
    return 1;
}

/* The launch numbers of the rows of the table, ascending; by_rank 1: the ranks 0, 1, ... instead.
 * The caller frees. */
static int64_t *rows_of(const struct pairs_point *const *point, size_t n, int by_rank,
                        size_t *count)
{
    int64_t *rows = NULL;
    size_t all = 0, cap = 0, kept = 0;
    for (size_t k = 0; k < (by_rank ? 1 : n); k++)
        for (size_t i = 0; i < point[k]->launches; i++) {
            MEM_GROW(rows, all, cap);
            rows[all++] = by_rank ? (int64_t)i : point[k]->launch[i];
        }
    if (all)
        qsort(rows, all, sizeof *rows, order_ints);
    for (size_t i = 0; i < all; i++)
        if (!kept || rows[kept - 1] != rows[i])
            rows[kept++] = rows[i];
    *count = kept;
    return rows;
}

double *pairs_table(const struct pairs_point *const *point, size_t n, const struct pairs_of *of,
                    size_t *launches, size_t *prompts)
{
    const int by_rank = !share_numbers(point, n);
    *launches = *prompts = 0;
    if (have_other_prompts(point, n) || (by_rank && !are_neighbours(point, n)))
        return NULL;
    const char **ids = ids_of(point, n, of, prompts);
    int64_t *rows = rows_of(point, n, by_rank, launches);
    const size_t cells = *launches * *prompts;
    double *out = mem_zero(n * cells, sizeof *out);
    for (size_t i = 0; i < n * cells; i++)
        out[i] = NAN;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < point[k]->prompts; i++) {
            const char **at = bsearch(&point[k]->id[i], ids, *prompts, sizeof *ids, order_texts);
            for (size_t launch = 0;
                 launch < point[k]->launches && at && is_of_task(of, point[k]->task[i]); launch++) {
                int64_t number = by_rank ? (int64_t)launch : point[k]->launch[launch];
                const int64_t *row = bsearch(&number, rows, *launches, sizeof *rows, order_ints);
                out[k * cells + (size_t)(row - rows) * *prompts + (size_t)(at - ids)] =
                    point[k]->ns[of->clock][launch * point[k]->prompts + i];
            }
        }
    free(ids);
    free(rows);
    return out;
}

/* 1: over a tenth of the prompts of both points together are prompts of one point only. */
static int lack_prompts(const struct pairs_point *const both[2], const struct pairs_of *of)
{
    size_t all, own = 0;
    free(ids_of(both, 2, of, &all));
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->prompts; i++)
            own += is_of_task(of, both[k]->task[i]) ? 1 : 0;
    return 10 * (2 * all - own) > all;
}

const char *pairs_reason(const struct pairs_point *base, const struct pairs_point *other,
                         const struct pairs_of *of, const char *reason)
{
    const struct pairs_point *both[2] = {base, other};
    if (!reason || !base || !other)
        return reason;
    if (have_other_prompts(both, 2))
        return PAIRED_PROMPTS;
    return !strcmp(reason, PAIRED_DISTURBED) && lack_prompts(both, of) ? PAIRED_MISSING : reason;
}

struct paired pairs_ratio(const struct pairs_point *base, const struct pairs_point *other,
                          const struct pairs_of *of, double level)
{
    const struct pairs_point *both[2] = {base, other};
    struct paired_cells cells = {0};
    double *table = base && other
                        ? pairs_table(both, 2, of, &cells.launches, &cells.prompts)
                        : NULL;
    if (table) {
        cells.base = table;
        cells.other = table + cells.launches * cells.prompts;
    }
    double *work = mem_zero(paired_work(&cells), sizeof *work);
    struct paired paired = paired_ratio(&cells, level, work);
    paired.ratio.reason = pairs_reason(base, other, of, paired.ratio.reason);
    free(work);
    free(table);
    return paired;
}

/* The mean of the logarithms of a prompt's times over the launches; NaN: it has no time. */
static double prompt_log(const struct pairs_point *point, const struct pairs_of *of, size_t i)
{
    double sum = 0;
    size_t n = 0;
    for (size_t launch = 0; launch < point->launches && is_of_task(of, point->task[i]); launch++) {
        double ns = point->ns[of->clock][launch * point->prompts + i];
        sum += isnan(ns) ? 0 : log(ns);
        n += isnan(ns) ? 0 : 1;
    }
    return n ? sum / (double)n : (double)NAN;
}

double pairs_mean(const struct pairs_point *point, const struct pairs_of *of)
{
    double total = 0;
    size_t prompts = 0, without = 0;
    for (size_t i = 0; point && i < point->prompts; i++) {
        double mean = prompt_log(point, of, i);
        prompts += isnan(mean) ? 0 : 1;
        without += isnan(mean) && is_of_task(of, point->task[i]) ? 1 : 0;
        total += isnan(mean) ? 0 : mean;
    }
    return prompts && without * 10 <= prompts + without ? exp(total / (double)prompts)
                                                        : (double)NAN;
}

struct interval pairs_time(const struct pairs_point *point, const struct pairs_of *of)
{
    struct interval time = {pairs_mean(point, of), NAN, NAN};
    if (isnan(time.value))
        return time;
    double *mean = mem_zero(point->prompts, sizeof *mean);
    double *part = mem_zero(point->launches, sizeof *part);
    size_t counted = 0;
    for (size_t i = 0; i < point->prompts; i++)
        mean[i] = prompt_log(point, of, i);
    for (size_t launch = 0; launch < point->launches; launch++) {
        double sum = 0;
        size_t n = 0, all = 0;
        for (size_t i = 0; i < point->prompts; i++) {
            double ns = point->ns[of->clock][launch * point->prompts + i];
            all += is_of_task(of, point->task[i]) ? 1 : 0;
            if (isnan(mean[i]) || isnan(ns))
                continue;
            sum += log(ns) - mean[i];
            n++;
        }
        if (n && 2 * n >= all)
            part[counted++] = sum / (double)n;
    }
    const struct interval spread = stat_t(part, counted, 0.95);
    if (counted >= LAUNCH_LEAST) {
        time.lo = time.value * exp(spread.lo - spread.value);
        time.hi = time.value * exp(spread.hi - spread.value);
    }
    free(mean);
    free(part);
    return time;
}
