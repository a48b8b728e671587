/* buf.c - growable bytes; see buf.h.
 *
 * Capacity doubles, so n appends cost O(n). Every append writes a NUL after the last byte, so
 * `data` can be read as a C string. */
#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"
#include "lib/base/mem.h"

void buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    if (mem_size_add(b->len, more, &need) || mem_size_add(need, 1, &need))
        err_machine(__FILE__, __LINE__, "size overflow");
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap < need)
            cap = cap > (size_t)-1 / 2 ? need : 2 * cap;
        b->data = mem_resize(b->data, cap, 1);
        b->cap = cap;
    }
    b->data[b->len] = 0;
}

void buf_put(struct buf *b, const void *bytes, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
}

void buf_text(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_replaced(struct buf *b, const char *s, const char *old, const char *by)
{
    for (const char *at; (at = strstr(s, old)); s = at + strlen(old)) {
        buf_put(b, s, (size_t)(at - s));
        buf_text(b, by);
    }
    buf_text(b, s);
}

void buf_format(struct buf *b, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    buf_reserve(b, (size_t)n);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
    va_end(again);
    b->len += (size_t)n;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = 0;
}

void buf_free(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}
