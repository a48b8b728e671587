/* whole.c - see whole.h. A PNG has a checksum for each chunk. The end of a PDF has the place of its
 * table of objects, and a gap before the table makes this place wrong. An SVG has neither, so only
 * its end is checked here, and gnuplot.c draws it twice. */
#include "lib/figure/whole.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static int is_svg(const struct buf *text)
{
    static const char last[] = "</svg>";
    const size_t n = sizeof last - 1;
    size_t len = text->len;
    while (len > n && text->data[len - 1] == '\n')
        len--;
    return len >= n && !memcmp(text->data + len - n, last, n);
}

static uint32_t big_endian(const char *at)
{
    const unsigned char *u = (const unsigned char *)at;
    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

static int is_png(const struct buf *text)
{
    enum { SIGNATURE = 8, FRAME = 12 }; /* length, kind and checksum of a chunk */
    size_t at = SIGNATURE;
    if (text->len < SIGNATURE || memcmp(text->data, "\x89PNG\r\n\x1a\n", SIGNATURE))
        return 0;
    while (text->len - at >= FRAME) {
        const char *chunk = text->data + at;
        size_t n = big_endian(chunk);
        if (n > text->len - at - FRAME ||
            crc32(0, (const Bytef *)chunk + 4, (uInt)n + 4) != big_endian(chunk + 8 + n))
            return 0;
        at += n + FRAME;
        if (!memcmp(chunk + 4, "IEND", 4))
            return at == text->len;
    }
    return 0;
}

/* 1: the end of the file names a place (startxref), and the table of objects begins there. */
static int is_pdf(const struct buf *text)
{
    enum { TAIL = 1024 };
    size_t from = text->len < TAIL ? 0 : text->len - TAIL;
    const char *mark = memmem(text->data + from, text->len - from, "startxref", 9);
    if (!mark)
        return 0;
    char *after;
    unsigned long long at = strtoull(mark + 9, &after, 10);
    while (isspace((unsigned char)*after))
        after++;
    if (strncmp(after, "%%EOF", 5) || at >= text->len)
        return 0;
    const char *list = text->data + at;
    const size_t near = 32 < text->len - at ? 32 : text->len - at;
    return !strncmp(list, "xref", 4) ||
           (isdigit((unsigned char)*list) && memmem(list, near, " obj", 4));
}

int whole_check(const char *format, const char *output, const struct buf *text, struct err *e)
{
    if (!text->len)
        return err_set(e, EXIT_INTERNAL, "gnuplot drew nothing for %s", output);
    int whole = !strcmp(format, "svg")   ? is_svg(text)
                : !strcmp(format, "png") ? is_png(text)
                                         : is_pdf(text);
    return whole ? 0
                 : err_set(e, EXIT_IO, "%s: expected a whole %s from gnuplot, got %zu bytes with "
                           "gaps: is there a limit on memory or the size of files (ulimit)?",
                           output, format, text->len);
}
