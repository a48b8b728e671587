/* test-tokenizer-files.c - tests wrong tokenizer.json files: each is refused with exit code 65 and
 * a message that names the fault. Unknown parts that do no harm are accepted. */
#include "lib/base/rng.h"
#include "tests/model/tokenizer-fixture.h"

static const char *const merges[] = {"a b", "ab c"};

static json_t *good_file(void)
{
    return fixture_file(fixture_model(merges, 2, 0, 0), LLADA, 1);
}

/* The file with `path` ("model.vocab", ...) set to the JSON text, or removed if `text` is NULL. */
static json_t *changed(const char *path, const char *text)
{
    json_t *file = good_file(), *at = file;
    char *copy = mem_text(path), *key = copy, *slash;
    for (; (slash = strchr(key, '/')); key = slash + 1) {
        *slash = 0;
        at = json_object_get(at, key);
    }
    json_error_t why;
    if (!text)
        json_object_del(at, key);
    else if (json_object_set_new(at, key, json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why)))
        printf("Bail out! %s: %s\n", text, why.text);
    free(copy);
    return file;
}

struct change { const char *path, *text, *says; };

static void check_bad(const char *path, const char *text, json_t *file, const char *says)
{
    struct err e = {0};
    struct tokenizer *t = fixture_load(file, &e);
    ok(!t && e.code == EXIT_BAD_DATA && strstr(e.text, says), "%s = %.50s: refused", path,
       text ? text : "nothing");
    if (t || !strstr(e.text, says))
        printf("# expected \"%s\", got \"%s\"\n", says, e.text);
    tokenizer_free(t);
}

#define TEMPLATE(single, special)                                                               \
    "{\"type\":\"TemplateProcessing\",\"single\":" single ",\"special_tokens\":" special "}"

static const struct change bad[] = {
    {"model", NULL, "model"},
    {"model", "[]", "model"},
    {"model/type", "\"WordPiece\"", "WordPiece"},
    {"model/vocab", NULL, "vocab"},
    {"model/vocab", "[]", "vocab"},
    {"model/vocab", "{}", "vocab"},
    {"model/vocab/a", NULL, "no piece has id 64"},
    {"model/vocab/a", "65", "twice"},
    {"model/vocab/a", "-1", "-1"},
    {"model/vocab/a", "1.0", "1.0"},
    {"model/vocab/a", "\"64\"", "64"},
    {"model/vocab/a", "2147483648", "2147483648"},
    {"model/vocab/a", "2097152", "2097152"},
    {"model/vocab/\xE4\xB8\xAD", "258", "byte-level alphabet"},
    {"model/vocab/x y", "258", "byte-level alphabet"},
    {"model/vocab/", "258", "empty piece"},
    {"model/merges", NULL, "merges"},
    {"model/merges", "{}", "merges"},
    {"model/merges", "[\"a b\",\"a b\"]", "twice"},
    {"model/merges", "[\"a b\",[\"a\",\"b\"]]", "twice"},
    {"model/merges", "[\"ab\"]", "two pieces"},
    {"model/merges", "[\"a b c\"]", "two pieces"},
    {"model/merges", "[\" b\"]", "two pieces"},
    {"model/merges", "[\"a \"]", "two pieces"},
    {"model/merges", "[[\"a\"]]", "two pieces"},
    {"model/merges", "[[\"a\",\"b\",\"c\"]]", "two pieces"},
    {"model/merges", "[[\"a\",1]]", "two pieces"},
    {"model/merges", "[7]", "two pieces"},
    {"model/merges", "[\"a b\\u0000c\"]", "two pieces"},
    {"model/merges", "[[\"a\\u0000b\",\"b\"]]", "two pieces"},
    {"model/merges", "[\"a b\",\"x y\"]", "\"xy\" is not in the vocab"},
    {"model/merges", "[\"a zz\"]", "\"zz\" is not in the vocab"},
    {"model/dropout", "0.1", "dropout"},
    {"model/continuing_subword_prefix", "\"##\"", "##"},
    {"model/end_of_word_suffix", "\"</w>\"", "</w>"},
    {"added_tokens", "{}", "added_tokens"},
    {"added_tokens", "[{\"id\":258}]", "content"},
    {"added_tokens", "[{\"id\":258,\"content\":\"\"}]", "content"},
    {"added_tokens", "[{\"id\":258,\"content\":\"<s>\\u0000\"}]", "content"},
    {"added_tokens", "[{\"content\":\"<s>\"}]", "<s>"},
    {"added_tokens", "[{\"id\":-3,\"content\":\"<s>\"}]", "-3"},
    {"added_tokens", "[{\"id\":9999999,\"content\":\"<s>\"}]", "9999999"},
    {"added_tokens", "[{\"id\":64,\"content\":\"<s>\"}]", "clashes"},
    {"added_tokens", "[{\"id\":258,\"content\":\"ab\"}]", "clashes"},
    {"added_tokens", "[{\"id\":258,\"content\":\"x1\"},{\"id\":258,\"content\":\"y1\"}]",
     "clashes"},
    {"added_tokens", "[{\"id\":258,\"content\":\"x1\"},{\"id\":259,\"content\":\"x1\"}]", "twice"},
    {"normalizer", "{\"type\":\"NFKC\"}", "NFKC"},
    {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":"
                   "\"Lowercase\"}]}", "Lowercase"},
    {"pre_tokenizer", "null", "pre_tokenizer"},
    {"pre_tokenizer", "{\"type\":\"Whitespace\"}", "Whitespace"},
    {"pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[]}", "Sequence"},
    {"pre_tokenizer", "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
                      "\"pattern\":{\"Regex\":\"a\\u0000b\"},\"behavior\":\"Isolated\"},"
                      "{\"type\":\"ByteLevel\",\"use_regex\":false}]}", "pre_tokenizer"},
    {"decoder", NULL, "decoder"},
    {"decoder", "{\"type\":\"Metaspace\"}", "Metaspace"},
    {"decoder", "{\"type\":\"Sequence\",\"decoders\":[]}", "Sequence"},
    {"decoder", "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"},"
                "{\"type\":\"ByteLevel\"}]}", "Sequence"},
    {"decoder", "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"}]}",
     "ByteFallback"},
    {"post_processor", "{\"type\":\"BertProcessing\"}", "BertProcessing"},
    {"post_processor", TEMPLATE("[]", "{}"), "Sequence A"},
    {"post_processor", TEMPLATE("[{\"Sequence\":{\"id\":\"B\"}}]", "{}"), "template part"},
    {"post_processor",
     TEMPLATE("[{\"Sequence\":{\"id\":\"A\"}},{\"Sequence\":{\"id\":\"A\"}}]", "{}"),
     "template part"},
    {"post_processor", TEMPLATE("[{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{\"id\":\"A\"}}]",
                                "{}"), "template part"},
    {"post_processor", TEMPLATE("[{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{\"id\":\"A\"}}]",
                                "{\"s\":{\"ids\":[258]}}"), "258"},
};

