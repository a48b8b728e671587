/* gather.h - reads all records of some kinds from files into memory. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/* GATHER_MARKED: each record is marked with its machine and file (lib/analysis/records/source.h).
 * Marked records must not be written to a stream, because the marks are no fields of records. */
enum gather { GATHER_PLAIN, GATHER_MARKED };

/* Reads paths[0..n-1] (n = 0 or "-": standard input) and returns an array of the records whose kind
 * is in `kinds` (ends with NULL), in the order of the files. The caller's reference. Lines without
 * a record are left out. *unsound reports the first of these lines, or the first stream that was
 * cut or changed after it was written ("FILE:LINE: ..."); its code is 0 if there is none. Returns
 * NULL with *e if a file is unreadable, or, with EXIT_BAD_DATA, if there is no record of these
 * kinds or scale_check() refuses a record. */
json_t *gather_records(const char *const *paths, size_t n, const char *const *kinds,
                       enum gather marks, struct err *unsound, struct err *e);
