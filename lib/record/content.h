/* content.h - a hash of 64 bits of what a record says, made of values and not of bytes: the order
 * of members, white space and escapes do not count. Not SHA-256: its chance of a collision is said
 * where it is used.
 */
#ifndef RECORD_CONTENT_H
#define RECORD_CONTENT_H

#include <jansson.h>
#include <stdint.h>

uint64_t content_of(const json_t *value); /* NULL: as null */
/* Hash of all members but `run`, which names the stream and not what was measured. */
uint64_t content_of_record(const json_t *record);

#endif