static const char *const bad_patterns[] = {"(a", "[[a-z]&&[^b]]", "[a[b]]", "\\h+", "[^\\S\\n]",
                                           "a\\", "\\p{Nothing}"};

static void test_bad(void)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_bad(bad[i].path, bad[i].text, changed(bad[i].path, bad[i].text), bad[i].says);
    for (size_t i = 0; i < sizeof bad_patterns / sizeof *bad_patterns; i++)
        check_bad("pattern", bad_patterns[i],
                  fixture_file(fixture_model(NULL, 0, 0, 0), bad_patterns[i], 0), bad_patterns[i]);
}

/* SentencePiece vocabularies without a piece that their settings name. */
static void test_sentencepiece(void)
{
    static const char metaspace[] =
        "{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"first\"}";
    json_t *file = changed("model/byte_fallback", "true");
    json_object_set_new(file, "pre_tokenizer", json_null());
    check_bad("byte_fallback", "no bytes", file, "expected <0x00> in the vocab");
    file = changed("model/unk_token", "\"<unk>\"");
    json_object_set_new(file, "pre_tokenizer", json_loads(metaspace, 0, NULL));
    check_bad("unk_token", "no piece", file, "<unk>");
    check_bad("prepend_scheme", "last", changed("pre_tokenizer", "{\"type\":\"Metaspace\","
                                                "\"prepend_scheme\":\"last\"}"), "last");
    check_bad("replacement", "_", changed("pre_tokenizer", "{\"type\":\"Metaspace\","
                                          "\"replacement\":\"_\"}"), "replacement");
    check_bad("decoder", "ByteLevel", changed("pre_tokenizer", metaspace), "decoder");
}

