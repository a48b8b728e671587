/* utf8.c - see utf8.h.
 *
 * Validity follows the ranges of Unicode's table 3-7 (no overlong form, no surrogate, nothing above
 * U+10FFFF). Classes come from utf8proc; a character newer than Unicode 14 has the class of its
 * stand-in. */
#include "lib/text/utf8.h"

#include <string.h>
#include <utf8proc.h>

int utf8_char(const char *text, size_t n)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned first = bytes[0], lo = 0x80, hi = 0xBF;
    if (first < 0x80)
        return 1;
    int more = first >= 0xC2 && first <= 0xDF   ? 1
               : (first & 0xF0) == 0xE0         ? 2
               : first >= 0xF0 && first <= 0xF4 ? 3
                                                : 0;
    if (!more)
        return -1;
    if (first == 0xE0)
        lo = 0xA0; /* below: overlong forms */
    if (first == 0xED)
        hi = 0x9F; /* above: surrogates */
    if (first == 0xF0)
        lo = 0x90; /* below: overlong forms */
    if (first == 0xF4)
        hi = 0x8F; /* above: more than U+10FFFF */
    for (int i = 1; i <= more; i++) {
        if ((size_t)i >= n || bytes[i] < lo || bytes[i] > hi)
            return -i;
        lo = 0x80;
        hi = 0xBF;
    }
    return more + 1;
}

size_t utf8_valid(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        while (i + 8 <= n && (memcpy(&eight, text + i, 8), !(eight & 0x8080808080808080u)))
            i += 8;
        if (i >= n)
            break;
        int k = utf8_char(text + i, n - i);
        if (k < 0)
            return i;
        i += (size_t)k;
    }
    return n;
}

size_t utf8_whole(const char *text, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        unsigned char c = (unsigned char)text[n - k];
        if (c >= 0xC0) /* the first byte of a character */
            return utf8_char(text + n - k, k) == -(int)k ? n - k : n;
        if (c < 0x80)
            return n;
    }
    return n;
}

uint32_t utf8_read(const char *text, size_t *len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    uint32_t c = bytes[0];
    *len = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (*len > 1)
        c &= 0x7Fu >> *len;
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (bytes[i] & 0x3Fu);
    return c;
}

size_t utf8_before(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80);
    return at;
}

void utf8_put(struct buf *text, uint32_t code)
{
    utf8proc_uint8_t s[4];
    buf_put(text, s, (size_t)utf8proc_encode_char((utf8proc_int32_t)code, s));
}

void utf8_put_lossy(struct buf *text, const char *bytes, size_t n)
{
    while (n > 0) {
        size_t good = utf8_valid(bytes, n);
        buf_put(text, bytes, good);
        bytes += good;
        n -= good;
        if (n > 0) {
            size_t bad = (size_t)-utf8_char(bytes, n);
            utf8_put(text, 0xFFFD);
            bytes += bad;
            n -= bad;
        }
    }
}

int utf8_is_space(uint32_t code)
{
    if (code < 0x80)
        return code == ' ' || (code >= 9 && code <= 13);
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)code);
    return code == 0x85 || c == UTF8PROC_CATEGORY_ZS || c == UTF8PROC_CATEGORY_ZL ||
           c == UTF8PROC_CATEGORY_ZP;
}

int utf8_is_word(uint32_t code)
{
    if ((code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
        (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189))
        return 1; /* circled letters are symbols, but alphabetic */
    switch (utf8proc_category((utf8proc_int32_t)utf8_stand_in(code))) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: case UTF8PROC_CATEGORY_PC:
        return 1;
    default:
        return code == 0x200C || code == 0x200D;
    }
}
