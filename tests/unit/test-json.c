/* test-json.c - strict parsing, and look-ups that name file, key, range and value. */
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/record/json.h"
#include "lib/record/content.h"
#include "lib/record/quick.h"
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

/* Parses text of n bytes; `says` NULL: must be good, else the message must hold it. */
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
       "and 2^53+1 beside it stays exact");
    ok(!json_number(j, "f", "model_max_length", 0, 1e40, &x, &e) && x > 9.9e29 && x < 1.1e30,
       "the big one is a number near 1e30");
    ok(!json_text(j, "f", "s", &s, &e) && !strcmp(s, "1000000000000000019884624838656 \" 1"),
       "digits inside a string stay as they are");
    ok(json_int(j, "f", "model_max_length", 0, INT64_MAX, &n, &e) == -1, "but it is no integer");
    json_decref(j);
}

/* The look-up must fail with code 65 and each of the texts. */
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

/* ---- the quick parser against jansson ---- */

static const char *const ordinary[] = {
    "{}",
    " { \"a\" : [ ] , \"b\" : { } }\t\r\n",
    "{\"schema\":\"crossover/1\",\"id\":\"p1\",\"token_ids\":[16,341,0,-0,-7,999999999999999999],"
    "\"emit_ns\":[883848,1079240.0,1.5e3,2E-4,0.1,-0.0,5e-324,4e+9],\"ok\":true,\"gpu\":null}",
    "{\"id\":7,\"emit_ns\":[ 5 , 12\t,13],\"token_ids\":[],\"step_ns\":[8]}",
    "{\"text\":\"plain, with \\\"escapes\\\" \\\\ \\/ \\b\\f\\n\\r\\t, and a line that is long\"}",
    "{\"text\":\"Gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80 \x7f\",\"\":false}",
    "{\"memory\":{\"weights_bytes\":7480384,\"layers_hold\":false},"
    "\"a\":[[[{\"b\":[1,[2]]}]],\"\"]}"};

/* What is right but not ordinary, and what is wrong: the quick parser has no opinion. */
static const char *const other[] = {
    "", " ", "[]", "1", "null", "{\"a\":1}x", "{\"a\":1,}", "{\"a\":1 \"b\":2}", "{\"a\":[1,]}",
    "{,}", "{\"a\":01}", "{\"a\":-}", "{\"a\":1.}", "{\"a\":.5}", "{\"a\":1e}", "{\"a\":+1}",
    "{\"a\":1e999}", "{\"a\":0x1}", "{\"a\":NaN}", "{\"a\":tru}", "{\"a\":truee}",
    "{\"a\":1000000000000000000}", "{\"a\":1,\"a\":2}",
    "{\"step_ns\":[1],\"step_ns\":[2]}", "{\"step_ns\":[1.5],\"step_ns\":[2]}",
    "{\"a\":{\"b\":1,\"b\":1}}",
    "{\"\\n\":1}", "{\"\xc3\xbc\":1}", "{\"a\":\"\\u0041\"}", "{\"a\":\"\\u0000\"}",
    "{\"a\":\"\\x\"}", "{\"a\":\"\\", "{\"a\":\"b", "{\"a\":\"\n\"}", "{\"a\":\"\xc3\"}",
    "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xf4\x90\x80\x80\"}",
    "{\"a\":\"12345678\xff\"}", "{\"a\":\"1234567\x01\"}", "{\"a\"", "{\"a\":", "{'a':1}",
    "\xef\xbb\xbf{}"};

