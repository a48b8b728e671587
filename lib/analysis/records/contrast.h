/* contrast.h - metric records against each other: the values of their launches, and the ratio of
 * two (lib/stat/ratio.h), which is the same wherever it is printed or drawn. */
#ifndef ANALYSIS_RECORDS_CONTRAST_H
#define ANALYSIS_RECORDS_CONTRAST_H

#include <jansson.h>
#include <stddef.h>

#include "lib/stat/ratio.h"

/* The launch values of a metric record, ascending by launch; the caller frees. Returns how many. */
size_t contrast_launches(const json_t *record, struct launch_value **values);
/* `record` over `base` with its 95 % interval; all NaN where one has no launch values. */
struct ratio contrast_ratio(const json_t *base, const json_t *record);

/* What sampling was after, and why it ended short of that (NULL: nobody said). */
struct contrast_goal { double precision; const char *stopped; };
/* Sets value, lo, hi, verdict, p and how many launches are wanted in a record with `metric`. holm:
 * p adjusted for the grid; NaN with the interval. */
void contrast_put(json_t *record, const struct ratio *r, double holm,
                  const struct contrast_goal *goal);

#endif
