/* roof.c - see roof.h. If several ceilings of one kind were measured, the largest counts, because a
 * smaller one was disturbed. Without a ceiling a share is null, and the reason names the missing
 * ceiling. */
#include "lib/analysis/measure/roof.h"

#include <math.h>
#include <string.h>

#include "lib/analysis/records/source.h"
#include "lib/record/rec.h"

int roof_take(struct roof *roof, const json_t *record)
{
    if (strcmp(rec_kind(record), "roofline") || !json_is_true(json_object_get(record, "ceiling")))
        return 0;
    if (!roof->list)
        roof->list = json_array();
    json_array_append_new(roof->list, json_deep_copy(record));
    return 1;
}

/* 1: both ran on one device. On a GPU the names must be equal; on the host the machine (source.h)
 * and the number of threads. */
static int same_place(const json_t *ceiling, const json_t *about)
{
    const char *a = rec_text(ceiling, "device_name"), *b = rec_text(about, "device_name");
    if (a || b)
        return a && b && !strcmp(a, b);
    return source_same_machine(ceiling, about) &&
           rec_int(ceiling, "threads", -1) == rec_int(about, "threads", -2);
}

/* The largest ceiling `key` in this unit (NULL: in any unit). NaN: none. Ceilings from the file of
 * the record are preferred, because a machine need not be as fast at another time. */
static double highest_ceiling(const struct roof *roof, const json_t *about, const char *key,
                              const char *unit)
{
    double best[2] = {NAN, NAN}; /* from the file of the record; from any file */
    size_t i;
    const json_t *ceiling;
    json_array_foreach(roof->list, i, ceiling) {
        const char *roof_unit = rec_text(ceiling, "unit");
        if (!same_place(ceiling, about) || (unit && (!roof_unit || strcmp(roof_unit, unit))))
            continue;
        for (int k = !source_same_file(ceiling, about); k < 2; k++)
            best[k] = fmax(best[k], rec_number(ceiling, key)); /* fmax ignores NaN */
    }
    return isnan(best[0]) ? best[1] : best[0];
}

/* The highest rate in this unit; for int4 also in int8. If there is none, the rate of f32. (As
 * dtype_unit_instead() of kernels/dtype.h, which lib/analysis must not include.) */
static double highest_rate(const struct roof *roof, const json_t *about, const char *unit)
{
    double own = highest_ceiling(roof, about, "flops_per_s", unit);
    if (!strcmp(unit, "int4"))
        own = fmax(own, highest_ceiling(roof, about, "flops_per_s", "int8")); /* ignores NaN */
    return isnan(own) ? highest_ceiling(roof, about, "flops_per_s", "f32") : own;
}

struct roof_limit roof_find(const struct roof *roof, const json_t *about)
{
    const char *unit = rec_text(about, "flops_unit");
    struct roof_limit limit = {NAN, NAN, NULL};
    if (!unit)
        limit.why = "the work was not counted";
    else if (!roof->list)
        limit.why = "no ceilings in the input";
    else if (isnan(limit.bytes_per_s = highest_ceiling(roof, about, "bytes_per_s", NULL)))
        limit.why = "no ceilings of this device and number of threads";
    else
        limit.flops_per_s = highest_rate(roof, about, unit);
    return limit;
}

void roof_free(struct roof *roof)
{
    json_decref(roof->list);
}
