/* test-stream.c - tests a text that arrives in pieces, cut between any bytes: only whole characters
 * are printed, nothing is lost, and escape sequences of a terminal are printed as text. */
#include <string.h>

#include "lib/run/watch/text_stream.h"
#include "lib/text/utf8.h"
#include "tests/tap.h"

/* Prints the text in pieces cut at a and b. Returns 1 if the output is valid at every cut, and
 * `want` in the end. */
static int says(const char *text, size_t a, size_t b, const char *want)
{
    struct buf held = {0}, out = {0};
    size_t n = strlen(text), cut[] = {0, a, b, n};
    int good = 1;
    for (int i = 0; i < 3; i++) {
        text_stream_decode(&held, text + cut[i], cut[i + 1] - cut[i], 0, &out);
        good &= held.len <= 3 && (!out.len || utf8_valid(out.data, out.len) == out.len);
    }
    text_stream_decode(&held, "", 0, 1, &out);
    good &= held.len == 0 && (out.len ? !strcmp(out.data, want) : !*want);
    buf_free(&held);
    buf_free(&out);
    return good;
}

static int says_everywhere(const char *text, const char *want)
{
    int good = 1;
    for (size_t a = 0; a <= strlen(text); a++)
        for (size_t b = a; b <= strlen(text); b++)
            good &= says(text, a, b, want);
    return good;
}

int main(void)
{
    static const char mixed[] = "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x99\x82z\n\t.";
    ok(says_everywhere(mixed, mixed), "letters of one to four bytes, cut anywhere");
    ok(says_everywhere("\xe6\x97", "\xef\xbf\xbd"), "half a character at the end");
    ok(says_everywhere("\xf0\x9f(\xff)", "\xef\xbf\xbd(\xef\xbf\xbd)"), "bytes that are no UTF-8");
    ok(says_everywhere("\x1b[2J\x07\xc2\x9b", "\\x1b[2J\\x07\\xc2\\x9b"), "escape sequences");
    ok(utf8_whole("ab\xe6\x97", 4) == 2 && utf8_whole("ab\xe6\x97\xa5", 5) == 5 &&
           utf8_whole("\xa5", 1) == 1 && utf8_whole("\xf0\x9f\x99", 3) == 0 &&
           utf8_whole("", 0) == 0,
       "complete characters");
    return tap_done();
}
