/* test-json.c - tests strict parsing, and look-ups whose errors name file, key, range and value. */
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "tests/tap.h"

/* The text without the bytes that would break a line of TAP. */
static const char *plain(const char *text, size_t n, char out[48])
{
    size_t i = 0;
    for (; i < n && i < 40; i++)
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    out[i] = 0;
    return out;
}

/* Parses a text of n bytes. says NULL: it must be good; else the message must contain `says`. */
static void parse(const char *text, size_t n, const char *says)
{
    struct err e = {0};
    char name[48];
    json_t *j = json_bytes(text, n, "here", &e);
    if (!says)
        ok(j && !e.code, "accepted: %s %s", plain(text, n, name), e.text);
    else
        ok(!j && e.code == EXIT_BAD_DATA && strstr(e.text, says) && strstr(e.text, "here"),
           "refused: %s (line, column and reason given)", plain(text, n, name));
    json_decref(j);
}

static void test_parse(void)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "nul",
                                      "1",
                                      "\"a\"",
                                      "{\"a\":1}x",
                                      "{\"a\":1}{}",
                                      "{'a':1}",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "[01]",
                                      "[1.]",
                                      "[.5]",
                                      "[+1]",
                                      "[NaN]",
                                      "[Infinity]",
                                      "[1e999]",
                                      "[-1e999]",
                                      "[0x10]",
                                      "{\"a\":1,\"a\":2}",
                                      "{\"a\":1,\"\\u0061\":2}",
                                      "[\"\\ud83d\"]",
                                      "[\"\\x41\"]",
                                      "[\"a\nb\"]",
                                      "\xef\xbb\xbf{}",
                                      "[\"\xc0\x80\"]",
                                      "[\"\xed\xa0\x80\"]",
                                      "[\"\xff\"]",
                                      "{\"a\\u0000\":1}",
                                      "/* c */ {}",
                                      "[1 2]",
                                      "{\"a\" 1}",
                                      "{\"a\":}",
                                      "[",
                                      "{",
                                      "[\"a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        parse(bad[i], strlen(bad[i]), "line");
    static const char *const good[] = {"{}",
                                       "[]",
                                       " \t\r\n{\"a\":[1,-0,1.5e3,true,null]}\n",
                                       "[\"\\ud83d\\ude00\"]",
                                       "[\"\\u0000\"]",
                                       "[9223372036854775807]"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        parse(good[i], strlen(good[i]), NULL);
    char *deep = malloc(200000);
    memset(deep, '[', 200000);
    parse(deep, 200000, "depth");
    free(deep);
    parse("{}\0", 3, "line");
}

static void test_big_integers(void)
{
    static const char text[] =
        "{\"model_max_length\": 1000000000000000019884624838656, \"n\": "
        "9007199254740993, \"s\": \"1000000000000000019884624838656 \\\" 1\", "
        "\"x\": 1e3, \"m\": -10000000000000000000000}";
    struct err e = {0};
    json_t *j = json_bytes(text, sizeof text - 1, "tokenizer_config.json", &e);
    int64_t n = 0;
    double x = 0;
    const char *s = "";
    ok(j, "a 31-digit integer is read (%s)", e.text);
    ok(!json_int(j, "f", "n", 0, INT64_MAX, &n, &e) && n == 9007199254740993,
       "2^53+1 beside a 31-digit integer stays exact");
    ok(!json_number(j, "f", "model_max_length", 0, 1e40, &x, &e) && x > 9.9e29 && x < 1.1e30,
       "the big one is a number near 1e30");
    ok(!json_text(j, "f", "s", &s, &e) && !strcmp(s, "1000000000000000019884624838656 \" 1"),
       "digits inside a string stay as they are");
    ok(json_int(j, "f", "model_max_length", 0, INT64_MAX, &n, &e) == -1,
       "a 31-digit integer is refused as an integer");
    json_decref(j);
}

static void test_nul(void)
{
    static const char text[] = "{\n \"vocab_size\": 123\0}";
    struct err e = {0};
    ok(!json_bytes(text, sizeof text - 1, "config.json", &e) && e.code == EXIT_BAD_DATA &&
           !strcmp(e.text, "config.json: line 2, column 18: a NUL byte"),
       "a NUL byte after a number ends no text: %s", e.text);
    ok(!json_strict(text, sizeof text - 1, NULL) && !json_strict("123\0", 4, NULL) &&
           !json_strict("\0", 1, NULL), "a NUL byte ends no text of a record");
}

/* The look-up must fail with code 65 and both texts. */
#define refuses(call, a, b)                                                                     \
    do {                                                                                        \
        struct err e = {0};                                                                     \
        int r = call;                                                                           \
        ok(r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, a) && strstr(e.text, b) &&      \
               strstr(e.text, "f.json"), "%s: %s", #call, e.text);                              \
    } while (0)

