/* dataset-json.h - the inside of dataset.h: one JSON text of a data set as a prompt. */
#ifndef TEXT_DATASET_JSON_H
#define TEXT_DATASET_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/text/dataset.h"

/* Fills out with {id?, text | prompt_ids | messages, reference?, answer?, task?, ...}. *format is
 * NULL until the first object showed it (borrowed constant). 1 kept, 0 passed over, -1 broken. */
int dataset_from_json(const struct dataset_options *o, const char **format, const char *bytes,
                      size_t n, json_t *out, struct err *e);
/* Sets a text of n bytes. -1: not UTF-8. */
int dataset_put(json_t *to, const char *key, const char *s, size_t n);
/* A text or a number as a text (the caller's reference); NULL: neither. */
json_t *dataset_as_text(json_t *v);
/* Space, tab, line feed, carriage return. */
int dataset_is_blank(char c);

#endif
