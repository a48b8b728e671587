/* test-tokenizer-characters.c - tests tokenizers whose merges begin with characters
 * (SentencePiece): Llama 2, TinyLlama, Mistral, Gemma. The expected ids and texts come from Hugging
 * Face's tokenizers 0.23.3. For 100000 random texts under each of sixteen such configurations no id
 * differed. */
#include "tests/model/tokenizer-fixture.h"

#define SP "\xE2\x96\x81" /* U+2581 */
#define REPLACE(from, to) "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},"           \
                          "\"content\":\"" to "\"}"
#define LEGACY                                                                                    \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" SP "\"},"       \
    REPLACE(" ", SP) "]}"
#define METASPACE(scheme, split)                                                                  \
    "{\"type\":\"Metaspace\",\"replacement\":\"" SP "\",\"prepend_scheme\":\"" scheme "\","        \
    "\"split\":" split "}"
#define STRIPS                                                                                    \
    "{\"type\":\"Sequence\",\"decoders\":[" REPLACE(SP, " ") ",{\"type\":\"ByteFallback\"},"       \
    "{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"

static void put(json_t *vocab, const char *piece)
{
    if (!json_object_get(vocab, piece))
        json_object_set_new(vocab, piece, json_integer((json_int_t)json_object_size(vocab)));
}

/* Makes a vocabulary: three special pieces, with `fallback` 256 bytes, characters, and merged
 * pieces. */
static json_t *model(int fallback, int crosses)
{
    static const char *const pieces[] = {SP, "a", "b", "c", "d", "\u00e9", "\u4e2d", SP "a", "bc",
                                         SP "abc", "d" SP, SP SP, "abc", SP SP SP SP};
    static const char *const merges[][2] = {{"d", SP}, {SP, "a"}, {"b", "c"}, {SP "a", "bc"},
                                            {SP, SP}, {"a", "bc"}, {SP SP, SP SP}};
    json_t *vocab = json_object(), *list = json_array();
    char name[8];
    put(vocab, "<unk>");
    put(vocab, "<s>");
    put(vocab, "</s>");
    for (unsigned i = 0; fallback && i < 256; i++) {
        snprintf(name, sizeof name, "<0x%02X>", i);
        put(vocab, name);
    }
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        put(vocab, pieces[i]);
    for (size_t i = !crosses; i < sizeof merges / sizeof *merges; i++)
        json_array_append_new(list, json_pack("[s,s]", merges[i][0], merges[i][1]));
    return json_pack("{s:s,s:s,s:b,s:b,s:o,s:o}", "type", "BPE", "unk_token", "<unk>", "fuse_unk",
                     1, "byte_fallback", fallback, "vocab", vocab, "merges", list);
}

/* Makes a tokenizer.json. The parts are JSON texts; takes over `its`, the model. */
static json_t *file(json_t *its, const char *normalizer, const char *pre, const char *decoder)
{
    json_t *all = json_object(), *special = json_array();
    static const char *const names[] = {"<unk>", "<s>", "</s>"};
    json_object_set_new(all, "added_tokens", special);
    for (int i = 0; i < 3; i++)
        fixture_added(all, i, names[i], "s");
    const char *const parts[] = {"normalizer", normalizer, "pre_tokenizer", pre, "decoder",
                                 decoder, "post_processor", "null"};
    for (int i = 0; i < 8; i += 2)
        json_object_set_new(all, parts[i], json_loads(parts[i + 1], JSON_DECODE_ANY, NULL));
    json_object_set_new(all, "model", its);
    return all;
}

/* Tests the ids of a text, and the text of these ids. */
static void check(const char *name, const struct tokenizer *t, const char *text, const int *ids,
                  const char *back)
{
    struct buf b = {0};
    struct ids got = {0};
    int same = fixture_ids(t, text, 0, ids);
    tokenizer_encode(t, text, strlen(text), 0, &got, NULL);
    tokenizer_decode(t, got.v, got.n, 1, &b);
    ok(same && !strcmp(b.len ? b.data : "", back), "%s, %zu bytes: \"%zu\" bytes back", name,
       strlen(text), b.len);
    buf_free(&b);
    ids_free(&got);
}

