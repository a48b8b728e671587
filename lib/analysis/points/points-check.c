/* points-check.c - checks the numbers of a point's records as they come in; see points.h. A cost of
 * 1e308 has no finite square. A number out of range refuses its record, so that later code needs no
 * check of its own. */
#include "lib/analysis/points/points.h"

#include <string.h>

#include "lib/record/json.h"
#include "lib/record/rec.h"

/* Range in which ratios, squares and sums are finite; the largest exact count. */
static const double LEAST = 1e-60, MOST = 1e60, COUNTS = 9007199254740992.0;

/* -1: not a number in range. Absent and null are allowed. */
static int check_number(const json_t *r, const char *key, double lo, double hi, struct err *e)
{
    const json_t *v = json_object_get(r, key);
    double x = json_number_value(v);
    char text[JSON_SHOWN];
    return !v || json_is_null(v) || (json_is_number(v) && x >= lo && x <= hi)
               ? 0
               : err_set(e, EXIT_BAD_DATA, "%s: expected a number from %.15g to %.15g or null, "
                         "got %s", key, lo, hi, json_shown(v, text));
}

int points_check_cost(const json_t *r, struct err *e)
{
    double lo = rec_number(r, "lo"), hi = rec_number(r, "hi");
    const json_t *one;
    size_t i;
    if (check_number(r, "value", LEAST, MOST, e) || check_number(r, "lo", 0, MOST, e) ||
        check_number(r, "hi", 0, MOST, e) || check_number(r, "passes", 0, COUNTS, e) ||
        check_number(r, "rows", 0, COUNTS, e))
        return -1;
    json_array_foreach(json_object_get(r, "launch_values"), i, one)
        if (check_number(one, "value", 0, MOST, e))
            return err_prefix(e, "launch_values[%zu]", i);
    return lo > hi ? err_set(e, EXIT_BAD_DATA, "lo: expected at most hi, %.15g, got %.15g", hi, lo)
                   : 0;
}

/* The name of a metric must look like a field name, because it becomes part of one. */
static int check_name(const json_t *r, struct err *e)
{
    const char *name = rec_text(r, "metric");
    char text[JSON_SHOWN];
    size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;
    return n && !name[n] && *name >= 'a'
               ? 0
               : err_set(e, EXIT_BAD_DATA, "metric: expected a name of a-z, 0-9 and _, got %s",
                         json_shown(json_object_get(r, "metric"), text));
}

int points_check_quality(const json_t *r, struct err *e)
{
    return check_name(r, e) || check_number(r, "value", -MOST, MOST, e) ||
                   check_number(r, "copies", 1, COUNTS, e) ||
                   check_number(r, "scored_tokens", 0, COUNTS, e) ||
                   check_number(r, "scored_bytes", 0, COUNTS, e)
               ? -1
               : 0;
}
