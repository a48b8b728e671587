/* test-tokenizer-steps.c - tests published pre-tokenizers, and characters newer than the tables of
 * the libraries. The words were compared with those of Hugging Face's tokenizers 0.23.3, and so
 * were the ids of 200000 random texts under each pre-tokenizer and under NFC. None differed. */
#include <utf8proc.h>

#include "lib/base/cli/opt.h"
#include "lib/text/tokenizer/nfc.h"
#include "tests/model/tokenizer-fixture.h"

#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"
#define BYTES(prefix, regex)                                                                     \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" #prefix ",\"trim_offsets\":true,"            \
    "\"use_regex\":" #regex "}"
#define SPLIT_AS(pattern, behavior, invert)                                                      \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"" behavior       \
    "\",\"invert\":" #invert "}"
#define SPLIT(pattern) SPLIT_AS(pattern, "Isolated", false)
#define DIGITS(individual) "{\"type\":\"Digits\",\"individual_digits\":" #individual "}"
#define PUNCTUATION(behavior) "{\"type\":\"Punctuation\",\"behavior\":\"" behavior "\"}"
#define LLAMA3_JSON                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}|"        \
    " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"

static const char smollm2[] = SEQUENCE(DIGITS(true) "," BYTES(false, true));
static const char starcoder_space[] = SEQUENCE(DIGITS(true) "," BYTES(true, true));
static const char runs[] = SEQUENCE(DIGITS(false) "," BYTES(true, false));
static const char deepseek_coder[] = SEQUENCE(
    SPLIT("[\\r\\n]") "," SPLIT("\\\\s?\\\\p{L}+") "," SPLIT("\\\\s?\\\\p{P}+") ","
    SPLIT("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+") "," DIGITS(true) "," BYTES(false, false));
static const char deepseek_v3[] = SEQUENCE(
    SPLIT("\\\\p{N}{1,3}") "," SPLIT("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+") ","
    SPLIT("[!\\\"#$%&'()*+,\\\\-./:;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|"
          "[^\\\\r\\\\n\\\\p{L}\\\\p{P}\\\\p{S}]?[\\\\p{L}\\\\p{M}]+|"
          " ?[\\\\p{P}\\\\p{S}]+[\\\\r\\\\n]*|"
          "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+") "," BYTES(false, false));
static const char falcon[] = SEQUENCE(PUNCTUATION("Contiguous") "," BYTES(false, true) ","
                                      DIGITS(false) "," SPLIT("[0-9][0-9][0-9]"));
static const char llama3[] = SEQUENCE(SPLIT(LLAMA3_JSON) "," BYTES(false, false));
static const char gpt2[] = BYTES(false, true);
static const char gpt4[] = SEQUENCE(SPLIT_AS(LLAMA3_JSON, "Removed", true) "," BYTES(false, false));
static const char punct[] = SEQUENCE(PUNCTUATION("Isolated") "," DIGITS(true) ","
                                     BYTES(false, true));
static const char punct_default[] = SEQUENCE("{\"type\":\"Punctuation\"}," BYTES(false, true));
static const char punct_previous[] = SEQUENCE(PUNCTUATION("MergedWithPrevious") ","
                                              BYTES(true, true));
static const char punct_next[] = SEQUENCE(PUNCTUATION("MergedWithNext") "," BYTES(false, true));
static const char punct_removed[] = SEQUENCE(PUNCTUATION("Removed") "," BYTES(false, true));
static const char contiguous_empty[] = SEQUENCE(SPLIT_AS("\\\\p{S}?", "Contiguous", true) ","
    SPLIT_AS("\\\\p{Lu}", "MergedWithPrevious", false) "," BYTES(true, false));
static const char word[] = SEQUENCE(SPLIT("\\\\w+|\\\\W") ","
    SPLIT_AS("\\\\s*", "MergedWithNext", false) "," BYTES(true, true));
static const char bytes_first[] = SEQUENCE(BYTES(true, true) ","
    SPLIT_AS("\u0120", "MergedWithNext", false) "," DIGITS(false));

#define EACH(behavior, invert)                                                                   \
    SEQUENCE(SPLIT_AS("\\\\d|-", behavior, invert) "," BYTES(false, false))
#define AT_SPACE(behavior, invert)                                                               \
    SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"" behavior         \
             "\",\"invert\":" #invert "}," BYTES(false, false))
#define DIGITS_OF "-a12 b--c3"

