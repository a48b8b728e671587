/* plain.c - see plain.h.
 *
 * A terminal obeys escape sequences, also those that begin with the single character U+009B, and a
 * mark of writing direction can reorder a line. Everything that is not a printable character of
 * well-formed UTF-8 is therefore written byte by byte in ASCII; nothing is dropped. */
#include "lib/base/plain.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Returns the length of the character at `text` and sets *code to its code point. Returns 0 if the
 * character is not well formed (RFC 3629). */
static size_t decode(const unsigned char *text, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = *text < 0x80       ? 1
               : *text >> 5 == 6  ? 2
               : *text >> 4 == 14 ? 3
               : *text >> 3 == 30 ? 4
                                  : 0;
    *code = n == 1 ? *text : n ? *text & (0xFFu >> (n + 1)) : 0;
    for (size_t i = 1; i < n; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        *code = *code << 6 | (text[i] & 63u);
    }
    return *code < least[n] || *code > 0x10FFFF ? 0 : n;
}

static int is_shown(uint32_t c)
{
    int control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029;
    int direction = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
                    (c >= 0x2066 && c <= 0x2069);
    int outside = (c >= 0xD800 && c <= 0xDFFF) || (c & 0xFFFE) == 0xFFFE;
    return !control && !direction && !outside;
}

size_t plain_next(const char *text, int *shown)
{
    uint32_t code;
    size_t n = decode((const unsigned char *)text, &code);
    *shown = n && is_shown(code);
    return n ? n : 1;
}

/* Returns the length of the printable ASCII at the start of a text. Most messages are ASCII, so
 * this is the fast path of plain_text(). */
static size_t ascii(const char *text)
{
    size_t n = 0;
    while (text[n] >= ' ' && text[n] <= '~')
        n++;
    return n;
}

void plain_text(char *dst, size_t size, const char *src)
{
    size_t at = 0;
    while (*src) {
        int shown = 1;
        size_t n = ascii(src);
        n = n < size - at ? n : size - at - 1;
        if (!n)
            n = plain_next(src, &shown);
        if (at + (shown ? n : 4 * n) >= size)
            break;
        if (shown)
            memcpy(dst + at, src, n);
        for (size_t i = 0; i < n && !shown; i++)
            snprintf(dst + at + 4 * i, 5, "\\x%02x", (unsigned char)src[i]);
        at += shown ? n : 4 * n;
        src += n;
    }
    dst[at] = 0;
}

const char *plain_number(char dst[PLAIN_NUMBER], double v)
{
    int whole = fabs(v) <= 9007199254740992.0 && v == floor(v); /* whole, and exact in a double */
    snprintf(dst, PLAIN_NUMBER, whole ? "%.0f" : "%.15g", v);
    return dst;
}