/* 1: the quick parser has an object; 0: none. -1: one that jansson does not make of these bytes. */
static int quick_agrees(const char *bytes, size_t n)
{
    char *exact = mem_alloc(n); /* so that a byte read behind the end is found */
    memcpy(exact, bytes, n);
    json_t *q = quick_object(exact, n);
    json_t *j = json_loadb(exact, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    char *x = q ? json_dumps(q, JSON_COMPACT) : NULL, *y = j ? json_dumps(j, JSON_COMPACT) : NULL;
    int same = q ? x && y && !strcmp(x, y) && json_equal(q, j) : 0;
    int verdict = q && !same ? -1 : same;
    if (verdict < 0)
        printf("# %.*s\n", (int)n, bytes);
    free(x);
    free(y);
    free(exact);
    json_decref(q);
    json_decref(j);
    return verdict;
}

/* The members that were wanted, of bytes that are an object for jansson: 1, as it has them; 0: it
 * is none; -1: others. Of all other bytes nothing is asked but that none behind them is read, and
 * that the form of another line (`like`, or NULL) changes nothing. */
static int members_agree(const char *bytes, size_t n, const char *like)
{
    enum { WANTED = 5 };
    static const struct quick_view wanted[WANTED] = {{"a", 1}, {"text", 4}, {"id", 2}, {"ok", 2},
                                                     {"memory", 6}};
    struct quick_view found[WANTED], again[WANTED];
    struct quick_form form = {0}, other_form = {0};
    char *exact = mem_alloc(n);
    memcpy(exact, bytes, n);
    quick_members(&form, exact, n, wanted, WANTED, found);
    if (like)
        quick_members(&other_form, like, strlen(like), wanted, WANTED, again);
    quick_members(&other_form, exact, n, wanted, WANTED, again);
    json_t *j = json_loadb(exact, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    int same = 1, alike = 1;
    for (size_t i = 0; i < WANTED; i++) {
        alike &= found[i].at == again[i].at && found[i].n == again[i].n;
        const json_t *v = json_object_get(j, wanted[i].at);
        json_t *q = found[i].n ? json_loadb(found[i].at, found[i].n, JSON_DECODE_ANY |
                                            JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL) : NULL;
        same &= v ? json_equal(v, q) : !found[i].n;
        json_decref(q);
    }
    int verdict = !alike ? -1 : !json_is_object(j) ? 0 : same ? 1 : -1;
    if (verdict < 0)
        printf("# %.*s\n", (int)n, bytes);
    json_decref(j);
    quick_form_free(&form);
    quick_form_free(&other_form);
    free(exact);
    return verdict;
}

/* bytes[0..n-1] with some of them changed, left out or doubled; room for 2 n + 1. */
static size_t mutate(struct rng *r, const char *from, size_t n, char *to)
{
    static const char likely[] = "\"\\{}[]:,.-+eE0123456789 \t\n\x01\x7f\x80\xbf\xc3\xe2\xf0"
                                 "truefalsn/bu";
    size_t m = 0, rate = 1 + rng_below(r, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t what = rng_below(r, rate) ? 9 : rng_below(r, 4);
        if (what == 0)
            continue;
        to[m++] = what == 1 ? likely[rng_below(r, sizeof likely - 1)] : from[i];
        if (what == 2)
            to[m++] = likely[rng_below(r, sizeof likely - 1)];
        if (what == 3)
            to[m++] = from[i];
    }
    return m;
}

/* Lines before that have no form, or one that the next line only begins with. */
static void test_forms(void)
{
    static const char line[] = "{\"a\":1,\"id\":{\"x\":[]},\"ok\":true}";
    static const char *const before[] = {"{\"a\":1,", "{\"a\":1}", "{\"a\":2,\"id\":3}", "{}",
                                         "{\"a\":1,\"id\":[{}],\"ok\":true ,\"text\":\"\"}"};
    struct buf many = {0};
    int agree = 0;
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        agree += members_agree(line, strlen(line), before[i]) == 1;
    for (int i = 0; i < 2 * QUICK_MEMBERS; i++)
        buf_format(&many, "%s\"k%d\":%d", i ? "," : "{", i, i);
    buf_text(&many, ",\"id\":7}");
    agree += members_agree(many.data, many.len, many.data) == 1;
    agree += members_agree(line, strlen(line), many.data) == 1;
    ok(agree == sizeof before / sizeof *before + 2, "members of a line after one of another form");
    buf_free(&many);
}

static void test_quick(void)
{
    enum { ORDINARY = sizeof ordinary / sizeof *ordinary, CASES = 120000 };
    struct rng r = {.seed = 1};
    char changed[1024];
    int alike = 0, apart = 0, wrong = 0, some = 0;
    for (size_t i = 0; i < ORDINARY; i++) {
        alike += quick_agrees(ordinary[i], strlen(ordinary[i])) == 1;
        some += members_agree(ordinary[i], strlen(ordinary[i]), ordinary[0]) == 1;
    }
    ok(alike == ORDINARY, "ordinary objects: %d of %d are as jansson makes them", alike, ORDINARY);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        apart += quick_agrees(other[i], strlen(other[i])) == 0;
    ok(some == ORDINARY, "some of their members alone: %d of %d", some, ORDINARY);
    ok(apart == sizeof other / sizeof *other, "%d that are not ordinary are left to jansson",
       apart);
    test_forms();
    alike = some = 0;
    for (int i = 0; i < CASES; i++) {
        const char *from = ordinary[rng_below(&r, ORDINARY)];
        size_t n = mutate(&r, from, strlen(from), changed);
        int verdict = quick_agrees(changed, n), members = members_agree(changed, n, from);
        wrong += verdict < 0 || members < 0;
        some += members > 0;
        alike += verdict > 0;
    }
    ok(!wrong && alike > CASES / 50 && some > CASES / 50, "%d objects with changed bytes: %d are "
       "read quickly, some members of %d, each as jansson reads it", (int)CASES, alike, some);
    char deep[200];
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"a\":", 5);
    ok(!quick_agrees(deep, sizeof deep), "deep nesting is left to jansson");
}

/* A copy of the object with the lists that are apart, which are no lists of it. */
static json_t *joined(const struct quick_again *a, json_t *object)
{
    json_t *all = json_copy(object);
    for (size_t i = 0; i < NUMBERS_LISTS; i++) {
        const struct numbers *l = &quick_lists(a)->of[i];
        json_t *list = l->is ? json_array() : NULL;
        for (size_t k = 0; l->is && k < l->n; k++)
            json_array_append_new(list, json_integer(l->v[k]));
        if (list && json_object_get(object, numbers_names[i]))
            json_object_clear(all);
        if (list)
            json_object_set_new(all, numbers_names[i], list);
    }
    return all;
}

static const char *const named[] = {"id", "token_ids", "a", "none", NULL};

/* The hash of the named members, as quick_said has it. */
static uint64_t said_of(const json_t *j)
{
    uint64_t sum = 0;
    for (size_t i = 0; named[i]; i++)
        if (json_object_get(j, named[i]))
            sum += content_of_member(named[i], strlen(named[i]),
                                     content_of(json_object_get(j, named[i])));
    return sum ? sum : 1;
}

/* The same bytes with lists apart: what is in the object and beside it is all, and its hashes are
 * those of the whole. Returns 1 when all integers of some list were apart, 0: none; -1: wrong. */
static int apart_agrees(struct quick_again *a, const char *bytes, size_t n, json_t *j)
{
    json_t *q = quick_again(a, bytes, n), *all = q ? joined(a, q) : NULL;
    int apart = q && numbers_any(quick_lists(a));
    int wrong = !q != !j || (q && (!json_equal(all, j) || quick_said(a) != said_of(j) ||
                                   quick_content(a) != content_of_record(j)));
    json_decref(all);
    return wrong ? -1 : apart;
}

/* Objects one after another, most of them the one before with some bytes changed. */
static void test_again(void)
{
    enum { ORDINARY = sizeof ordinary / sizeof *ordinary, CASES = 60000 };
    struct rng r = {.seed = 2};
    struct quick_again a = {0}, beside = {.apart = 1, .names = named};
    json_t *held = NULL, *copy = NULL;
    int wrong = 0, patched = 0, moved = 0, apart = 0, odd = 0;
    size_t n = 0;
    char text[2][1024];
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        odd += apart_agrees(&beside, other[i], strlen(other[i]), NULL) != 0;
    for (int i = 0, at = 0; i < CASES; i++) {
        const char *from = ordinary[rng_below(&r, ORDINARY)];
        int fresh = rng_below(&r, 4) == 0 || n == 0 || n > 400;
        const json_t *before = held ? NULL : a.last[a.at].object;
        n = mutate(&r, fresh ? from : text[at], fresh ? strlen(from) : n, text[!at]);
        at = !at;
        char *exact = mem_alloc(n);
        memcpy(exact, text[at], n);
        json_t *j = json_loadb(exact, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        json_t *q = quick_again(&a, exact, n), *first = quick_object(text[at], n);
        char *x = q ? json_dumps(q, JSON_COMPACT) : NULL;
        char *y = q && j ? json_dumps(j, JSON_COMPACT) : NULL;
        wrong += !q != !first || (q && (!y || strcmp(x, y) || !json_equal(q, j)));
        wrong += held && !json_equal(held, copy);
        int lists = apart_agrees(&beside, exact, n, first);
        apart += lists > 0;
        odd += lists < 0;
        patched += q && q == before;
        moved += held && q && q != held;
        json_decref(held), json_decref(copy);
        held = q && rng_below(&r, 8) == 0 ? json_incref(q) : NULL;
        copy = held ? json_deep_copy(held) : NULL;
        json_decref(j), json_decref(first);
        free(x), free(y), free(exact);
        if (!q)
            n = 0;
    }
    ok(!wrong && patched > CASES / 50 && moved > CASES / 200, "%d objects one after another: %d "
       "by what changed, %d beside one that somebody holds (%d wrong)", (int)CASES, patched, moved,
       wrong);
    ok(!odd && apart > CASES / 50, "the same with lists of whole numbers beside %d of them, and "
       "with the hashes of what they say (%d wrong)", apart, odd);
    json_decref(held), json_decref(copy);
    quick_again_free(&a);
    quick_again_free(&beside);
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
    test_members();
    test_quick();
    test_again();
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
