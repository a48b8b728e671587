/* tokenizer-utf8.c - see tokenizer-parts.h: UTF-8, GPT-2's byte alphabet and NFC.
 *
 * utf8proc knows the tables. Its own reordering of combining marks is a bubble sort, quadratic on a
 * long run of them, so the runs are sorted here and only composition is left to it. */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/mem.h"
#include "lib/text/tokenizer-parts.h"

#define NFC ((utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE))

int utf8_char(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned c = s[0], lo = 0x80, hi = 0xBF;
    if (c < 0x80)
        return 1;
    int more = c >= 0xC2 && c <= 0xDF ? 1 : (c & 0xF0) == 0xE0 ? 2 : c >= 0xF0 && c <= 0xF4 ? 3 : 0;
    if (!more)
        return -1;
    if (c == 0xE0)
        lo = 0xA0; /* shorter forms exist */
    if (c == 0xED)
        hi = 0x9F; /* surrogates */
    if (c == 0xF0)
        lo = 0x90;
    if (c == 0xF4)
        hi = 0x8F; /* above U+10FFFF */
    for (int i = 1; i <= more; i++) {
        if ((size_t)i >= n || s[i] < lo || s[i] > hi)
            return -i;
        lo = 0x80;
        hi = 0xBF;
    }
    return more + 1;
}

size_t utf8_valid(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        uint64_t eight;
        while (i + 8 <= n && (memcpy(&eight, s + i, 8), !(eight & 0x8080808080808080u)))
            i += 8;
        if (i >= n)
            break;
        int k = utf8_char(s + i, n - i);
        if (k < 0)
            return i;
        i += (size_t)k;
    }
    return n;
}

uint32_t utf8_read(const char *text, size_t *len)
{
    const unsigned char *s = (const unsigned char *)text;
    uint32_t c = s[0];
    *len = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (*len > 1)
        c &= 0x7Fu >> *len;
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (s[i] & 0x3Fu);
    return c;
}

void utf8_put(struct buf *b, uint32_t code)
{
    utf8proc_uint8_t s[4];
    buf_put(b, s, (size_t)utf8proc_encode_char((utf8proc_int32_t)code, s));
}

void utf8_put_lossy(struct buf *b, const char *s, size_t n)
{
    while (n > 0) {
        size_t good = utf8_valid(s, n);
        buf_put(b, s, good);
        s += good;
        n -= good;
        if (n > 0) {
            size_t bad = (size_t)-utf8_char(s, n);
            utf8_put(b, 0xFFFD);
            s += bad;
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
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ME: case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL: case UTF8PROC_CATEGORY_PC:
        return 1;
    default:
        return code == 0x200C || code == 0x200D;
    }
}

uint32_t alphabet_code(unsigned b)
{
    if (b <= 32)
        return 256 + b;
    if (b >= 127 && b <= 160)
        return 289 + (b - 127);
    return b == 173 ? 323 : b;
}

int alphabet_byte(uint32_t c)
{
    if ((c >= 33 && c <= 126) || (c >= 161 && c <= 255 && c != 173))
        return (int)c;
    if (c >= 256 && c <= 288)
        return (int)c - 256;
    if (c >= 289 && c <= 322)
        return (int)c - 289 + 127;
    return c == 323 ? 173 : -1;
}

int alphabet_bytes(const char *piece, size_t n, struct buf *out)
{
    size_t len, before = out->len;
    buf_reserve(out, n);
    for (size_t i = 0; i < n; i += len) {
        int b = alphabet_byte(utf8_read(piece + i, &len));
        if (b < 0) {
            out->len = before;
            return -1;
        }
        buf_char(out, (char)b);
    }
    return 0;
}

void alphabet_piece(const char *bytes, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        utf8_put(out, alphabet_code((unsigned char)bytes[i]));
}

int nfc_may_change(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] >= 0xCC)
            return 1;
    return 0;
}

static unsigned combining_class(utf8proc_int32_t code)
{
    return (unsigned)utf8proc_get_property(code)->combining_class;
}