static const struct { const char *steps, *text, *want; } cases[] = {
    {EACH("Isolated", false), DIGITS_OF, "-|a|1|2| b|-|-|c|3"},
    {EACH("Isolated", true), DIGITS_OF, "-|a|1|2| b|-|-|c|3"},
    {EACH("Contiguous", false), DIGITS_OF, "-|a|12| b|--|c|3"},
    {EACH("Contiguous", true), DIGITS_OF, "-|a|12| b|--|c|3"},
    {EACH("MergedWithPrevious", false), DIGITS_OF, "-|a1|2| b-|-|c3"},
    {EACH("MergedWithPrevious", true), DIGITS_OF, "-a|1|2 b|-|-c|3"},
    {EACH("MergedWithNext", false), DIGITS_OF, "-a|1|2 b|-|-c|3"},
    {EACH("MergedWithNext", true), DIGITS_OF, "-|a1|2| b-|-|c3"},
    {EACH("Removed", false), DIGITS_OF, "a| b|c"},
    {EACH("Removed", true), DIGITS_OF, "-|1|2|-|-|3"},
    {AT_SPACE("MergedWithPrevious", false), " a  b c ", " |a | |b |c "},
    {AT_SPACE("MergedWithPrevious", true), " a  b c ", " a| | b| c| "},
    {AT_SPACE("MergedWithNext", false), " a  b c ", " a| | b| c| "},
    {AT_SPACE("MergedWithNext", true), " a  b c ", " |a | |b |c "},
    {SEQUENCE(SPLIT_AS("[a-z]*", "MergedWithNext", false) "," BYTES(false, false)), "NaN b",
     "N|aN| |b"},
    {smollm2, "I have 2016 reasons, it's 3.14\n\n  x12",
     "I| have| |2|0|1|6| reasons|,| it|'s| |3|.|1|4|\n\n | x|1|2"},
    {smollm2, "x\u00b2\u2160\u0665 \U00011de3\U00010d42y",
     "x|\u00b2|\u2160|\u0665| |\U00011de3|\U00010d42|y"},
    {starcoder_space, "ab 12c", " ab| | 1| 2| c"},
    {runs, "a12 34\u0665\U0001e5f7b", " a| 12| | 34\u0665\U0001e5f7| b"},
    {deepseek_coder, "def f(x2):\n\n  \u4e2d\u6587a, \"b\" 42",
     "def| f|(|x|2|):|\n|\n| | |\u4e2d\u6587|a|,| \"|b|\"| |4|2"},
    {deepseek_coder, "x\U00010d6e\U00011f45 \u1c89\ua7cb!",
     "x|\U00010d6e\U00011f45| |\u1c89|\ua7cb|!"},
    {deepseek_v3, "Fun1234 \u4e2d\u6587\u3042 (x);\n\ny  z",
     "Fun|123|4| |\u4e2d\u6587\u3042| (|x|);\n\n|y| | z"},
    {falcon, "a.. b12345, 12x\u00b2\u00bd", "a|..| b|123|45|,| |12|x|\302|\262|\302|\275"},
    {punct, "\"Hi\", x+y = 3.\u00bf\u2e43\u166d\u1b4e\U000111c9\U00010d6e",
     "\"|Hi|\"|,| x|+|y| |=| |3|.|\u00bf|\u2e43|\u166d|\u1b4e|\U000111c9|\U00010d6e"},
    {punct_default, "a, b!! c", "a|,| b|!|!| c"},
    {punct_previous, "a, b!! c", " a|,| b|!| !| c"},
    {punct_next, "a, b!! c", "a|,| b|!|!| c"},
    {punct_removed, "a, b!! c", "a| b| c"},
    {gpt4, "I've 1234  x\u1c89\u1c8a", "I|'ve| |123|4| | x\u1c89\u1c8a"},
    {contiguous_empty, "a++Bc$ dE", " a| ++| B| c| $| | d| E"},
    {word, "a_b\u0301\u00b2\u2460 \u24b6c", " a| _| b| \u0301| \u00b2| \u2460| | \u24b6| c"},
    {bytes_first, "ab cd12 \u00b9", " ab| cd|12| \302|\271"},
    {llama3,
     "a\U0002ebf0b \U00031360 \u1c89\u1c8a\U00010d44\U0001e5f7 \U0001fae9\u0897 \U00016d42x",
     "a\U0002ebf0b| \U00031360| \u1c89\u1c8a|\U00010d44\U0001e5f7| \U0001fae9\u0897| \U00016d42x"},
    {gpt2,
     "a\U0002ebf0b \U00031360 \u1c89\u1c8a\U00010d44\U0001e5f7 \U0001fae9\u0897 \U00016d42x",
     "a\U0002ebf0b| \U00031360| \u1c89\u1c8a|\U00010d44\U0001e5f7| \U0001fae9\u0897| \U00016d42x"},
};

