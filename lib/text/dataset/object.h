/* object.h - turns one JSON text of a data set into a prompt; private to dataset.h. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/text/dataset.h"

/* The result for one piece of a data set. */
enum dataset_piece {
    DATASET_BROKEN = -1,
    DATASET_SKIPPED, /* a row without a prompt */
    DATASET_KEPT,
    DATASET_ALPACA,  /* kept, in the prompt form of Alpaca */
    DATASET_FRAME,   /* no row: the meta or end record of a stream, or an item that its task leaves
                      * out */
    DATASET_END
};

/* Fills out with {id?, text | prompt_ids | messages, reference?, answer?, task?, ...}; sets id even
 * if the rest is broken. *format NULL: sets it to the format of this object, a constant. */
enum dataset_piece dataset_from_json(const struct dataset_options *options, const char **format,
                                     const char *bytes, size_t n, json_t *out, struct err *e);
/* Sets a member to a text of n bytes. -1: the bytes are not UTF-8. */
int dataset_put(json_t *to, const char *key, const char *bytes, size_t n);
/* A text, or a number turned into a text (the caller's reference); NULL: another value. */
json_t *dataset_as_text(json_t *value);
/* 1: space, tab, line feed or carriage return. */
int dataset_is_blank(char c);
