/* about.h - what the records of one configuration share, and metric records repeat. */
#ifndef ANALYSIS_ABOUT_H
#define ANALYSIS_ABOUT_H

#include <jansson.h>

#include "lib/base/err.h"

/* `config` and the settings that a generation record has; the caller's reference. */
json_t *about_of(const json_t *record);
/* -1 (EXIT_BAD_DATA): a setting has another value in the record. */
int about_check(const json_t *settings, const json_t *record, struct err *e);
/* Order of a report: model, batch, length, steps, then the text of `config`. */
int about_order(const json_t *a, const json_t *b);

#endif