/* Stable counting sort of n marks by combining class. */
static void sort_long_run(utf8proc_int32_t *v, size_t n)
{
    size_t at[257] = {0};
    utf8proc_int32_t *copy = mem_alloc(n * sizeof *copy);
    memcpy(copy, v, n * sizeof *copy);
    for (size_t i = 0; i < n; i++)
        at[combining_class(v[i]) + 1]++;
    for (size_t c = 1; c < 257; c++)
        at[c] += at[c - 1];
    for (size_t i = 0; i < n; i++)
        v[at[combining_class(copy[i])]++] = copy[i];
    free(copy);
}

static void sort_run(utf8proc_int32_t *v, size_t n)
{
    if (n > 32) {
        sort_long_run(v, n);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        utf8proc_int32_t x = v[i];
        unsigned c = combining_class(x);
        size_t k = i;
        for (; k > 0 && combining_class(v[k - 1]) > c; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

/* Canonical order: each run of marks (class not 0) sorted by class, equals kept in order. */
static void sort_marks(utf8proc_int32_t *v, size_t n)
{
    size_t begin = 0;
    for (size_t i = 0; i <= n; i++)
        if (i == n || v[i] < 0x300 || combining_class(v[i]) == 0) {
            if (i - begin > 1)
                sort_run(v + begin, i - begin);
            begin = i + 1;
        }
}

/* Composes v in place; returns what is left of n. utf8proc 2.8 takes U+11A7 after a Hangul syllable
 * for a final consonant and drops it. Nothing composes with U+11A7, so it parts the runs. */
static size_t compose(utf8proc_int32_t *v, size_t n)
{
    enum { BEFORE_FINALS = 0x11A7 };
    size_t out = 0, begin = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && v[i] != BEFORE_FINALS)
            continue;
        size_t k = (size_t)utf8proc_normalize_utf32(v + begin, (utf8proc_ssize_t)(i - begin), NFC);
        memmove(v + out, v + begin, k * sizeof *v);
        out += k;
        if (i < n)
            v[out++] = BEFORE_FINALS;
        begin = i + 1;
    }
    return out;
}

static void nfc_span(const char *s, size_t n, struct buf *out)
{
    enum { ROOM = 16 }; /* no canonical decomposition is longer than 4 */
    size_t cap = n + ROOM, count = 0, len;
    utf8proc_int32_t *v = mem_resize(NULL, cap, sizeof *v);
    for (size_t i = 0; i < n; i += len) {
        if (count + ROOM > cap) {
            cap = 2 * cap;
            v = mem_resize(v, cap, sizeof *v);
        }
        utf8proc_int32_t code = (utf8proc_int32_t)utf8_read(s + i, &len);
        if (code < 0xC0) /* the first that decomposes */
            v[count++] = code;
        else
            count += (size_t)utf8proc_decompose_char(code, v + count, ROOM, NFC, NULL);
    }
    sort_marks(v, count);
    count = compose(v, count);
    buf_reserve(out, n);
    for (size_t i = 0; i < count; i++)
        if (v[i] < 0x80)
            buf_char(out, (char)v[i]);
        else
            utf8_put(out, (uint32_t)v[i]);
    free(v);
}

/* Does a character below U+0300 begin at s[i], or the text end? It never joins what precedes. */
static int is_low(const char *s, size_t n, size_t i)
{
    return i == n || (unsigned char)s[i] < 0x80 ||
           ((unsigned char)s[i] >= 0xC0 && (unsigned char)s[i] < 0xCC);
}

/* Only spans from one character before a byte >= 0xCC up to the next low one are worked on. */
void nfc_put(const char *s, size_t n, struct buf *out)
{
    size_t done = 0, i = 0;
    while (i < n) {
        if ((unsigned char)s[i] < 0xCC) {
            i++;
            continue;
        }
        size_t begin = i;
        if (begin > done)
            do
                begin--;
            while (begin > done && ((unsigned char)s[begin] & 0xC0) == 0x80);
        do
            i++;
        while (!is_low(s, n, i));
        buf_put(out, s + done, begin - done);
        nfc_span(s + begin, i - begin, out);
        done = i;
    }
    buf_put(out, s + done, n - done);
}
