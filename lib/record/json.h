/* json.h - strict JSON files, and typed, range-checked look-ups whose messages name the place.
 *
 * jansson parses; duplicate keys, NaN, bad UTF-8 and trailing text are errors. Integers
 * beyond 64 bits (the 31-digit model_max_length of Hugging Face files) become reals; all others are
 * exact.
 *
 *     json_t *j = json_file(path, 1 << 20, &e);
 *     int64_t n;
 *     if (!j || json_int(j, path, "hidden_size", 1, 1 << 20, &n, &e)) ... */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* Parses a whole file of at most `limit` bytes. Returns NULL with *e filled: EXIT_BAD_DATA with
 * line and column, EXIT_NO_INPUT, EXIT_IO. The result is the caller's reference (json_decref). */
json_t *json_file(const char *path, size_t limit, struct err *e);
/* json_file() from bytes in memory; `where` names them in messages. */
json_t *json_bytes(const char *bytes, size_t n, const char *where, struct err *e);

/* json_loadb() that refuses duplicate keys and bytes of NUL; integers beyond 64 bits are errors,
 * too. */
json_t *json_strict(const char *bytes, size_t n, json_error_t *why);

/* Appends value as text, with jansson's flags. -1: value is not a JSON value. */
int json_put(const json_t *value, size_t flags, struct buf *to);

/* These functions read required members. They return -1 with "where: KEY: expected integer from LO
 * to HI, got ..." and the like. */
int json_int(const json_t *object, const char *where, const char *key, int64_t lo, int64_t hi,
             int64_t *out, struct err *e);
int json_number(const json_t *object, const char *where, const char *key, double lo, double hi,
                double *out, struct err *e);
int json_flag(const json_t *object, const char *where, const char *key, int *out, struct err *e);
/* *out is borrowed from object. */
int json_text(const json_t *object, const char *where, const char *key, const char **out,
              struct err *e);
/* Writes a value (NULL: "nothing") as short JSON for a message. Returns text. */
enum { JSON_SHOWN = 80 };
const char *json_shown(const json_t *value, char text[JSON_SHOWN]);
/* Returns the value at a path of keys and list indices, joined by points ("input.context",
 * "tests.0"), or NULL; borrowed. A member whose key is the whole path, with its points, wins. */
json_t *json_at(const json_t *object, const char *path);
/* Returns the member `key`, an object; borrowed. If the member is missing or not an object, it is
 * set to an empty object. */
json_t *json_within(json_t *object, const char *key);
/* 1 when the member is there and not null. */
int json_has(const json_t *object, const char *key);
