/* test-quick.c - JSON read fast is what jansson makes of it, by each way that there is: alone, one
 * line after another, some members of it. */
#include "lib/record/content.h"
#include "lib/record/quick.h"
#include "tests/fuzz/fuzz.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "{\"id\":\"a\",\"token_ids\":[1,2,-3],\"text\":\"caf\xc3\xa9 \\\"x\\\"\\n\",\"v\":1.5e3}\n"
        "{\"id\":\"b\",\"token_ids\":[1,2,-3],\"text\":\"caf\xc3\xa9 \\\"x\\\"\\n\",\"v\":2}\n"
        "{\"id\":\"b\",\"token_ids\":[],\"text\":null,\"v\":{\"a\":[true,[]],\"b\":-0.0}}\n",
        "{\"kind\":\"metric\",\"value\":123456789012345678,\"n\":1e400,\"deep\":[[[[{}]]]]}\n"
        "{\"kind\":\"metric\",\"value\":1234567890123456789,\"n\":0,\"deep\":[[[[{}]]]]}\n"
        " { \"kind\" : \"metric\" , \"kind\" : 1 }\n{\"\\u0041\":\"\\ud83d\\ude00\"}\n{}\n",
    };
    if (i < 2)
        buf_text(to, text[i]);
    else if (i == 2)
        fuzz_take("tests/fixtures/measure-generation.ndjson", 4096, to);
    else if (i == 3)
        fuzz_take("tests/fixtures/plot-quality.ndjson", 4096, to);
    return to->len > 0;
}

/* What jansson makes of a line: an object, the caller's, or NULL. */
static json_t *judge(const char *line, size_t n)
{
    json_t *j = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json_is_object(j))
        return j;
    json_decref(j);
    return NULL;
}

/* 1: the same value, and each object in the same order. */
static int is_same(const json_t *a, const json_t *b)
{
    char *x = json_dumps(a, JSON_ENCODE_ANY), *y = json_dumps(b, JSON_ENCODE_ANY);
    int same = json_equal(a, b) && x && y && !strcmp(x, y) && content_of(a) == content_of(b);
    free(x);
    free(y);
    return same;
}

/* The members of some names are what they are in the object, whatever the form is of. */
static void members(struct quick_form *form, const char *line, size_t n, const json_t *is)
{
    static const struct quick_view names[] = {{"id", 2}, {"kind", 4}, {"value", 5}, {"v", 1},
                                              {"token_ids", 9}, {"text", 4}};
    enum { COUNT = sizeof names / sizeof *names };
    struct quick_view found[COUNT], alone[COUNT];
    struct quick_form none = {0};
    quick_members(form, line, n, names, COUNT, found);
    quick_members(&none, line, n, names, COUNT, alone);
    quick_form_free(&none);
    for (size_t i = 0; i < COUNT; i++) {
        fuzz_check(!found[i].n || (found[i].at >= line && found[i].at + found[i].n <= line + n));
        if (!is)
            continue;
        fuzz_check(found[i].at == alone[i].at && found[i].n == alone[i].n);
        const json_t *want = json_object_get(is, names[i].at);
        if (memchr(line, '\\', n)) /* keys with escapes are not promised */
            continue;
        json_t *got = json_loadb(found[i].at ? found[i].at : "", found[i].n,
                                 JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        fuzz_check(want ? got && is_same(got, want) : !found[i].n);
        json_decref(got);
    }
}

/* Lists of whole numbers: those of up to 18 digits each, and no others. */
static void list(const char *line, size_t n)
{
    const char *at = memchr(line, '[', n);
    struct numbers l = {0};
    const char *end = at ? numbers_read(&l, at, line + n) : NULL;
    if (end) {
        json_t *j = json_loadb(at, (size_t)(end - at), 0, NULL);
        fuzz_check(json_array_size(j) == l.n && json_is_array(j));
        for (size_t i = 0; i < l.n; i++)
            fuzz_check(json_is_integer(json_array_get(j, i)) &&
                       json_integer_value(json_array_get(j, i)) == l.v[i]);
        json_decref(j);
    }
    free(l.v);
}

/* One line by a reader of many, which may keep lists apart. */
static void again(struct quick_again *a, const char *line, size_t n, const json_t *is)
{
    const json_t *got = quick_again(a, line, n);
    if (!got)
        return;
    json_t *rest = json_copy((json_t *)(uintptr_t)is);
    struct numbers_apart want = {0};
    fuzz_check(is);
    if (a->apart)
        numbers_take_out(&want, rest);
    for (size_t i = 0; a->apart && i < NUMBERS_LISTS; i++) {
        const struct numbers *x = &want.of[i], *y = &quick_lists(a)->of[i];
        fuzz_check(x->is == y->is && (!x->is || x->n == y->n));
        fuzz_check(!x->is || !x->n || !memcmp(x->v, y->v, x->n * sizeof *x->v));
    }
    fuzz_check(is_same(got, rest));
    fuzz_check(quick_content(a) == content_of_record(is));
    json_decref(rest);
    numbers_free(&want);
}

static void fuzz_one(const char *bytes, size_t n)
{
    static const char *const names[] = {"id", "kind", NULL};
    struct quick_again plain = {0}, apart = {.apart = 1, .names = names};
    struct quick_form form = {0};
    for (size_t at = 0; at < n;) {
        const char *line = bytes + at, *end = memchr(line, '\n', n - at);
        size_t len = end ? (size_t)(end - line) : n - at;
        json_t *is = judge(line, len), *got = quick_object(line, len);
        fuzz_check(!got || (is && is_same(got, is)));
        json_decref(got);
        again(&plain, line, len, is);
        again(&apart, line, len, is);
        members(&form, line, len, is);
        list(line, len);
        json_decref(is);
        at += len + 1;
    }
    quick_again_free(&plain);
    quick_again_free(&apart);
    quick_form_free(&form);
}

FUZZ_TARGET("quick", 400)
