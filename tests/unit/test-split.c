/* test-split.c - tests that arrays, lines and concatenated objects give the same objects, and that
 * a broken object does not affect the others. */
#include "lib/text/split.h"

#include "lib/base/mem.h"
#include "tests/tap.h"

/* Returns the texts of a stream with "|" between them, "!" for a refused one. The caller frees. */
static char *pieces(const char *bytes, size_t limit, int64_t *last_line)
{
    FILE *f = fmemopen((void *)(uintptr_t)bytes, strlen(bytes) ? strlen(bytes) : 1, "r");
    struct split s;
    struct buf b = {0}, all = {0};
    int r;
    if (!strlen(bytes))
        (void)getc(f);
    split_start(&s, f, limit);
    for (;;) {
        struct err e = {0};
        r = split_next(&s, &b, &e);
        if (r == 0)
            break;
        if (all.len)
            buf_char(&all, '|');
        buf_text(&all, r > 0 ? b.data : "!");
        *last_line = s.line;
    }
    fclose(f);
    buf_free(&b);
    return all.data ? all.data : mem_text("");
}

static int splits(const char *bytes, const char *want)
{
    int64_t line;
    char *got = pieces(bytes, 100, &line);
    int same = !strcmp(got, want);
    if (!same)
        printf("# got %s\n", got);
    free(got);
    return same;
}

static void test_sound(void)
{
    ok(splits("", ""), "an empty input has no objects");
    ok(splits(" \n[ ]\n", ""), "an empty array");
    ok(splits("[{\"a\":1}, {\"b\":[2,{}]}]", "{\"a\":1}|{\"b\":[2,{}]}"), "an array of objects");
    ok(splits("{\"a\":1}\n{\"b\":2}\r\n\n{}", "{\"a\":1}|{\"b\":2}|{}"), "lines");
    ok(splits("{}{}{}", "{}|{}|{}"), "objects without space between");
    ok(splits("{\"a\": \"}{][\\\"\\\\\"}\n{}", "{\"a\": \"}{][\\\"\\\\\"}|{}"),
       "brackets and quotes inside texts");
    ok(splits("[\n {\n  \"a\": [\n {} ]\n }\n]", "{\n  \"a\": [\n {} ]\n }"), "over several lines");
    ok(splits("\xef\xbb\xbf[{}]", "{}"), "a byte order mark is skipped");
}

static void test_broken(void)
{
    ok(splits("{\"a\":\"x\n{\"b\":2}\n", "{\"a\":\"x\n|{\"b\":2}"), "a text without end");
    ok(splits("{\"a\":{\"b\":1}\n{\"c\":2}\n", "{\"a\":{\"b\":1}\n|{\"c\":2}"),
       "a bracket that is missing");
    ok(splits("[{\"a\":[1,2},{\"b\":3}]", "{\"a\":[1,2}|{\"b\":3}"), "a bracket of the wrong kind");
    ok(splits("what {\"a\":1} 7,\"s\"\n", "what|{\"a\":1}|7|\"s\""), "words between objects");
    ok(splits("}{}", "}|{}"), "a bracket too many");
    ok(splits("{\"a\":1}\n{\"b\":", "{\"a\":1}|!"), "cut in an object");
    ok(splits("[{\"a\":1},", "{\"a\":1}|!"), "cut in an array");
}

static void test_limits(void)
{
    int64_t line = 0;
    char *got = pieces("{\"a\":1}\n{\"a\":\"0123456789\"}\n\n{}\n", 12, &line);
    ok(!strcmp(got, "{\"a\":1}|!|{}"), "one over the limit is refused, the next is read");
    ok(line == 4, "the line is known");
    free(got);
    char *deep = mem_alloc(300001);
    memset(deep, '[', 300000);
    deep[300000] = 0;
    memcpy(deep, "{\"a\":", 5);
    got = pieces(deep, 1 << 20, &line);
    ok(strlen(got) > 0, "300000 levels do no harm");
    free(got);
    free(deep);
}

int main(void)
{
    test_sound();
    test_broken();
    test_limits();
    return tap_done();
}
