/* points-check.c - checks the numbers of a record before it becomes part of a point; see points.h.
 * A cost of 1e308, for example, has no finite square. A record with a number out of range is
 * refused, so that later code needs no checks. */
#include "lib/analysis/points/points.h"

#include <string.h>

#include "lib/record/json.h"
#include "lib/record/rec.h"

/* LEAST..MOST: the range in which ratios, squares and sums are finite. COUNTS: 2^53, the largest
 * exact count. */
static const double LEAST = 1e-60, MOST = 1e60, COUNTS = 9007199254740992.0;

/* -1: the member is not a number in range. It may be absent or null. */
static int check_number(const json_t *record, const char *key, double lo, double hi, struct err *e)
{
    const json_t *value = json_object_get(record, key);
    double x = json_number_value(value);
    char text[JSON_SHOWN];
    return !value || json_is_null(value) || (json_is_number(value) && x >= lo && x <= hi)
               ? 0
               : err_set(e, EXIT_BAD_DATA, "%s: expected a number from %.15g to %.15g or null, "
                         "got %s", key, lo, hi, json_shown(value, text));
}

int points_check_cost(const json_t *record, struct err *e)
{
    double lo = rec_number(record, "lo"), hi = rec_number(record, "hi");
    const json_t *one;
    size_t i;
    if (check_number(record, "value", LEAST, MOST, e) || check_number(record, "lo", 0, MOST, e) ||
        check_number(record, "hi", 0, MOST, e) || check_number(record, "passes", 0, COUNTS, e) ||
        check_number(record, "rows", 0, COUNTS, e))
        return -1;
    json_array_foreach(json_object_get(record, "launch_values"), i, one)
        if (check_number(one, "value", 0, MOST, e))
            return err_prefix(e, "launch_values[%zu]", i);
    return lo > hi ? err_set(e, EXIT_BAD_DATA, "lo: expected at most hi, %.15g, got %.15g", hi, lo)
                   : 0;
}

/* The name of a metric must look like a field name, because it becomes part of one. */
static int check_name(const json_t *record, struct err *e)
{
    const char *name = rec_text(record, "metric");
    char text[JSON_SHOWN];
    size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    return n && !name[n] && *name >= 'a'
               ? 0
               : err_set(e, EXIT_BAD_DATA, "metric: expected a name of a-z, 0-9 and _, got %s",
                         json_shown(json_object_get(record, "metric"), text));
}

int points_check_quality(const json_t *record, struct err *e)
{
    return check_name(record, e) || check_number(record, "value", -MOST, MOST, e) ||
                   check_number(record, "copies", 1, COUNTS, e) ||
                   check_number(record, "scored_tokens", 0, COUNTS, e) ||
                   check_number(record, "scored_bytes", 0, COUNTS, e)
               ? -1
               : 0;
}
