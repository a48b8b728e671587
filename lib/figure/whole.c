/* whole.c - see whole.h. A PNG has a checksum for each chunk, and a PDF has the place of each
 * object, so no gap escapes. An SVG has neither: only its end is checked here, and gnuplot.c draws
 * it twice. */
#include "lib/figure/whole.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static int is_svg(const struct buf *b)
{
    static const char last[] = "</svg>";
    const size_t n = sizeof last - 1;
    size_t len = b->len;
    while (len > n && b->data[len - 1] == '\n')
        len--;
    return len >= n && !memcmp(b->data + len - n, last, n);
}

static uint32_t big_endian(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static int is_png(const struct buf *b)
{
    enum { SIGNATURE = 8, FRAME = 12 }; /* length, kind and checksum of a chunk */
    size_t at = SIGNATURE;
    if (b->len < SIGNATURE || memcmp(b->data, "\x89PNG\r\n\x1a\n", SIGNATURE))
        return 0;
    while (b->len - at >= FRAME) {
        const char *chunk = b->data + at;
        size_t n = big_endian(chunk);
        if (n > b->len - at - FRAME ||
            crc32(0, (const Bytef *)chunk + 4, (uInt)n + 4) != big_endian(chunk + 8 + n))
            return 0;
        at += n + FRAME;
        if (!memcmp(chunk + 4, "IEND", 4))
            return at == b->len;
    }
    return 0;
}

/* The place that the end of the file names has a list of the places of objects. */
static int is_pdf(const struct buf *b)
{
    enum { TAIL = 1024 };
    size_t from = b->len < TAIL ? 0 : b->len - TAIL;
    const char *mark = memmem(b->data + from, b->len - from, "startxref", 9);
    if (!mark)
        return 0;
    char *after;
    unsigned long long at = strtoull(mark + 9, &after, 10);
    while (isspace((unsigned char)*after))
        after++;
    if (strncmp(after, "%%EOF", 5) || at >= b->len)
        return 0;
    const char *list = b->data + at;
    return !strncmp(list, "xref", 4) || (isdigit((unsigned char)*list) &&
                                              memmem(list, 32 < b->len - at ? 32 : b->len - at,
                                                     " obj", 4));
}

int whole_check(const char *format, const char *output, const struct buf *b, struct err *e)
{
    if (!b->len)
        return err_set(e, EXIT_INTERNAL, "gnuplot drew nothing for %s", output);
    int whole = !strcmp(format, "svg")   ? is_svg(b)
                : !strcmp(format, "png") ? is_png(b)
                                         : is_pdf(b);
    return whole ? 0
                 : err_set(e, EXIT_IO, "%s: expected a whole %s from gnuplot, got %zu bytes with "
                           "gaps: is there a limit on memory or the size of files (ulimit)?",
                           output, format, b->len);
}
