/* fraction.c - shares of ceilings from metric records; see fraction.h. A point has one record per
 * metric; records are joined by point, prompts, device and machine. The share that counts is chosen
 * after all records are read, so the order of the records does not matter. */
#include "lib/forecast/fraction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

/* The point of the record; a new one is added. */
static struct fraction_point *point_of(struct fraction_points *points, const json_t *record)
{
    const char *point = about_point(record), *device = rec_text(record, "device_name");
    const char *machine = source_machine(record);
    char *id = mem_format("%s %s %s %lld %s", point ? point : "", about_workload(record),
                          device ? device : "", (long long)rec_int(record, "threads", -1),
                          machine ? machine : "");
    for (size_t i = 0; i < points->n; i++)
        if (!strcmp(points->v[i].id, id)) {
            free(id);
            return &points->v[i];
        }
    MEM_GROW(points->v, points->n, points->cap);
    points->v[points->n] = (struct fraction_point){
        json_deep_copy(record), id, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return &points->v[points->n++];
}

int fraction_take(struct fraction_points *points, const json_t *record)
{
    const char *metric = rec_text(record, "metric");
    double value = rec_number(record, "value");
    if (strcmp(rec_kind(record), "metric") || !metric || isnan(value) || value <= 0 ||
        json_is_true(json_object_get(record, "disturbed")) || about_is_diffusion(record) < 0)
        return 0;
    static const char *const names[] = {"mfu_ratio", "mbu_ratio", "prefill_mfu_ratio",
                                        "decode_mbu_ratio", "e2e_ns"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(metric, names[i]))
            continue;
        struct fraction_point *point = point_of(points, record);
        double *const to[] = {&point->mfu, &point->mbu, &point->prefill_mfu, &point->decode_mbu,
                              &point->e2e_ns};
        *to[i] = value;
        point->rows = rec_number(record, "rows");
        point->passes = rec_number(record, "passes");
        return 1;
    }
    return 0;
}

void fraction_free(struct fraction_points *points)
{
    for (size_t i = 0; i < points->n; i++) {
        json_decref(points->v[i].about);
        free(points->v[i].id);
    }
    free(points->v);
}

/* The share of kind k that the point gives (rules in fraction.h); NaN: none. */
static double fraction_seen_at(const struct fraction_point *point, enum fraction_kind k)
{
    int is_canvas = about_is_diffusion(point->about), by_memory = point->mbu > point->mfu;
    if (isnan(point->mbu) || isnan(point->mfu))
        return NAN;
    if (k == FRACTION_MFU_TEXT)
        return is_canvas ? (double)NAN : point->prefill_mfu;
    if (k == FRACTION_MFU_CANVAS)
        return is_canvas && !by_memory ? point->mfu : (double)NAN;
    return !by_memory ? (double)NAN : is_canvas ? point->mbu : point->decode_mbu;
}

static int same_machine(const struct fraction_point *a, const struct fraction_point *b)
{
    return source_same_machine(a->about, b->about);
}

/* 1: the points come from several machines. */
static int is_of_several(const struct fraction_points *points)
{
    size_t i = 1;
    while (i < points->n && same_machine(&points->v[0], &points->v[i]))
        i++;
    return i < points->n;
}

/* Sets share k to the median over the points that count, if there is one. */
static void settle_one(struct fraction *fraction, const struct fraction_points *points,
                       enum unit unit, enum fraction_kind k, const struct fraction_point *without)
{
    double *seen = mem_alloc((points->n + 1) * sizeof *seen);
    size_t n = 0;
    int several = without && is_of_several(points);
    /* a machine without a rate of int4 has that of int8 */
    const enum unit also = unit == UNIT_INT4 ? UNIT_INT8 : unit;
    for (size_t i = 0; i < points->n; i++) {
        const char *point_unit = rec_text(points->v[i].about, "flops_unit");
        double share = fraction_seen_at(&points->v[i], k);
        if (&points->v[i] == without || (several && same_machine(&points->v[i], without)))
            continue;
        if (point_unit && share > 0 && (!strcmp(point_unit, dtype_unit_name(unit)) ||
                                        !strcmp(point_unit, dtype_unit_name(also))))
            seen[n++] = share;
    }
    if (n) {
        fraction->is[k] = stat_median(seen, n);
        fraction->from[k] = "measured";
        fraction->witnesses[k] = n;
    }
    free(seen);
}

struct fraction fraction_of(const struct fraction_points *points, enum unit unit,
                            const double stated[FRACTIONS], const struct fraction_point *without)
{
    struct fraction fraction = {
        .is = {FRACTION_MFU_ASSUMED, FRACTION_MFU_ASSUMED, FRACTION_MBU_ASSUMED},
        .from = {"assumed", "assumed", "assumed"}};
    for (int k = 0; k < FRACTIONS; k++) {
        if (isnan(stated[k])) {
            settle_one(&fraction, points, unit, (enum fraction_kind)k, without);
        } else {
            fraction.is[k] = stated[k];
            fraction.from[k] = "stated";
        }
    }
    return fraction;
}
