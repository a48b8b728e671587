/* scale.c - see scale.h. The tables are those from which the records are written: metrics[] of
 * measure, and quality_direction() of score-*. Qualities have no unit. */
#include "lib/analysis/records/scale.h"

#include <stdlib.h>
#include <string.h>

#include "lib/analysis/measure/metrics.h"
#include "lib/analysis/score/quality.h"
#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/record/rec.h"

static const char DIRECTION[] = "direction", UNIT[] = "unit";

/* The unit and the direction that measure or score-* write for a metric; NULL: unknown. */
struct known { const char *unit, *direction; };

static struct known find_known(const char *metric)
{
    for (size_t i = 0; i < METRICS; i++)
        if (!strcmp(metrics[i].name, metric))
            return (struct known){metrics[i].unit, metrics[i].direction};
    return (struct known){NULL, quality_direction(metric)};
}

int scale_higher(const char *metric, const char *said)
{
    const char *known = find_known(metric).direction;
    const char *better = known ? known : said ? said : "";
    return !strcmp(better, "higher") ? 1 : !strcmp(better, "lower") ? 0 : -1;
}

static int check_known(const json_t *record, const char *key, const char *known,
                       const char *where, struct err *e)
{
    char shown[JSON_SHOWN];
    /* other readers may take a quality without a direction for one where more is better */
    const int needed = key == DIRECTION && !strcmp(known, "lower") &&
                       !strcmp(rec_kind(record), "quality");
    if ((!json_has(record, key) && !needed) || rec_is(record, key, known))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%.200s: %s of the metric %s: expected \"%s\", got %s", where,
                   key, rec_text(record, "metric"), known,
                   json_shown(json_object_get(record, key), shown));
}

/* first: the members and the place of the first record of the metric. */
static int check_first(const json_t *first, const json_t *record, const char *key,
                       const char *where, struct err *e)
{
    const json_t *here = json_object_get(record, key), *there = json_object_get(first, key);
    const char *from = rec_text(first, "where");
    char got[JSON_SHOWN], expected[JSON_SHOWN];
    if (json_has(record, key) ? json_equal(here, there) : !json_has(first, key))
        return 0;
    return err_set(e, EXIT_BAD_DATA, "%.200s: %s of the metric %s: expected %s as in %.200s, got "
                   "%s; give all records of a metric one %s, or rename one of two metrics", where,
                   key, rec_text(record, "metric"), json_shown(there, expected),
                   from ? from : "an earlier record", json_shown(here, got), key);
}

int scale_check(json_t **firsts, const json_t *record, const char *where, struct err *e)
{
    const char *kind = rec_kind(record), *metric = rec_text(record, "metric");
    if (!metric || (strcmp(kind, "metric") && strcmp(kind, "quality")))
        return 0;
    char *name = mem_format("%s %s", kind, metric);
    *firsts = *firsts ? *firsts : json_object();
    json_t *first = json_object_get(*firsts, name);
    if (!first) {
        first = json_pack("{s:O*, s:O*}", UNIT, json_object_get(record, UNIT),
                          DIRECTION, json_object_get(record, DIRECTION));
        json_object_set_new(first, "where", json_string(where)); /* no UTF-8: not set */
        json_object_set_new(*firsts, name, first);
    }
    const struct known known = find_known(metric);
    const int bad = (known.unit ? check_known(record, UNIT, known.unit, where, e)
                                : check_first(first, record, UNIT, where, e)) ||
                    (known.direction ? check_known(record, DIRECTION, known.direction, where, e)
                                     : check_first(first, record, DIRECTION, where, e));
    free(name);
    return bad ? -1 : 0;
}
