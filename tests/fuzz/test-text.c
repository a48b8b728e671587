/* test-text.c - functions that take any text: UTF-8, normalization, measures of agreement. A NUL
 * separates two texts. */
#include <utf8proc.h>

#include "lib/base/plain.h"
#include "lib/text/overlap.h"
#include "lib/text/tokenizer/nfc.h"
#include "lib/text/utf8.h"
#include "tests/fuzz/fuzz.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[][2] = {
        {"The cat sat on the mat.", "A cat, the mat!"},
        {"caf\xc3\xa9 \xed\x95\x9c\xea\xb8\x80 \xf0\x9f\x98\x80",
         "cafe\xcc\x81 \xe1\x84\x92\xe1\x85\xa1"},
        {"\xe0\xbd\xb1\xe0\xbd\xb4 \xcc\xa3\xcc\x87s\xcc\x87\xcc\xa3",
         "\xc2\xa0\xe2\x80\xa8\xef\xbf\xbf\xf4\x8f\xbf\xbf\xc2"},
    };
    if (i >= sizeof text / sizeof *text)
        return 0;
    buf_text(to, text[i][0]);
    buf_put(to, "", 1);
    buf_text(to, text[i][1]);
    return 1;
}

/* n bytes as utf8proc reads them: returns the bytes of the valid characters at the start, and
 * their number in *characters. */
static size_t judge(const char *s, size_t n, size_t *characters)
{
    size_t at = 0;
    utf8proc_int32_t code;
    for (*characters = 0; at < n; (*characters)++) {
        utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s + at,
                                                (utf8proc_ssize_t)(n - at), &code);
        if (len <= 0)
            break;
        size_t mine;
        fuzz_check(utf8_char(s + at, n - at) == len);
        fuzz_check(utf8_read(s + at, &mine) == (uint32_t)code && mine == (size_t)len);
        at += (size_t)len;
    }
    return at;
}

/* The normal form is valid and stays as it is. */
static void normal(const char *s, size_t n)
{
    struct buf once = {0}, twice = {0};
    nfc_put(s, n, &once);
    nfc_put(once.data ? once.data : "", once.len, &twice);
    fuzz_check(utf8_valid(once.data ? once.data : "", once.len) == once.len);
    fuzz_check(once.len == twice.len && (!once.len || !memcmp(once.data, twice.data, once.len)));
    fuzz_check(nfc_may_change(s, n) ||
               (once.len == n && (!n || !memcmp(once.data, s, n))));
    buf_free(&once);
    buf_free(&twice);
}

static void any(const char *s, size_t n)
{
    struct buf whole = {0};
    size_t characters, good = judge(s, n, &characters);
    fuzz_check(utf8_valid(s, n) == good);
    fuzz_check(utf8_whole(s, n) <= n && n - utf8_whole(s, n) < 4);
    utf8_put_lossy(&whole, s, n);
    fuzz_check(utf8_valid(whole.data ? whole.data : "", whole.len) == whole.len);
    normal(whole.data ? whole.data : "", whole.len);
    buf_free(&whole);
}

static int is_share(double x)
{
    return x >= 0 && x <= 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct buf x = fuzz_part(&bytes, &n), y = fuzz_part(&bytes, &n), a = {0}, b = {0};
    double grams[OVERLAP_GRAMS] = {0}, f1 = 0;
    char shown[64], again[64];
    struct err e = {0};
    any(x.data ? x.data : "", x.len);
    plain_text(shown, sizeof shown, x.data ? x.data : "");
    plain_text(again, sizeof again, shown);
    fuzz_check(!strcmp(shown, again));
    buf_text(&a, ""); /* texts from JSON are valid */
    buf_text(&b, "");
    utf8_put_lossy(&a, x.data, x.len);
    utf8_put_lossy(&b, y.data, y.len);
    overlap_grams(a.data, b.data, grams);
    fuzz_check(is_share(overlap_chrf(grams)));
    fuzz_check(overlap_rouge_l(a.data, b.data, &f1, &e) || is_share(f1));
    fuzz_check(overlap_token_f1(a.data, b.data, &f1, &e) || is_share(f1));
    buf_free(&x);
    buf_free(&y);
    buf_free(&a);
    buf_free(&b);
}

FUZZ_TARGET("text", 2000)
