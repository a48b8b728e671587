/* scale.c - see scale.h. The tables are those from which the records are written: metrics[] of
 * measure, and quality_direction() of score-*. Qualities have no unit. */
#include "lib/analysis/records/scale.h"

#include <string.h>

#include "lib/analysis/measure/metrics.h"
#include "lib/analysis/score/quality.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

/* known: the value that measure or score-* write; NULL: unknown */
static int check_member(const json_t *record, const char *key, const char *known,
                        const char *where, struct err *e)
{
    char shown[JSON_SHOWN];
    /* without a direction more counts as better, so "lower" must be there */
    const int needed = known && !strcmp(key, "direction") && !strcmp(known, "lower") &&
                       !strcmp(rec_kind(record), "quality");
    if (!known || (!json_has(record, key) && !needed) || rec_is(record, key, known))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%.200s: %s of the metric %s: expected \"%s\", got %s", where,
                   key, rec_text(record, "metric"), known,
                   json_shown(json_object_get(record, key), shown));
}

int scale_check(const json_t *record, const char *where, struct err *e)
{
    const char *kind = rec_kind(record), *metric = rec_text(record, "metric");
    if (!metric || (strcmp(kind, "metric") && strcmp(kind, "quality")))
        return 0;
    const char *unit = NULL, *direction = quality_direction(metric);
    for (size_t i = 0; i < METRICS; i++)
        if (!strcmp(metrics[i].name, metric)) {
            unit = metrics[i].unit;
            direction = metrics[i].direction;
        }
    return check_member(record, "unit", unit, where, e) ||
                   check_member(record, "direction", direction, where, e) ? -1 : 0;
}
