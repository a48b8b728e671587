/* values.c - see values.h. A cost of 1e308, for example, has no finite square. A record with a
 * number out of range is refused, so that later code needs no checks. The bounds of a metric
 * follow from its definition. Metrics without a row in the table, such as the estimates of a
 * bound of a likelihood, may have either sign. */
#include "lib/analysis/records/values.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/record/json.h"
#include "lib/record/rec.h"

/* LEAST..MOST: the range in which ratios, squares and sums are finite. COUNTS: 2^53, the largest
 * exact count. ROUNDED: rounding may take a sum of -ln p, each near 0, below 0. */
#define ROUNDED 1e-3
#define LEAST 1e-60
#define MOST 1e60
#define COUNTS 9007199254740992.0

/* The range of the values of a metric. The first row whose pattern fits the name counts. */
static const struct bound {
    const char *pattern;
    double lo, hi;
} bounds[] = {{"e2e_ns", LEAST, MOST},
              {"norm_latency_ns_*", LEAST, MOST},
              {"accuracy", 0, 1},
              {"accuracy_*", 0, 1},
              {"choice_accuracy*", 0, 1},
              {"bound_choice_accuracy*", 0, 1},
              {"distinct_*_ratio", 0, 1},
              {"repetition_ratio", 0, 1},
              {"chrf", 0, 1},
              {"chrf_corpus", 0, 1},
              {"rouge_l", 0, 1},
              {"token_f1", 0, 1},
              {"nll_nats", -ROUNDED, MOST},
              {"judge_nll_nats", -ROUNDED, MOST},
              {"nll_bits_per_byte", -ROUNDED, MOST},
              {"judge_bits_per_byte", -ROUNDED, MOST},
              {"entropy_nats", -ROUNDED, MOST},
              {"*_ppl", 0, MOST},
              {"*_ns", 0, MOST}, /* the gap of two tokens that are committed together is 0 */
              {"*_bytes", 0, MOST},
              {"*_per_s", 0, MOST},
              {"*", -MOST, MOST}};

static const struct bound *bound_of(const char *metric)
{
    const struct bound *bound = bounds;
    while (fnmatch(bound->pattern, metric, 0))
        bound++;
    return bound;
}

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

/* The ends of an interval, and the values of the launches. `least`: the least value of either. */
static int check_spread(const json_t *record, double least, struct err *e)
{
    double lo = rec_number(record, "lo"), hi = rec_number(record, "hi");
    const json_t *one;
    size_t i;
    if (check_number(record, "lo", least, MOST, e) || check_number(record, "hi", least, MOST, e))
        return -1;
    json_array_foreach(json_object_get(record, "launch_values"), i, one)
        if (check_number(one, "value", least, MOST, e))
            return err_prefix(e, "launch_values[%zu]", i);
    return lo > hi ? err_set(e, EXIT_BAD_DATA, "lo: expected at most hi, %.15g, got %.15g", hi, lo)
                   : 0;
}

int values_check(const json_t *record, struct err *e)
{
    static const char *const counts[] = {"passes", "rows", "scored_tokens", "scored_bytes"};
    if (strcmp(rec_kind(record), "metric") && strcmp(rec_kind(record), "quality"))
        return 0;
    if (check_name(record, e))
        return -1;
    const struct bound *bound = bound_of(rec_text(record, "metric"));
    if (check_number(record, "value", bound->lo, bound->hi, e) ||
        check_number(record, "copies", 1, COUNTS, e))
        return -1;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (check_number(record, counts[i], 0, COUNTS, e))
            return -1;
    return check_spread(record, bound->lo < 0 ? -MOST : 0, e);
}

int values_check_cost(const json_t *record, struct err *e)
{
    return values_check(record, e) || check_number(record, "value", LEAST, MOST, e) ||
                   check_spread(record, 0, e)
               ? -1
               : 0;
}
