/* fraction.c - see fraction.h. A point has one record per metric; they are joined by point and
 * prompts. The share that counts is chosen when all records are read, so their order does not
 * matter. */
#include "lib/forecast/fraction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/analysis/about.h"
#include "lib/analysis/records/source.h"
#include "lib/base/mem.h"
#include "lib/record/rec.h"
#include "lib/stat/stat.h"

static struct fraction_point *point_of(struct fraction_points *p, const json_t *r)
{
    const char *point = about_point(r), *device = rec_text(r, "device_name");
    const char *machine = source_machine(r);
    char *id = mem_format("%s %s %s %lld %s", point ? point : "", about_workload(r),
                          device ? device : "", (long long)rec_int(r, "threads", -1),
                          machine ? machine : "");
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->v[i].id, id)) {
            free(id);
            return &p->v[i];
        }
    MEM_GROW(p->v, p->n, p->cap);
    p->v[p->n] = (struct fraction_point){json_deep_copy(r), id, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    return &p->v[p->n++];
}

int fraction_take(struct fraction_points *p, const json_t *r)
{
    const char *metric = rec_text(r, "metric");
    double value = rec_number(r, "value");
    if (strcmp(rec_kind(r), "metric") || !metric || isnan(value) || value <= 0 ||
        json_is_true(json_object_get(r, "disturbed")) || about_is_diffusion(r) < 0)
        return 0;
    static const char *const names[] = {"mfu_ratio", "mbu_ratio", "prefill_mfu_ratio",
                                        "decode_mbu_ratio", "e2e_ns"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(metric, names[i]))
            continue;
        struct fraction_point *t = point_of(p, r);
        double *const to[] = {&t->mfu, &t->mbu, &t->prefill_mfu, &t->decode_mbu, &t->e2e_ns};
        *to[i] = value;
        t->rows = rec_number(r, "rows");
        t->passes = rec_number(r, "passes");
        return 1;
    }
    return 0;
}

void fraction_free(struct fraction_points *p)
{
    for (size_t i = 0; i < p->n; i++) {
        json_decref(p->v[i].about);
        free(p->v[i].id);
    }
    free(p->v);
}

/* The share of kind k that the point gives; NaN: none. */
static double fraction_seen_at(const struct fraction_point *t, enum fraction_kind k)
{
    int is_canvas = about_is_diffusion(t->about), by_memory = t->mbu > t->mfu;
    if (isnan(t->mbu) || isnan(t->mfu))
        return NAN;
    if (k == FRACTION_MFU_TEXT)
        return is_canvas ? (double)NAN : t->prefill_mfu;
    if (k == FRACTION_MFU_CANVAS)
        return is_canvas && !by_memory ? t->mfu : (double)NAN;
    return !by_memory ? (double)NAN : is_canvas ? t->mbu : t->decode_mbu;
}

static int same_machine(const struct fraction_point *a, const struct fraction_point *b)
{
    return source_same_machine(a->about, b->about);
}

static int is_of_several(const struct fraction_points *p)
{
    size_t i = 1;
    while (i < p->n && same_machine(&p->v[0], &p->v[i]))
        i++;
    return i < p->n;
}

static void settle_one(struct fraction *f, const struct fraction_points *p, enum unit unit,
                   enum fraction_kind k, const struct fraction_point *without)
{
    double *seen = mem_alloc((p->n + 1) * sizeof *seen);
    size_t n = 0;
    int several = without && is_of_several(p);
    for (size_t i = 0; i < p->n; i++) {
        const char *point_unit = rec_text(p->v[i].about, "flops_unit");
        double v = fraction_seen_at(&p->v[i], k);
        if (&p->v[i] == without || (several && same_machine(&p->v[i], without)))
            continue;
        if (point_unit && !strcmp(point_unit, dtype_unit_name(unit)) && v > 0)
            seen[n++] = v;
    }
    if (n) {
        f->is[k] = stat_median(seen, n);
        f->from[k] = "measured";
        f->witnesses[k] = n;
    }
    free(seen);
}

struct fraction fraction_of(const struct fraction_points *p, enum unit unit,
                            const double stated[FRACTIONS], const struct fraction_point *without)
{
    struct fraction f = {.is = {FRACTION_MFU_ASSUMED, FRACTION_MFU_ASSUMED, FRACTION_MBU_ASSUMED},
                         .from = {"assumed", "assumed", "assumed"}};
    for (int k = 0; k < FRACTIONS; k++) {
        if (isnan(stated[k])) {
            settle_one(&f, p, unit, (enum fraction_kind)k, without);
        } else {
            f.is[k] = stated[k];
            f.from[k] = "stated";
        }
    }
    return f;
}