static json_t *with_steps(json_t *model, const char *steps)
{
    json_t *file = fixture_file(model, NULL, 0);
    if (json_object_set_new(file, "pre_tokenizer", json_loads(steps, 0, NULL)))
        printf("Bail out! %s\n", steps);
    return file;
}

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        struct tokenizer *t =
            fixture_load(with_steps(fixture_model(NULL, 0, 0, 0), cases[i].steps), &e);
        struct buf b = {0};
        buf_reserve(&b, 1);
        if (t)
            tokenizer_words(t, cases[i].text, strlen(cases[i].text), fixture_bar, &b, &e);
        ok(t && !strcmp(b.data, cases[i].want), "\"%s\"", cases[i].text);
        if (!t || strcmp(b.data, cases[i].want) != 0)
            printf("# got %s%s\n# expected %s\n", t ? b.data : "", e.text, cases[i].want);
        buf_free(&b);
        tokenizer_free(t);
    }
}

static void test_refused(void)
{
    static const struct { const char *steps, *says; } bad[] = {
        {SEQUENCE(DIGITS(true)), "pre_tokenizer without ByteLevel"},
        {SEQUENCE(BYTES(false, true) "," BYTES(false, false)), "ByteLevel"},
        {SEQUENCE(PUNCTUATION("Sideways") "," BYTES(false, true)), "Sideways"},
        {SEQUENCE(SPLIT("a\\\\bb") "," BYTES(false, true)), "a\\bb"},
        {SEQUENCE("{\"type\":\"Whitespace\"}," BYTES(false, true)), "Whitespace"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = {0};
        struct tokenizer *t =
            fixture_load(with_steps(fixture_model(NULL, 0, 0, 0), bad[i].steps), &e);
        ok(!t && e.code == EXIT_BAD_DATA && strstr(e.text, bad[i].says), "refused: %s", e.text);
        tokenizer_free(t);
    }
}

/* ---- a whole file ---- */

/* The published file of SmolLM2: its first 17 pieces are special tokens too. */
static void test_smollm2(void)
{
    static const char *const special[] = {
        "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>",
        "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>",
        "<jupyter_start>", "<jupyter_text>", "<jupyter_code>", "<jupyter_output>",
        "<jupyter_script>", "<empty_output>"};
    static const char *const merges[] = {"\u0120 a", "u s", "1 2", "\u0120 1"};
    enum { N = sizeof special / sizeof *special, BYTE = N - '!', SPACE = N + 220, NEWLINE = N + 198,
           SP_A = N + 256, US };
    json_t *model = fixture_model(merges, 4, 0, 0), *vocab = json_object_get(model, "vocab"), *id;
    const char *piece;
    json_object_foreach(vocab, piece, id)
        json_integer_set(id, json_integer_value(id) + N);
    json_t *file = with_steps(model, smollm2);
    for (int i = 0; i < N; i++) {
        json_object_set_new(vocab, special[i], json_integer(i));
        fixture_added(file, i, special[i], "s");
    }
    static const char *const null[] = {"dropout", "unk_token", "continuing_subword_prefix",
                                       "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof null / sizeof *null; i++)
        json_object_set_new(model, null[i], json_null());
    json_object_set_new(model, "fuse_unk", json_false());
    json_object_set_new(model, "byte_fallback", json_false());
    json_object_set_new(file, "truncation", json_null());
    json_object_set_new(file, "padding", json_null());
    json_object_set_new(file, "post_processor", json_null());
    struct tokenizer *t = fixture_load(file, NULL);
    ok(tokenizer_size(t) == N + 260, "SmolLM2's layout: the special tokens count once");
    ok(fixture_ids(t, "<|im_start|>us\n a 12<|im_end|>", ENCODE_SPECIAL,
                   IDS(1, US, NEWLINE, SP_A, SPACE, BYTE + '1', BYTE + '2', 2)),
       "SmolLM2's layout: digits are never merged");
    tokenizer_free(t);
}

/* ---- new characters ---- */

static size_t utf8_length(uint32_t code)
{
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* utf8proc knows some of the new characters. Their categories must equal those of their
 * stand-ins. */
static void test_stand_ins(void)
{
    size_t n = 0, known = 0, wrong = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t s = utf8_stand_in(c);
        if (s == c)
            continue;
        utf8proc_category_t of = utf8proc_category((utf8proc_int32_t)c);
        n++;
        known += of != UTF8PROC_CATEGORY_CN;
        wrong += utf8_length(s) != utf8_length(c) || utf8_stand_in(s) != s ||
                 utf8proc_category((utf8proc_int32_t)s) == UTF8PROC_CATEGORY_CN ||
                 (of != UTF8PROC_CATEGORY_CN && of != utf8proc_category((utf8proc_int32_t)s));
    }
    ok(n == 10301 && wrong == 0,
       "%zu characters of Unicode 15.0 to 16.0 have stand-ins; of %zu that utf8proc (%s) knows %zu "
       "are wrong", n, known, utf8proc_unicode_version(), wrong);
    ok(utf8_is_word(0x1C89) && utf8_is_word(0x10D42) && !utf8_is_word(0x1FAE9),
       "\\w knows letters and digits of Unicode 16");
    ok(!strcmp(version_unicode, "16.0"), "--version says so");
}

/* New combining marks are put in the right order among others; new letters do not compose. */
static void test_newer_nfc(void)
{
    static const struct { const char *text, *nfc; } given[] = {
        {"e\u0897\u0301", "e\u0897\u0301"},
        {"\u0825\u0eba\u0eb8", "\u0825\u0eba\u0eb8"},
        {"a\U0001e08f\u0323\u0301", "a\U0001e08f\u0323\u0301"},
        {"e\u0301\u0c3c\u0301e\u0301", "\u00e9\u0c3c\u0301\u00e9"},
        {"\U00011935\U00011930", "\U00011935\U00011930"},
        {"\U000105d2\u0307", "\U000105d2\u0307"},
        {"a\u0301\u0316\u08d4", "\u00e1\u0316\u08d4"},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct buf y = {0};
        nfc_put(given[i].text, strlen(given[i].text), &y);
        ok(y.len && !strcmp(y.data, given[i].nfc), "NFC of Unicode 9, case %zu: %s", i, y.data);
        buf_free(&y);
    }
}

/* Published patterns take long runs whole. A pattern that reads from every place to the end of the
 * text is stopped after a number of steps in proportion to the length of the text. */
static void test_limits(void)
{
    enum { LONG = 1 << 20 };
    static const char runs_of[] = "a \n1.";
    char *text = mem_alloc(LONG);
    struct err e = {0};
    struct ids out = {0};
    for (size_t i = 0; i < sizeof runs_of - 1; i++) {
        struct tokenizer *t = fixture_load(with_steps(fixture_model(NULL, 0, 0, 0), llama3), NULL);
        memset(text, runs_of[i], LONG);
        ok(!tokenizer_encode(t, text, LONG, 0, &out, &e) && out.n == LONG, "a run of 0x%02x %s",
           (unsigned)runs_of[i], e.text);
        out.n = 0;
        tokenizer_free(t);
    }
    memset(text, 'a', LONG);
    static const char *const far[] = {SEQUENCE(SPLIT("a*[bc]|a") "," BYTES(false, false)),
                                      SEQUENCE(SPLIT("(a*)*b|a") "," BYTES(false, false))};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        e = (struct err){0};
        struct tokenizer *t = fixture_load(with_steps(fixture_model(NULL, 0, 0, 0), far[i]), NULL);
        ok(!tokenizer_encode(t, text, 8, 0, &out, &e) && out.n == 8, "a short text %s", e.text);
        out.n = 0;
        ok(tokenizer_encode(t, text, LONG, 0, &out, &e) == -1 && e.code == EXIT_BAD_DATA &&
               strstr(e.text, "takes too many steps"),
           "a pattern that looks far: %s", e.text);
        tokenizer_free(t);
    }
    ids_free(&out);
    free(text);
}

int main(void)
{
    fixture_start();
    test_cases();
    test_refused();
    test_smollm2();
    test_stand_ins();
    test_newer_nfc();
    test_limits();
    fixture_end();
    return tap_done();
}