static void test_schemes(void)
{
    struct tokenizer *t = fixture_load(file(model(1, 0), LEGACY, "null", STRIPS), NULL);
    ok(t->cuts == TOKENIZER_SAFE, "no merge crosses the beginning of a word");
    check("legacy", t, "abc abc", IDS(268, 268), "abc abc");
    check("legacy", t, "a  bc", IDS(266, 270, 267), "a  bc");
    check("legacy", t, "", IDS(-1), "");
    check("legacy", t, "\u00e9\u4e2d\u00f1\n", IDS(259, 264, 265, 198, 180, 13),
          "\u00e9\u4e2d\u00f1\n");
    check("legacy", t, "<s>abc</s> a", IDS(1, 268, 2, 259, 266), "abc  a");
    check("legacy", t, "    a", IDS(272, 266), "    a");
    check("legacy", t, "ab" SP "c", IDS(266, 261, 259, 262), "ab c");
    tokenizer_free(t);
    t = fixture_load(file(model(1, 0), "null", METASPACE("first", "false"), STRIPS), NULL);
    check("first", t, "abc abc", IDS(268, 268), "abc abc");
    check("first", t, "<s>abc</s> a", IDS(1, 271, 2, 266), "abc a");
    check("first", t, "    a", IDS(270, 259, 266), "   a");
    tokenizer_free(t);
    t = fixture_load(file(model(1, 0), "null", METASPACE("always", "true"),
                          METASPACE("always", "true")), NULL);
    check("always, split", t, "a  bc", IDS(266, 259, 259, 267), "a  bc");
    check("always, split", t, "<s>abc</s> a", IDS(1, 268, 2, 266), "abc a");
    check("always, split", t, "    a", IDS(259, 259, 259, 266), "   a");
    tokenizer_free(t);
    t = fixture_load(file(model(1, 0), "null", METASPACE("never", "false"),
                          METASPACE("never", "false")), NULL);
    check("never", t, "abc abc", IDS(271, 268), "abc abc");
    check("never", t, "    a", IDS(270, 259, 266), "    a");
    check("never", t, "\u00f1", IDS(198, 180), "<0xC3><0xB1>");
    tokenizer_free(t);
}

static void test_merges(void)
{
    struct tokenizer *t = fixture_load(file(model(1, 1), LEGACY, "null", STRIPS), NULL);
    ok(t->cuts == TOKENIZER_WHOLE, "a merge crosses");
    check("a merge across words", t, "d abc", IDS(259, 269, 271), "d abc");
    tokenizer_free(t);
    json_t *whole = model(1, 0);
    json_object_set_new(whole, "ignore_merges", json_true());
    json_array_clear(json_object_get(whole, "merges"));
    t = fixture_load(file(whole, LEGACY, "null", STRIPS), NULL);
    check("ignore_merges: a whole text that is a piece", t, "abc", IDS(268), "abc");
    check("ignore_merges: a part is not looked for as a piece", t, "abc abc",
          IDS(259, 260, 261, 262, 259, 260, 261, 262), "abc abc");
    tokenizer_free(t);
}

