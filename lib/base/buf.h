/* buf.h - a growable array of bytes. A NUL follows the last byte; `len` does not count it.
 *
 *     struct buf b = {0};
 *     buf_format(&b, "%d", 7);
 *     puts(b.data);
 *     buf_free(&b); */
#pragma once

#include <stddef.h>

struct buf {
    char *data; /* NULL before the first append; owned by the buf */
    size_t len, cap;
};

void buf_reserve(struct buf *text, size_t more); /* room for `more` bytes and the NUL */
void buf_put(struct buf *text, const void *bytes, size_t n);
void buf_text(struct buf *text, const char *bytes);
void buf_char(struct buf *text, char c);
/* Appends `bytes` with each `old` replaced by `by`; `old` must not be empty. */
void buf_replaced(struct buf *text, const char *bytes, const char *old, const char *by);
void buf_format(struct buf *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_clear(struct buf *text); /* length 0, memory kept */
void buf_free(struct buf *text);  /* frees the memory; *text becomes all zero */
