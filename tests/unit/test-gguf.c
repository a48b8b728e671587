/* test-gguf.c - tests the rules of GGUF headers one by one, with headers that are good or bad for
 * one reason; and the tokenizer that the keys of a header make. */
#include "lib/checkpoint/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/text/tokenizer.h"
#include "tests/tap.h"

static struct buf file;
static json_t *meta;
static struct err why;
static int mixed; /* a file was accepted with an error, or refused without one */

static void put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_char(&file, (char)(v >> 8 * i));
}

static void put_text(const char *text, size_t n)
{
    put(n, 8);
    buf_put(&file, text, n);
}

static void begin(uint64_t keys)
{
    file.len = 0;
    buf_text(&file, "GGUF");
    put(3, 4);
    put(0, 8);
    put(keys, 8);
}

/* Puts a key, and the first bytes of its value of this type. */
static void put_key(const char *key, unsigned type, uint64_t value, int bytes)
{
    put_text(key, strlen(key));
    put(type, 4);
    put(value, bytes);
}

/* Returns 1 if the first n bytes of the file are accepted; meta then has the keys. */
static int accepts(size_t n)
{
    struct tensor *list;
    size_t count;
    json_decref(meta);
    meta = NULL;
    why = (struct err){0};
    const int bad = gguf_parse((const unsigned char *)file.data, n, "x.gguf", &list, &count, &meta,
                               &why);
    free(list);
    mixed |= !bad != !why.code;
    return !bad;
}

static json_int_t whole(const char *key)
{
    const json_t *j = json_object_get(meta, key);
    return json_is_integer(j) ? json_integer_value(j) : -77;
}

static void test_ends(void)
{
    begin(0);
    ok(accepts(file.len), "a header without keys and tensors, and nothing after it");
    begin(1);
    put_key("tokenizer.x", 9, 8, 4);
    put(2, 8);
    put_text("a", 1);
    put_text("bc", 2);
    ok(accepts(file.len) && json_array_size(json_object_get(meta, "tokenizer.x")) == 2,
       "an array of two texts");
    int refused = 1;
    for (size_t n = 0; n < file.len; n++)
        refused &= !accepts(n) && why.code == EXIT_BAD_DATA;
    ok(refused, "the same file cut anywhere is refused");
    begin(1);
    put_key("tokenizer.x", 9, 8, 4);
    put(1, 8);
    put(1000, 8);
    ok(!accepts(file.len) && strstr(why.text, "expected 1000 more bytes"),
       "an item of an array that is longer than the file is refused");
}

static void test_names(void)
{
    char name[GGUF_MAX_NAME + 2];
    memset(name, 'n', sizeof name);
    for (size_t n = GGUF_MAX_NAME; n < sizeof name; n++) {
        begin(1);
        put_text(name, n);
        put(0, 4);
        put(7, 1);
        ok(accepts(file.len) == (n == GGUF_MAX_NAME), "a name of %zu bytes", n);
    }
    begin(1);
    put_key("", 0, 7, 1);
    ok(!accepts(file.len), "an empty name is refused");
    begin(2);
    put_key("twice", 0, 7, 1);
    put_key("twice", 0, 7, 1);
    ok(!accepts(file.len) && strstr(why.text, "twice"), "a key that appears twice is refused");
}

static void test_values(void)
{
    begin(8);
    put_key("u8", 0, 255, 1);
    put_key("i8", 1, 255, 1);
    put_key("i32", 5, 0x80000000, 4);
    put_key("f32", 6, 0x3fc00000, 4);
    put_key("yes", 7, 1, 1);
    put_key("no", 7, 0, 1);
    put_key("u64", 10, UINT64_C(1) << 63, 8);
    put_key("i64", 11, UINT64_MAX - 1, 8);
    ok(accepts(file.len) && whole("u8") == 255 && whole("i8") == -1 &&
           whole("i32") == -INT64_C(2147483648) && whole("i64") == -2,
       "whole numbers with and without sign");
    ok(json_real_value(json_object_get(meta, "f32")) == 1.5 &&
           json_is_true(json_object_get(meta, "yes")) && json_is_false(json_object_get(meta, "no")),
       "a real number and booleans");
    ok(json_is_null(json_object_get(meta, "u64")), "a number beyond 2^63 is null");
    begin(1);
    put_key("x", 13, 0, 1);
    ok(!accepts(file.len) && strstr(why.text, "type 13"), "an unknown type is refused");
    begin(1);
    put_key("x", 9, 9, 4);
    put(0, 8);
    ok(!accepts(file.len) && strstr(why.text, "type 9"), "an array in an array is refused");
}

/* The tokenizer of five SentencePiece tokens, one of each kind, with `more` among the keys. */
static json_t *tokenizer_with(const char *more)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"tokenizer.ggml.model\": \"llama\", \"tokenizer.ggml.tokens\": [\"<unk>\", \"<s>\","
             "\"a\", \"<u>\", \"b\"], \"tokenizer.ggml.scores\": [0, 0, 0, 0, 0],"
             "\"tokenizer.ggml.token_type\": [2, 3, 1, 4, 6],"
             "\"tokenizer.ggml.unknown_token_id\": 0%s}",
             more);
    json_t *keys = json_loads(text, 0, NULL), *j = tokenizer_of_gguf(keys, "x.gguf", &why);
    json_decref(keys);
    return j;
}

static void test_tokenizer(void)
{
#define START ", \"tokenizer.ggml.bos_token_id\": 1"
#define ADD ", \"tokenizer.ggml.add_bos_token\": "
    static const struct start { const char *name, *keys; int puts; } starts[] = {
        {"without a first token in the keys, texts get none", "", 0},
        {"a first token is put unless the keys say no", START, 1},
        {"a first token is put if the keys say so", START ADD "true", 1},
        {"no first token is put if the keys say no", START ADD "false", 0},
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        json_t *j = tokenizer_with(starts[i].keys);
        ok(j && json_is_object(json_object_get(j, "post_processor")) == starts[i].puts, "%s",
           starts[i].name);
        json_decref(j);
    }
    json_t *j = tokenizer_with("");
    const json_t *added = json_object_get(j, "added_tokens"), *token;
    size_t i;
    json_int_t ids = 0, special = 0;
    json_array_foreach(added, i, token) {
        ids = 10 * ids + json_integer_value(json_object_get(token, "id")) + 1;
        special = 10 * special + json_is_true(json_object_get(token, "special"));
    }
    ok(ids == 124 && special == 110, "tokens of kinds unknown, control and user are added tokens");
    json_decref(j);
}

int main(void)
{
    test_ends();
    test_names();
    test_values();
    test_tokenizer();
    ok(!mixed, "a refusal sets an error, a success does not");
    json_decref(meta);
    buf_free(&file);
    return tap_done();
}
