/* content.h - a hash of 64 bits of what a record says, made of values and not of bytes: the order
 * of members, white space and escapes do not count. Not SHA-256: its chance of a collision is said
 * where it is used.
 */
#ifndef RECORD_CONTENT_H
#define RECORD_CONTENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/numbers.h"

uint64_t content_of(const json_t *value); /* NULL: as null */
uint64_t content_of_numbers(const struct numbers *l); /* as of the JSON list */
/* What a member adds to the sum of a record; of `run`, which names the stream and not what was
 * measured, nothing. key[0..n-1]; value: its hash. */
uint64_t content_of_member(const char *key, size_t n, uint64_t value);
uint64_t content_of_record(const json_t *record); /* the sum over its members */

#endif
