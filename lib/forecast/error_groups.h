/* error_groups.h - the errors of forecasts, grouped by what each forecast was compared with and by
 * model. An error is here
 *
 *     time forecast / time known
 *
 * so the ratio of a rate is inverted: a rate forecast too high and a time forecast too low are both
 * below 1. */
#pragma once

#include <jansson.h>

struct error_groups { /* begins as zeroes */
    json_t *records;  /* name of a group -> its record; owned */
    json_t *errors;   /* name of a group -> array of its errors; owned */
};
/* Keeps the error of a check record; ignores others, crossovers, and checks without a forecast. */
void error_groups_take(struct error_groups *groups, const json_t *record);
void error_groups_free(struct error_groups *groups);

/* An array of forecast records (what: errors), one for each group: n, and the median, the smallest
 * and the largest error. The caller's reference. */
json_t *error_groups_records(const struct error_groups *groups);