static void test_members(void)
{
    struct err none = {0};
    json_t *j =
        json_loads("{\"i\":7,\"neg\":-1,\"r\":1.5,\"t\":\"text\",\"b\":true,\"z\":null,"
                   "\"nul\":\"a\\u0000b\",\"long\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
                   "18,19,20,21,22,23,24,25,26]}",
                   JSON_ALLOW_NUL, NULL);
    int64_t i = 0;
    double x = 0;
    int b = 0;
    const char *t = NULL;
    ok(!json_int(j, "f", "i", 7, 7, &i, &none) && i == 7, "an integer at both ends of its range");
    ok(!json_number(j, "f", "i", 0, 10, &x, &none) && x == 7, "an integer is a number");
    ok(!json_number(j, "f", "r", 1.5, 1.5, &x, &none) && x == 1.5, "a number at both ends");
    ok(!json_flag(j, "f", "b", &b, &none) && b == 1, "a flag");
    ok(!json_text(j, "f", "t", &t, &none) && !strcmp(t, "text"), "a text");
    ok(json_has(j, "i") && !json_has(j, "z") && !json_has(j, "no"), "null counts as absent");
    refuses(json_int(j, "f.json", "i", 8, 9, &i, &e), "integer from 8 to 9", "got 7");
    refuses(json_int(j, "f.json", "neg", 0, 9, &i, &e), "neg", "got -1");
    refuses(json_int(j, "f.json", "r", 0, 9, &i, &e), "r: ", "got 1.5");
    refuses(json_int(j, "f.json", "t", 0, 9, &i, &e), "t: ", "got \"text\"");
    refuses(json_int(j, "f.json", "no", 0, 9, &i, &e), "no: ", "missing");
    refuses(json_int(j, "f.json", "long", 0, 9, &i, &e), "long", "...");
    refuses(json_int(NULL, "f.json", "i", 0, 9, &i, &e), "object", "\"i\"");
    refuses(json_number(j, "f.json", "r", 2, 3, &x, &e), "number from 2 to 3", "got 1.5");
    refuses(json_number(j, "f.json", "b", 0, 3, &x, &e), "b: ", "got true");
    refuses(json_flag(j, "f.json", "i", &b, &e), "true or false", "got 7");
    refuses(json_flag(j, "f.json", "z", &b, &e), "true or false", "got null");
    refuses(json_text(j, "f.json", "i", &t, &e), "a string", "got 7");
    refuses(json_text(j, "f.json", "nul", &t, &e), "NUL", "nul: ");
    json_decref(j);
}

/* A value that is not an object is replaced by an object, which its owner keeps. */
static void test_within(void)
{
    json_t *j = json_pack("{s:b, s:{s:i}}", "flag", 1, "object", "i", 7);
    json_t *of = json_within(json_within(j, "flag"), "new");
    ok(json_is_object(of) && json_object_get(json_object_get(j, "flag"), "new") == of,
       "an object replaces true");
    ok(json_integer_value(json_object_get(json_within(j, "object"), "i")) == 7,
       "an object stays as it is");
    json_decref(j);
}

/* Writes bytes to a file and reads it as JSON. */
static void file_case(const char *folder, const char *bytes, size_t limit, int code,
                      const char *says)
{
    char path[256];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/x.json", folder);
    if (bytes) {
        FILE *f = fopen(path, "wb");
        fputs(bytes, f);
        fclose(f);
    }
    json_t *j = json_file(path, limit, &e);
    ok(e.code == code && !j == (code != 0) && strstr(e.text, says), "code %d: %s", code, e.text);
    json_decref(j);
    unlink(path);
}

int main(void)
{
    char folder[] = "/tmp/test-json-XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    test_parse();
    test_big_integers();
    test_nul();
    test_members();
    test_within();
    file_case(folder, "{\"a\":1}", 100, 0, "");
    file_case(folder, "{\"a\":1}", 7, 0, "");
    file_case(folder, "{\"a\":1}", 6, EXIT_BAD_DATA, "limit of 6");
    file_case(folder, "", 100, EXIT_BAD_DATA, "empty");
    file_case(folder, "\xef\xbb\xbf{}", 100, EXIT_BAD_DATA, "byte order mark");
    file_case(folder, "{\n\"a\":}", 100, EXIT_BAD_DATA, "line 2");
    file_case(folder, NULL, 100, EXIT_NO_INPUT, "No such file");
    struct err e = {0};
    ok(!json_file(folder, 100, &e) && e.code == EXIT_NO_INPUT, "a folder: %s", e.text);
    rmdir(folder);
    return tap_done();
}
