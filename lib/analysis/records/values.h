/* values.h - checks the name and the numbers of a metric or quality record. All tools that join
 * records call it, so a record that one of them leaves out is left out by all of them. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Returns -1 (EXIT_BAD_DATA) if a metric or quality record has a name of a metric that is no field
 * name, or a number out of the range of its metric; the message names the member. Other kinds are
 * accepted. */
int values_check(const json_t *record, struct err *e);
/* For a metric that is a cost: its value must also be above 0. */
int values_check_cost(const json_t *record, struct err *e);
