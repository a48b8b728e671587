/* contrast.h - reads the launch values of metric records, and computes the ratio of two metric
 * records over launches (lib/stat/ratio.h). Every tool and figure uses this one ratio. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/stat/ratio.h"

/* Sets *values to the launch values of a metric record, ascending by launch; the caller frees.
 * Returns how many. */
size_t contrast_launches(const json_t *record, struct launch_value **values);
/* The ratio record / base with its 95 % interval; all NaN if one of them has no launch values. */
struct ratio contrast_ratio(const json_t *base, const json_t *record);

/* precision: the wanted half-width of the log ratio (0.02: +-2 %). stopped: why sampling stopped
 * before that width was reached; NULL: unknown. */
struct contrast_goal { double precision; const char *stopped; };
/* Sets value, lo, hi, verdict, p and the wanted launches in a record that has the member `metric`.
 * holm: p adjusted for all ratios; NaN without an interval. */
void contrast_put(json_t *record, const struct ratio *ratio, double holm,
                  const struct contrast_goal *goal);
