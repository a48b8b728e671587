/* mem.c - allocations that end the process when they fail; see mem.h.
 *
 * A measurement that ran out of host memory has no valid result, and error paths for it would be
 * everywhere and untested. Device memory is different: the back end reports when it is short. */
#include "lib/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/err.h"

static void *check(void *p)
{
    if (!p)
        err_machine(__FILE__, __LINE__, "out of host memory");
    return p;
}

void *mem_alloc(size_t bytes)
{
    return check(malloc(bytes ? bytes : 1));
}

void *mem_zero(size_t count, size_t size)
{
    return check(calloc(count ? count : 1, size ? size : 1));
}

void *mem_resize(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (mem_size_mul(count, size, &bytes))
        err_machine(__FILE__, __LINE__, "size overflow");
    return check(realloc(p, bytes ? bytes : 1));
}

char *mem_text(const char *text)
{
    return check(strdup(text));
}

char *mem_format(const char *format, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, format);
    int n = vasprintf(&text, format, ap);
    va_end(ap);
    return check(n < 0 ? NULL : text);
}

void *mem_aligned(size_t bytes)
{
    size_t padded;
    if (mem_size_add(bytes, 63, &padded))
        err_machine(__FILE__, __LINE__, "size overflow");
    padded &= ~(size_t)63;
    return check(aligned_alloc(64, padded ? padded : 64));
}

int mem_size_mul(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out) ? -1 : 0;
}

int mem_size_add(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out) ? -1 : 0;
}
