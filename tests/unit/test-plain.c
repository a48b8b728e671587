/* test-plain.c - tests which characters of a text stay and which become \\xNN, where a text is cut;
 * and numbers. */
#include <string.h>

#include "lib/base/plain.h"
#include "tests/tap.h"

static int gives(const char *src, size_t size, const char *want)
{
    char dst[64], again[64];
    plain_text(dst, size, src);
    plain_text(again, size, dst);
    return !strcmp(dst, want) && !strcmp(again, want);
}

static int says(double v, const char *want)
{
    char dst[PLAIN_NUMBER];
    return !strcmp(plain_number(dst, v), want);
}

int main(void)
{
    ok(gives("a \xc3\xa9 \xf0\x9f\x99\x82", 64,
             "a \xc3\xa9 \xf0\x9f\x99\x82"), "letters and signs stay");
    ok(gives("\x1b[m\n\t\x7f", 64, "\\x1b[m\\x0a\\x09\\x7f"), "C0 and DEL");
    ok(gives("\xc2\x9b" "3\xc2\xa0", 64, "\\xc2\\x9b3\xc2\xa0"), "C1, and the sign behind it");
    ok(gives("\xe2\x80\xae\xe2\x81\xa9\xd8\x9c", 64,
             "\\xe2\\x80\\xae\\xe2\\x81\\xa9\\xd8\\x9c"), "marks of direction");
    ok(gives("\xe2\x80\xa8", 64, "\\xe2\\x80\\xa8"), "a separator of lines");
    ok(gives("\xff\xc3(\xe2\x82", 64, "\\xff\\xc3(\\xe2\\x82"), "bytes that are no UTF-8");
    ok(gives("\xc0\x9b\xed\xa0\x80", 64,
             "\\xc0\\x9b\\xed\\xa0\\x80"), "overlong forms, surrogates");
    ok(gives("ab\xc3\xa9", 4, "ab") && gives("ab\x1b", 6, "ab") && gives("abc", 1, ""),
       "cut between characters");
    ok(says(9007199254740991.0, "9007199254740991") && says(-3, "-3") && says(0, "0"),
       "whole numbers in full");
    ok(says(0.1, "0.1") && says(1e24, "1e+24") && says(2.5, "2.5"), "others with 15 digits");
    return tap_done();
}
