/* content.h - a 64-bit hash of the values of a record: the order of members, white space and
 * escapes do not count. The hash is not cryptographic; callers state the chance of a collision. */
#pragma once

#include <jansson.h>
#include <stdint.h>

uint64_t content_of(const json_t *value); /* value NULL hashes as JSON null */
/* Hash of all members but `run`, which names the stream and is no measurement. */
uint64_t content_of_record(const json_t *record);
