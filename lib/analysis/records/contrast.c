/* contrast.c - see contrast.h. The member `launch_values` of a metric record has one value for each
 * launch. A null value is left out. The other values are sorted, so that their order in the record
 * does not change any interval. */
#include "lib/analysis/records/contrast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/rec.h"

static const double LEVEL = 0.95;

static int by_launch(const void *a, const void *b)
{
    const struct launch_value *x = a, *y = b;
    return x->launch != y->launch ? (x->launch < y->launch ? -1 : 1)
                                  : (x->value > y->value) - (x->value < y->value);
}

size_t contrast_launches(const json_t *record, struct launch_value **values)
{
    const json_t *list = json_object_get(record, "launch_values");
    size_t n = json_array_size(list), m = 0;
    struct launch_value *value = mem_zero(n, sizeof *value);
    for (size_t i = 0; i < n; i++) {
        const json_t *entry = json_array_get(list, i);
        value[m] = (struct launch_value){rec_int(entry, "launch", 0), rec_number(entry, "value")};
        m += isnan(value[m].value) ? 0 : 1;
    }
    if (m)
        qsort(value, m, sizeof *value, by_launch);
    *values = value;
    return m;
}

struct ratio contrast_ratio(const json_t *base, const json_t *record)
{
    struct launch_value *a, *b;
    size_t n = contrast_launches(base, &a), m = contrast_launches(record, &b);
    double *work = mem_zero(n + m, sizeof *work);
    struct ratio ratio = ratio_of(a, n, b, m, LEVEL, work);
    free(work);
    free(a);
    free(b);
    return ratio;
}

/* The verdict word: FASTER and SLOWER for times and rates, LESS and MORE for other costs. */
static const char *verdict_of(const char *metric, const struct ratio *ratio)
{
    int rate = strstr(metric, "_per_s") != NULL, time = strstr(metric, "_ns") != NULL;
    switch (ratio_verdict(ratio, RATIO_ZONE)) {
    case RATIO_SAME: return "SAME";
    case RATIO_ABOVE: return rate ? "FASTER" : time ? "SLOWER" : "MORE";
    case RATIO_BELOW: return rate ? "SLOWER" : time ? "FASTER" : "LESS";
    case RATIO_UNDECIDED: break;
    }
    return "UNDECIDED";
}

/* Sets two numbers of launches: launches_to_decide for a verdict, launches_more for the wanted
 * precision. */
static void put_launches(json_t *j, const struct ratio *ratio, const struct contrast_goal *goal)
{
    size_t decide = ratio_deciding(ratio, RATIO_ZONE);
    int open = ratio_verdict(ratio, RATIO_ZONE) == RATIO_UNDECIDED;
    const char *why = ratio->half <= goal->precision ? "precision" : goal->stopped;
    rec_set_int(j, "launches", (int64_t)ratio->launches);
    int more = open && decide > ratio->launches;
    rec_set_number(j, "launches_to_decide", more ? (double)decide : (double)NAN,
                   !open    ? "decided"
                   : decide ? "the interval is wide because prompts differ, not launches"
                            : "the spread is not known");
    rec_set_number(j, "precision", goal->precision, "none");
    rec_set_number(j, "half_width", ratio->half, ratio->reason);
    /* Any reason but too few launches stays, however many launches follow. */
    int hopeless = ratio->reason && strcmp(ratio->reason, LAUNCH_FEW);
    rec_set_int(j, "launches_more", hopeless ? 0 : (int64_t)ratio_more(ratio, goal->precision));
    rec_set_text(j, "stop_reason", why);
}

void contrast_put(json_t *record, const struct ratio *ratio, double holm,
                  const struct contrast_goal *goal)
{
    const char *metric = rec_text(record, "metric");
    rec_set_number(record, "value", ratio->value, ratio->reason);
    rec_set_number(record, "lo", ratio->lo, ratio->reason);
    rec_set_number(record, "hi", ratio->hi, ratio->reason);
    json_object_set_new(record, "level", json_real(ratio->level));
    json_object_set_new(record, "method", json_string(ratio->method));
    json_object_set_new(record, "verdict", json_string(verdict_of(metric ? metric : "", ratio)));
    json_object_set_new(record, "zone", json_real(RATIO_ZONE));
    rec_set_number(record, "p", ratio->p, ratio->reason);
    rec_set_number(record, "p_holm", holm, ratio->reason);
    put_launches(record, ratio, goal);
}
