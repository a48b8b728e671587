/* split.h - cuts a stream into JSON texts without parsing: an array of objects, NDJSON and
 * concatenated objects all give one object at a time, in constant memory. A broken object does not
 * affect the next one. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct split {
    FILE *f;
    size_t limit;    /* bytes of one object */
    int64_t line;    /* line where the last object began, from 1 */
    int64_t at;      /* line of the reading position */
    int started, depth_array;
};
void split_start(struct split *split, FILE *file, size_t limit);
/* 1: *text holds the next object's text; 0: end; -1: over the limit or cut at the end (65). */
int split_next(struct split *split, struct buf *text, struct err *e);
