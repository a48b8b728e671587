/* gather.h - all records of some kinds, from files that fit in memory. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Whether records carry the marks of their machine and file (lib/analysis/records/source.h). Marked
 * records are copies for reading: their marks are no fields of a stream. */
enum gather { GATHER_PLAIN, GATHER_MARKED };

/* Reads paths[0..n-1] (n = 0 or "-": standard input) and returns an array of the records whose kind
 * is in `kinds` (ends with NULL), in the order of the files. Lines without a record are left out.
 * *unsound: the first such line, or the first stream that was cut or changed after it was written
 * ("FILE:LINE: ..."); code 0 if there is none. NULL: *e; no record of these kinds (EXIT_BAD_DATA),
 * or an unreadable file. The caller's reference. */
json_t *gather_records(const char *const *paths, size_t n, const char *const *kinds,
                       enum gather marks, struct err *unsound, struct err *e);
