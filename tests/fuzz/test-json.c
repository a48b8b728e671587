/* test-json.c - feeds JSON texts: accepted texts are the same after they are written and read
 * again. json_file(), rec-read.c and reply.c use the same strict parser, json_strict(). */
#include "lib/record/json.h"
#include "tests/fuzz/fuzz.h"

static int fuzz_seed(size_t i, struct buf *to)
{
    static const char *const text[] = {
        "{\"a\":[1,-0.5e3,true,null,\"\\u00e9\\ud83d\\ude00\\n\"],\"b\":{}}",
        "{\"model_max_length\": 1000000000000000019884624838656, \"n\":9007199254740993}",
        "[[[[]]],\"\xc3\xa9\",1e-400,\"\\u0000\"]", " 17 ", "{\"a\":1,\"a\":2}"};
    if (i >= sizeof text / sizeof *text)
        return 0;
    buf_text(to, text[i]);
    return 1;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    json_t *j = json_bytes(bytes, n, "x.json", &e);
    if (!j) {
        fuzz_check_refused(&e);
        return;
    }
    fuzz_check(!memchr(bytes, 0, n));
    struct buf text = {0};
    fuzz_check(!json_put(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17), &text));
    json_t *again = json_bytes(text.data, text.len, "x.json", &e);
    fuzz_check(json_equal(j, again));
    json_decref(again);
    json_decref(j);
    buf_free(&text);
}

FUZZ_TARGET("json", 2000)
