/* nfc.c - composition to NFC in linear time; see nfc.h.
 *
 * utf8proc has the tables. It sorts combining marks by bubble sort, which is quadratic for a long
 * run, so this file sorts runs and utf8proc only composes. Most of a text cannot change, so only
 * spans around characters from U+0300 on are processed. Characters newer than Unicode 9 stay
 * unchanged, as in Hugging Face's tokenizers, whose tables are those of Unicode 9. By Unicode's
 * stability policy older characters have the same normalization in every version, so results do not
 * depend on the version of utf8proc. */
#include "lib/text/tokenizer/nfc.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

#define NFC ((utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE))

int nfc_may_change(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] >= 0xCC)
            return 1;
    return 0;
}

/* Ranges with all characters newer than Unicode 9 that current tables reorder, decompose or
 * compose; the ranges contain no older character of this kind. U+11A7 is here too: utf8proc 2.8
 * drops it after a Hangul syllable as a final consonant, but it composes with no character. */
static const uint32_t still[][2] = {
    {0x07FD, 0x07FD},   {0x0897, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},
    {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x11A7, 0x11A7},   {0x1715, 0x1715},
    {0x1ABF, 0x1AFF},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x105C9, 0x105E4},
    {0x10D24, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x11382, 0x113D0},
    {0x1145E, 0x1145E}, {0x11839, 0x11A99}, {0x11D42, 0x1612F}, {0x16D63, 0x16FF1},
    {0x1E08F, 0x1E6F5},
};

int nfc_stays(uint32_t code)
{
    size_t i = 0;
    if (code < still[0][0] || (code > 0xA82C && code < 0x105C9))
        return 0;
    while (i < sizeof still / sizeof *still && code > still[i][1])
        i++;
    return i < sizeof still / sizeof *still && code >= still[i][0];
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

/* Puts marks into canonical order: each run of marks (class not 0) is sorted by class; marks of
 * equal class keep their order. */
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

enum { STILL = 1 << 30 }; /* a bit set in a code that must not change, which gives it class 0 */

/* Composes v in place and returns the new length. Codes with STILL separate runs. */
static size_t compose(utf8proc_int32_t *v, size_t n)
{
    size_t out = 0, begin = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && !(v[i] & STILL))
            continue;
        size_t k = (size_t)utf8proc_normalize_utf32(v + begin, (utf8proc_ssize_t)(i - begin), NFC);
        memmove(v + out, v + begin, k * sizeof *v);
        out += k;
        if (i < n)
            v[out++] = v[i] ^ STILL;
        begin = i + 1;
    }
    return out;
}

static void nfc_span(const char *text, size_t n, struct buf *out)
{
    enum { ROOM = 16 }; /* no canonical decomposition is longer than 4 */
    size_t cap = n + ROOM, count = 0, len;
    utf8proc_int32_t *codes = mem_resize(NULL, cap, sizeof *codes);
    for (size_t i = 0; i < n; i += len) {
        if (count + ROOM > cap) {
            cap = 2 * cap;
            codes = mem_resize(codes, cap, sizeof *codes);
        }
        utf8proc_int32_t code = (utf8proc_int32_t)utf8_read(text + i, &len);
        if (code < 0xC0) /* U+00C0 is the first character that decomposes */
            codes[count++] = code;
        else if (nfc_stays((uint32_t)code))
            codes[count++] = code | STILL;
        else
            count += (size_t)utf8proc_decompose_char(code, codes + count, ROOM, NFC, NULL);
    }
    sort_marks(codes, count);
    count = compose(codes, count);
    buf_reserve(out, n);
    for (size_t i = 0; i < count; i++)
        if (codes[i] < 0x80)
            buf_char(out, (char)codes[i]);
        else
            utf8_put(out, (uint32_t)codes[i]);
    free(codes);
}

/* 1: a character below U+0300 begins at text[i], or the text ends. Such a character never composes
 * with the text before it. */
static int is_low(const char *text, size_t n, size_t i)
{
    return i == n || (unsigned char)text[i] < 0x80 ||
           ((unsigned char)text[i] >= 0xC0 && (unsigned char)text[i] < 0xCC);
}

/* Processes only spans from one character before a byte >= 0xCC to the next low character. */
void nfc_put(const char *text, size_t n, struct buf *out)
{
    size_t done = 0, i = 0;
    while (i < n) {
        if ((unsigned char)text[i] < 0xCC) {
            i++;
            continue;
        }
        size_t begin = i;
        if (begin > done)
            begin = utf8_before(text, begin);
        do
            i++;
        while (!is_low(text, n, i));
        buf_put(out, text + done, begin - done);
        nfc_span(text + begin, i - begin, out);
        done = i;
    }
    buf_put(out, text + done, n - done);
}
