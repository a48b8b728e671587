/* sse.h - cuts a stream of server-sent events into events.
 *
 * The lines up to an empty line are an event. Its data are the texts after "data:", joined by line
 * feeds. Lines end with LF, CR or CR LF. Comments (":...") and other fields are dropped. Source:
 * WHATWG HTML, "Server-sent events". */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { SSE_EVENT = 1 << 20 /* bytes of an event, at most */ };

struct sse { /* begins as zeroes */
    struct buf line, data;
    int has_data;  /* 1: a data field came, perhaps an empty one */
    int after_cr;  /* 1: the last line ended with CR, so an LF that follows belongs to it */
};
/* Gets the data of one event. Returns -1 if no more events are wanted. */
typedef int sse_fn(void *ctx, const char *data, size_t n, struct err *e);
/* Takes the next bytes. -1: fn returned -1, or an event is too long (EXIT_BAD_DATA). */
int sse_feed(struct sse *sse, const char *bytes, size_t n, sse_fn *fn, void *ctx, struct err *e);
void sse_free(struct sse *sse);
