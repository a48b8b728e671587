/* scale.h - checks that the unit and the direction of a value are those of its metric. A value in
 * another unit would be compared as it is, and "lower is better" for accuracy would reverse a
 * front. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Returns -1 (EXIT_BAD_DATA) if a metric or quality record has another `unit` or `direction` than
 * measure or score-* write for its metric. The message names `where` ("FILE:LINE"), the metric, and
 * what was expected. Other metrics, other kinds, and members that are missing or null are
 * accepted, except the direction of a quality whose lower values are better. */
int scale_check(const json_t *record, const char *where, struct err *e);