static void test_unknown(void)
{
    json_t *its = model(0, 0);
    struct tokenizer *t = fixture_load(file(json_incref(its), "null", METASPACE("always", "false"),
                                            STRIPS), NULL);
    check("unknown characters are one", t, "\u00e9\u4e2d\u00f1\n", IDS(3, 8, 9, 0), "\u00e9\u4e2d");
    tokenizer_free(t);
    json_object_set_new(its, "fuse_unk", json_false());
    t = fixture_load(file(json_incref(its), "null", METASPACE("always", "false"), STRIPS), NULL);
    check("fuse_unk false: each unknown character is one", t, "\u00e9\u4e2d\u00f1\n",
          IDS(3, 8, 9, 0, 0), "\u00e9\u4e2d");
    tokenizer_free(t);
    json_object_set_new(its, "unk_token", json_null());
    t = fixture_load(file(its, "null", METASPACE("always", "false"), STRIPS), NULL);
    check("without unk_token unknown characters are dropped", t, "\u00e9\u4e2d\u00f1\na",
          IDS(3, 8, 9, 4), "\u00e9\u4e2da");
    tokenizer_free(t);
}

static void test_added(void)
{
    json_t *all = file(model(1, 0), LEGACY, "null", STRIPS);
    fixture_added(all, 273, "<n>", "n");
    fixture_added(all, 274, "<l>", "l");
    fixture_added(all, 275, "<w>", "w");
    struct tokenizer *t = fixture_load(all, NULL);
    check("added tokens", t, "x<n> y<l> <w>z <w>",
          IDS(259, 123, 63, 113, 65, 259, 124, 274, 270, 63, 122, 65, 125, 259, 275),
          "x<n> y<l>  <w>z <w>");
    tokenizer_free(t);
}

/* Bytes that are not UTF-8 become U+FFFD, one for each byte. In a stream they stay bytes. */
static void test_bytes(void)
{
    struct tokenizer *t = fixture_load(file(model(1, 0), LEGACY, "null", STRIPS), NULL);
    static const struct { int32_t ids[2]; const char *text, *bytes; } cases[] = {
        {{198, 172}, "\u00e9", "\xC3\xA9"}, {{198, 260}, "\uFFFDa", "\xC3" "a"},
        {{231, 187}, "\uFFFD\uFFFD", "\xE4\xB8"}, {{259, 260}, "a", " a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf b = {0}, raw = {0};
        tokenizer_decode(t, cases[i].ids, 2, 1, &b);
        tokenizer_bytes(t, cases[i].ids, 2, 1, &raw);
        ok(!strcmp(b.data, cases[i].text) && !strcmp(raw.data, cases[i].bytes), "bytes %zu", i);
        buf_free(&b);
        buf_free(&raw);
    }
    ok(tokenizer_id(t, SP "abc") == 268 && tokenizer_id(t, "<0x0A>") == 13 &&
           tokenizer_id(t, "xyz") == -1, "pieces by their text");
    tokenizer_free(t);
}

/* Special tokens are not recognised over marked bytes, normalized special tokens neither. */
static void test_marks(void)
{
    json_t *all = file(model(1, 0), LEGACY, "null", STRIPS);
    fixture_added(all, 273, "a<n>", "ns"); /* as text: U+2581 a < n > */
    struct tokenizer *t = fixture_load(all, NULL);
    static const char text[] = "<s>a<n></s>", given[] = "\0\0\0\1\1\1\1\0\0\0\0";
    static const struct { const char *marks; int want[10]; } cases[] = {
        {NULL, {1, 273, 2, -1}},
        {given, {1, 266, 63, 113, 65, 2, -1}},
        {"\1\0\0\0\0\0\0\0\0\0\0", {259, 63, 118, 65, 260, 63, 113, 65, 2, -1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ids got = {0};
        int bad = tokenizer_encode_marked(t, text, sizeof text - 1, cases[i].marks, &got, NULL);
        size_t n = 0;
        for (; cases[i].want[n] >= 0 && !bad; n++)
            bad = n >= got.n || got.v[n] != cases[i].want[n];
        ok(!bad && n == got.n, "marks %zu: %zu ids", i, got.n);
        ids_free(&got);
    }
    tokenizer_free(t);
}

int main(void)
{
    fixture_start();
    test_schemes();
    test_merges();
    test_unknown();
    test_added();
    test_bytes();
    test_marks();
    fixture_end();
    return tap_done();
}
