/* split.h - cuts a stream into JSON texts without parsing. An array of objects, NDJSON and
 * concatenated objects all give one object at a time, in constant memory. A broken object does not
 * affect the next object. */
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
    int started, depth_array; /* 1: the first byte was read; arrays that are open around objects */
};
void split_start(struct split *split, FILE *file, size_t limit);
/* Returns 1: *text holds the text of the next object; 0: the stream ends. -1 (EXIT_BAD_DATA): the
 * object is longer than the limit, or the stream ends inside it. */
int split_next(struct split *split, struct buf *text, struct err *e);