static const struct change harmless[] = {
    {"truncation", "{\"max_length\":4}", ""},
    {"padding", "{\"strategy\":\"BatchLongest\"}", ""},
    {"version", "\"1.0\"", ""},
    {"model/type", NULL, ""},
    {"model/unk_token", "null", ""},
    {"model/dropout", "null", ""},
    {"model/byte_fallback", "true", ""},
    {"model/end_of_word_suffix", "\"\"", ""},
    {"model/fuse_unk", "false", ""},
    {"decoder", "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"}]}", ""},
    {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[]}", ""},
    {"normalizer", "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}", ""},
    {"normalizer", NULL, ""},
    {"added_tokens", NULL, ""},
    {"added_tokens", "[{\"id\":258,\"content\":\"<s>\"},{\"id\":300,\"content\":\"<0x-1>\"}]", ""},
    {"added_tokens", "[{\"id\":257,\"content\":\"abc\",\"special\":true}]", ""},
    {"model/vocab/<0xZZ>", "258", ""},
};

static void test_harmless(void)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        struct err e = {0};
        struct tokenizer *t = fixture_load(changed(harmless[i].path, harmless[i].text), &e);
        ok(t && fixture_ids(t, "abc", 0, IDS(257)), "%s = %s: accepted %s", harmless[i].path,
           harmless[i].text ? harmless[i].text : "nothing", e.text);
        tokenizer_free(t);
    }
}

/* The expected ids come from Hugging Face's tokenizers 0.23.3. */
static void test_missing_byte(void)
{
#define MODEL "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"
    struct tokenizer *t = fixture_load(changed("model", MODEL "}"), NULL);
    char text[400];
    memset(text, 'x', sizeof text);
    memcpy(text + sizeof text - 4, "axb", 4);
    ok(fixture_ids(t, "abx", 0, IDS(2)), "a byte without a piece is left out");
    ok(fixture_ids(t, "axb", 0, IDS(2)), "the neighbours of a left-out byte are merged");
    ok(fixture_ids(t, text, 0, IDS(2)), "bytes without a piece are left out of a long word");
    ok(fixture_ids(t, "x", 0, IDS(-1)), "a text of one byte without a piece has no ids");
    tokenizer_free(t);
    t = fixture_load(changed("model", MODEL ",\"unk_token\":\"b\"}"), NULL);
    ok(fixture_ids(t, "axxa", 0, IDS(2, 1, 0)),
       "with unk_token a byte without a piece becomes that piece");
    tokenizer_free(t);
    t = fixture_load(changed("model", MODEL ",\"unk_token\":\"b\",\"fuse_unk\":true}"), NULL);
    ok(fixture_ids(t, "axxa", 0, IDS(2, 0)), "unknown pieces side by side are one");
    tokenizer_free(t);
    check_bad("unk_token", "no piece", changed("model", MODEL ",\"unk_token\":\"z\"}"), "z");
#undef MODEL
}

/* A file cut anywhere, or with any flipped byte, loads or is refused with exit code 65. */
static void test_broken_text(void)
{
    json_t *file = fixture_file(json_loads("{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},"
                                           "\"merges\":[\"a b\"]}", 0, NULL), LLADA, 1);
    fixture_added(file, 3, "<s>", "s");
    char *text = json_dumps(file, JSON_COMPACT);
    size_t n = strlen(text), accepted = 0, wrong_code = 0;
    struct rng r = {.seed = 5};
    json_decref(file);
    for (size_t cut = 0; cut < n; cut += 3) {
        struct err e = {0};
        struct tokenizer *t = fixture_load_text(text, cut, &e);
        accepted += t != NULL;
        wrong_code += e.code != EXIT_BAD_DATA;
        tokenizer_free(t);
    }
    ok(accepted == 0 && wrong_code == 0, "a file cut anywhere is refused");
    for (int i = 0; i < 600; i++) {
        size_t at = rng_below(&r, n);
        char old = text[at];
        text[at] = (char)rng_below(&r, 256);
        struct err e = {0};
        struct tokenizer *t = fixture_load_text(text, n, &e);
        wrong_code += !t && e.code != EXIT_BAD_DATA;
        struct ids out = {0};
        if (t)
            tokenizer_encode(t, "abba <s> ", 9, ENCODE_SPECIAL, &out, NULL);
        ids_free(&out);
        tokenizer_free(t);
        text[at] = old;
    }
    ok(wrong_code == 0, "a file with one byte changed loads or is refused with 65");
    free(text);
    char *deep = mem_alloc(100000);
    memset(deep, '[', 100000);
    struct err e = {0};
    ok(!fixture_load_text(deep, 100000, &e) && e.code == EXIT_BAD_DATA, "100000 brackets deep");
    free(deep);
    e = (struct err){0};
    ok(!tokenizer_load("/nonexistent", &e) && e.code == EXIT_NO_INPUT, "no file: %s", e.text);
}

int main(void)
{
    fixture_start();
    test_bad();
    test_sentencepiece();
    test_harmless();
    test_missing_byte();
    test_broken_text();
    fixture_end();
    return tap_done();
}
