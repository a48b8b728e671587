/* error_groups.h - the errors of forecasts, grouped by the source of the known value and by model.
 * In this file an error is
 *
 *     forecast time / known time
 *
 * For a rate (tokens a second) the ratio is inverted. So an error below 1 always means that the
 * forecast is too optimistic. */
#pragma once

#include <jansson.h>

struct error_groups { /* all zero at first */
    json_t *records;  /* name of a group -> its record; owned */
    json_t *errors;   /* name of a group -> array of its errors; owned */
};
/* Keeps the error of a check record. Ignores other records, crossovers, and checks without a
 * forecast. */
void error_groups_take(struct error_groups *groups, const json_t *record);
void error_groups_free(struct error_groups *groups);

/* An array of forecast records (member what: errors), one for each group: number of errors, median,
 * smallest and largest error. The caller's reference. */
json_t *error_groups_records(const struct error_groups *groups);
