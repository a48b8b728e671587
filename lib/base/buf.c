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

void buf_reserve(struct buf *text, size_t more)
{
    size_t need;
    if (mem_size_add(text->len, more, &need) || mem_size_add(need, 1, &need))
        err_machine(__FILE__, __LINE__, "size overflow");
    if (need > text->cap) {
        size_t cap = text->cap ? text->cap : 64;
        while (cap < need)
            cap = cap > (size_t)-1 / 2 ? need : 2 * cap;
        text->data = mem_resize(text->data, cap, 1);
        text->cap = cap;
    }
    text->data[text->len] = 0;
}

void buf_put(struct buf *text, const void *bytes, size_t n)
{
    buf_reserve(text, n);
    if (n)
        memcpy(text->data + text->len, bytes, n);
    text->len += n;
    text->data[text->len] = 0;
}

void buf_text(struct buf *text, const char *bytes)
{
    buf_put(text, bytes, strlen(bytes));
}

void buf_char(struct buf *text, char c)
{
    buf_put(text, &c, 1);
}

void buf_replaced(struct buf *text, const char *bytes, const char *old, const char *by)
{
    for (const char *at; (at = strstr(bytes, old)); bytes = at + strlen(old)) {
        buf_put(text, bytes, (size_t)(at - bytes));
        buf_text(text, by);
    }
    buf_text(text, bytes);
}

void buf_format(struct buf *text, const char *format, ...)
{
    va_list ap, again;
    va_start(ap, format);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    buf_reserve(text, (size_t)n);
    vsnprintf(text->data + text->len, (size_t)n + 1, format, again);
    va_end(again);
    text->len += (size_t)n;
}

void buf_clear(struct buf *text)
{
    text->len = 0;
    if (text->data)
        text->data[0] = 0;
}

void buf_free(struct buf *text)
{
    free(text->data);
    *text = (struct buf){0};
}
