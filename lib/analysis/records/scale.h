/* scale.h - the unit and the direction of a metric, in one place. A value in another unit would be
 * compared as it is, and "lower is better" for accuracy would reverse a front. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* 1: more is better; 0: less is better; -1: unknown. measure and score-* know their metrics. For
 * any other metric `said` decides. It is the member `direction` of a record that scale_check()
 * accepted, or NULL if the record has none. */
int scale_higher(const char *metric, const char *said);

/* Takes the next record. *firsts: the first record of each metric; NULL at first, the caller's
 * reference. Returns -1 (EXIT_BAD_DATA) if a metric or quality record has another `unit` or
 * `direction` than measure or score-* write for its metric. Members that are missing or null are
 * accepted, except the direction of a quality whose lower values are better.
 *
 * The records of any other metric must agree with the first one, in which both members may be
 * missing too. The message names `where` ("FILE:LINE"), the metric, and what was expected. */
int scale_check(json_t **firsts, const json_t *record, const char *where, struct err *e);
