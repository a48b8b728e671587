/* test-tokenizer.c - tests text to ids and back: words, merges, added tokens, templates, bytes. */
#include <time.h>
#include <utf8proc.h>

#include "lib/base/hash.h"
#include "lib/base/rng.h"
#include "lib/text/tokenizer/nfc.h"
#include "lib/text/utf8.h"
#include "tests/model/tokenizer-fixture.h"

/* ---- words ---- */

struct cut_case { const char *text, *llada, *llama3, *gpt2; }; /* NULL: equal to llada's */

static const struct cut_case cut_cases[] = {
    {"Hello world", "Hello| world", NULL, NULL},
    {"You should've done this", "You| should|'ve| done| this", NULL, NULL},
    {"I'LL we'Re it'S d'D", "I|'LL| we|'Re| it|'S| d|'D", NULL,
     "I|'|LL| we|'|Re| it|'|S| d|'|D"},
    {"'\u017fx", "'\u017f|x", "'\u017f|x", "'|\u017fx"}, /* long s folds to s */
    {"in 2016.", "in| |2|0|1|6|.", "in| |201|6|.", "in| 2016|."},
    {"x\u00b2\u2160\u0665", "x|\u00b2|\u2160|\u0665", "x|\u00b2\u2160\u0665",
     "x|\u00b2\u2160\u0665"},
    {"   leading", "  | leading", NULL, NULL},
    {"trailing   ", "trailing|   ", NULL, NULL},
    {"a  \n  b", "a|  \n| | b", NULL, "a|  \n | b"},
    {"\n\t\n", "\n\t\n", NULL, NULL},
    {"\n\n\nx", "\n\n\n|x", NULL, "\n\n|\n|x"},
    {"a\r\nb", "a|\r\n|b", NULL, "a|\r|\n|b"},
    {"f(x);\n\n}", "f|(x|);\n\n|}", NULL, "f|(|x|);|\n|\n|}"},
    {" !! ?", " !!| ?", NULL, NULL},
    {"\tpass", "\tpass", NULL, "\t|pass"},
    {"caf\u00e9 \u4e2d\u6587 \U0001f642ok", "caf\u00e9| \u4e2d\u6587| \U0001f642|ok", NULL, NULL},
    {"e\u0301a", "e|\u0301a", NULL, "e|\u0301|a"}, /* a mark is no letter */
    {"\U0001f469\U0001f3fd\u200d\U0001f4bb", "\U0001f469\U0001f3fd\u200d\U0001f4bb", NULL, NULL},
    {"a\u00a0b\u3000\u3000c", "a|\u00a0b|\u3000|\u3000c", NULL, "a|\u00a0|b|\u3000|\u3000|c"},
    {"a\u180e! b", "a|\u180e!| b", NULL, NULL}, /* U+180E is no white space */
};

static void check_cuts(const char *name, const char *pattern, const char *const *want)
{
    struct tokenizer *t =
        fixture_load(fixture_file(fixture_model(NULL, 0, 0, 0), pattern, 0), NULL);
    const int has_jit = t->split.steps[0].jit;
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        for (int jit = has_jit; jit >= 0; jit--) {
            t->split.steps[0].jit = jit;
            struct buf b = {0};
            const char *text = cut_cases[i].text;
            tokenizer_words(t, text, strlen(text), fixture_bar, &b, NULL);
            ok(b.data && !strcmp(b.data, want[i]), "%s words %zu%s", name, i,
               jit ? "" : " (interpreter)");
            if (b.data && strcmp(b.data, want[i]) != 0)
                printf("# got %s\n# expected %s\n", b.data, want[i]);
            buf_free(&b);
        }
    }
    tokenizer_free(t);
}

static void test_words(void)
{
    enum { N = sizeof cut_cases / sizeof *cut_cases };
    const char *llada[N], *llama3[N], *gpt2[N];
    for (size_t i = 0; i < N; i++) {
        llada[i] = cut_cases[i].llada;
        llama3[i] = cut_cases[i].llama3 ? cut_cases[i].llama3 : llada[i];
        gpt2[i] = cut_cases[i].gpt2 ? cut_cases[i].gpt2 : llada[i];
    }
    check_cuts("llada", LLADA, llada);
    check_cuts("llama3", LLAMA3, llama3);
    check_cuts("gpt2", NULL, gpt2);
    ok(!strcmp(pretokenize_llada, LLADA), "tokenizer_learn writes LLaDA's pattern");
}

/* ---- merges ---- */

static const char *const abc[] = {"b c", "a b", "ab c", "\u0120 a", "\u0120a bc"};
enum { A = 'a' - '!', B = 'b' - '!', SPACE = 220, BC = 256, AB, ABC, SP_A, SP_ABC, N_ABC };

static void test_merges(void)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        struct tokenizer *t =
            fixture_load(fixture_file(fixture_model(abc, 5, pairs, 0), LLADA, 0), NULL);
        const char *how = pairs ? "pairs" : "strings";
        ok(tokenizer_size(t) == N_ABC, "size (%s)", how);
        ok(fixture_ids(t, "abc", 0, IDS(A, BC)), "lowest rank first (%s)", how);
        ok(fixture_ids(t, "ab", 0, IDS(AB)), "a piece (%s)", how);
        ok(fixture_ids(t, "ababb", 0, IDS(AB, AB, B)), "leftmost first (%s)", how);
        ok(fixture_ids(t, "a abc", 0, IDS(A, SP_ABC)), "space (%s)", how);
        tokenizer_free(t);
    }
    struct tokenizer *t = fixture_load(fixture_file(fixture_model(abc, 5, 0, 1), LLADA, 0), NULL);
    ok(fixture_ids(t, "abc", 0, IDS(ABC)), "ignore_merges: a whole word that is a piece");
    ok(fixture_ids(t, "abca", 0, IDS(A, BC, A)), "ignore_merges: other words are merged");
    ok(tokenizer_id(t, "\u0120abc") == SP_ABC && tokenizer_id(t, " abc") == SP_ABC &&
           tokenizer_id(t, "abca") == -1 && tokenizer_id(t, "") == -1, "tokenizer_id");
    char hex[65], *path = mem_format("%s/tokenizer.json", fixture_folder);
    ok(!hash_file(path, hex, NULL) && !strcmp(hex, tokenizer_hash(t)), "hash of the file");
    free(path);
    tokenizer_free(t);
    const char *const version[] = {"#version: 0.2", "a b"};
    json_t *model = fixture_model(version, 2, 0, 0);
    json_object_del(json_object_get(model, "vocab"), "#version:0.2");
    json_object_set_new(json_object_get(model, "vocab"), "ab", json_integer(256));
    t = fixture_load(fixture_file(model, LLADA, 0), NULL);
    ok(fixture_ids(t, "ab", 0, IDS(256)), "a #version line is no merge");
    tokenizer_free(t);
}

/* The rule of merges written out: lowest rank first, then leftmost, one merge at a time. */
static size_t merge_naively(const struct tokenizer *t, const char *const *merges, size_t n_merges,
                            char *s, size_t n, int32_t *id)
{
    char **part = mem_zero(n, sizeof *part);
    for (size_t i = 0; i < n; i++)
        part[i] = mem_format("%c", s[i]);
    for (size_t r = 0; r < n_merges; r++)
        for (size_t i = 0; i + 1 < n; i++) {
            size_t k = strlen(part[i]);
            if (strncmp(merges[r], part[i], k) != 0 || merges[r][k] != ' ' ||
                strcmp(merges[r] + k + 1, part[i + 1]) != 0)
                continue;
            char *both = mem_format("%s%s", part[i], part[i + 1]);
            free(part[i]);
            free(part[i + 1]);
            part[i] = both;
            memmove(part + i + 1, part + i + 2, (n - i - 2) * sizeof *part);
            n--;
            r = (size_t)-1; /* begin again at rank 0 */
            break;
        }
    for (size_t i = 0; i < n; i++) {
        id[i] = tokenizer_id(t, part[i]);
        free(part[i]);
    }
    free(part);
    return n;
}

static void test_naive(void)
{
    struct rng r = {.seed = 7};
    size_t wrong = 0, n_words = 0;
    for (int round = 0; round < 20; round++) {
        char *merges[24], *pieces[26] = {mem_text("a"), mem_text("b")};
        size_t n = 0;
        while (n < 24) { /* pieces in any order, so that ranks do not grow with length */
            const char *x = pieces[rng_below(&r, n + 2)], *y = pieces[rng_below(&r, n + 2)];
            char *both = mem_format("%s%s", x, y);
            int known = 0;
            for (size_t i = 0; i < n + 2; i++)
                known |= !strcmp(pieces[i], both);
            if (!known) {
                merges[n] = mem_format("%s %s", x, y);
                pieces[2 + n++] = mem_text(both);
            }
            free(both);
        }
        for (size_t i = n; i > 1; i--) {
            size_t k = rng_below(&r, i);
            char *swap = merges[k];
            merges[k] = merges[i - 1];
            merges[i - 1] = swap;
        }
        struct tokenizer *t = fixture_load(
            fixture_file(fixture_model((const char *const *)merges, n, 0, 0), LLADA, 0), NULL);
        for (int k = 0; k < 60; k++, n_words++) {
            char s[160];
            int32_t id[160];
            size_t len = 1 + rng_below(&r, k % 2 ? 159 : 20);
            for (size_t i = 0; i < len; i++)
                s[i] = (char)('a' + rng_below(&r, 2));
            struct ids got = {0};
            tokenizer_encode(t, s, len, 0, &got, NULL);
            size_t want = merge_naively(t, (const char *const *)merges, n, s, len, id);
            wrong += got.n != want || memcmp(got.v, id, want * sizeof *id) != 0;
            ids_free(&got);
        }
        tokenizer_free(t);
        for (size_t i = 0; i < n; i++)
            free(merges[i]);
        for (size_t i = 0; i < n + 2; i++)
            free(pieces[i]);
    }
    ok(wrong == 0, "%zu of %zu random words differ from naive merging", wrong, n_words);
}

/* ---- added tokens and templates ---- */

static json_t *with_tokens(int nfc)
{
    json_t *file = fixture_file(fixture_model(abc, 5, 0, 0), LLADA, nfc);
    static const struct { const char *text, *flags; } added[] = {
        {"<s>", "s"}, {"<s>>", "s"}, {"<x", ""}, {"[l]", "l"}, {"[r]", "sr"}, {"ww", "w"},
        {"\u00e9+", "n"}};
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        fixture_added(file, N_ABC + (int)i, added[i].text, added[i].flags);
    return file;
}
enum { S = N_ABC, S2, X, L, R, W, E_ACUTE };

static void test_added(void)
{
    enum { LT = '<' - '!', GT = '>' - '!', s = 's' - '!', w = 'w' - '!', DOT = '.' - '!' };
    struct tokenizer *t = fixture_load(with_tokens(1), NULL);
    ok(tokenizer_size(t) == E_ACUTE + 1, "size counts added tokens");
    ok(fixture_ids(t, "ab<s>ab", 0, IDS(AB, S, AB)), "a special token in the text");
    ok(fixture_ids(t, "<s>><s>", 0, IDS(S2, S)), "the longest wins");
    ok(fixture_ids(t, "a<s", 0, IDS(A, LT, s)), "half a token is text");
    ok(fixture_ids(t, "<s><x", ENCODE_PLAIN, IDS(LT, s, GT, X)),
       "ENCODE_PLAIN: special ones are text, others are not");
    ok(fixture_ids(t, "a  [l] a", 0, IDS(A, L, SP_A)), "lstrip takes white space before");
    ok(fixture_ids(t, "a [r]\u00a0\n a", 0, IDS(A, SPACE, R, A)), "rstrip takes it after");
    ok(fixture_ids(t, "ww", 0, IDS(W)) && fixture_ids(t, "a.ww.", 0, IDS(A, DOT, W, DOT)) &&
           fixture_ids(t, "ww1ww", 0, IDS(w, w, '1' - '!', w, w)),
       "single_word between others");
    ok(fixture_ids(t, "[r]ww [l]ww", 0, IDS(R, W, L, W)), "single_word beside tokens");
    ok(fixture_ids(t, "be\u0301+", 0, IDS(B, E_ACUTE)), "normalized tokens are found after NFC");
    ok(tokenizer_id(t, "<s>>") == S2 && tokenizer_is_special(t, S2) &&
           !tokenizer_is_special(t, X) && !tokenizer_is_special(t, -1) &&
           !tokenizer_is_special(t, 1 << 30),
       "tokenizer_id and tokenizer_is_special of added tokens");
    struct buf b = {0};
    const int32_t ids[] = {AB, S, X, -5, 99999, R, ABC};
    tokenizer_decode(t, ids, 7, 0, &b);
    ok(!strcmp(b.data, "ab<s><x[r]abc"), "decode with special tokens");
    buf_clear(&b);
    tokenizer_decode(t, ids, 7, 1, &b);
    ok(!strcmp(b.data, "ab<xabc"), "decode without them");
    buf_free(&b);
    tokenizer_free(t);
}

static json_t *template_of(const char *front, int front_id, const char *back, int back_id)
{
    json_t *single = json_array(), *special = json_object();
    const char *name[] = {front, NULL, back};
    const int id[] = {front_id, 0, back_id};
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            json_array_append_new(single, json_pack("{s:{s:s,s:i}}", "Sequence", "id", "A",
                                                    "type_id", 0));
        else if (name[i]) {
            json_array_append_new(single, json_pack("{s:{s:s,s:i}}", "SpecialToken", "id", name[i],
                                                    "type_id", 0));
            json_object_set_new(special, name[i], json_pack("{s:s,s:[i],s:[s]}", "id", name[i],
                                                            "ids", id[i], "tokens", name[i]));
        }
    }
    return json_pack("{s:s,s:o,s:[],s:o}", "type", "TemplateProcessing", "single", single, "pair",
                     "special_tokens", special);
}

static void test_template(void)
{
    json_t *file = with_tokens(0);
    json_object_set_new(file, "post_processor", template_of("<s>", S, NULL, 0));
    struct tokenizer *t = fixture_load(json_deep_copy(file), NULL);
    ok(fixture_ids(t, "ab", ENCODE_SPECIAL, IDS(S, AB)), "a template puts BOS in front");
    ok(fixture_ids(t, "ab", 0, IDS(AB)), "unless nobody asks");
    ok(fixture_ids(t, "", ENCODE_SPECIAL, IDS(S)), "empty text has BOS alone");
    ok(fixture_ids(t, "<s>", ENCODE_SPECIAL | ENCODE_PLAIN,
                   IDS(S, '<' - '!', 's' - '!', '>' - '!')),
       "BOS in front of its own text");
    tokenizer_free(t);
    json_object_set_new(file, "post_processor",
                        json_pack("{s:s,s:[o,o,o]}", "type", "Sequence", "processors",
                                  fixture_byte_level(1, 1), template_of("<s>", S, "<s>>", S2),
                                  template_of(NULL, 0, "[r]", R)));
    t = fixture_load(file, NULL);
    ok(fixture_ids(t, "ab", ENCODE_SPECIAL, IDS(S, AB, S2, R)), "a Sequence of templates");
    tokenizer_free(t);
    file = fixture_file(fixture_model(abc, 5, 0, 0), NULL, 0);
    json_object_set_new(file, "pre_tokenizer", fixture_byte_level(1, 1));
    t = fixture_load(file, NULL);
    ok(fixture_ids(t, "abc", 0, IDS(SP_ABC)) && fixture_ids(t, " abc", 0, IDS(SP_ABC)) &&
           fixture_ids(t, "", 0, (const int[]){-1}), "add_prefix_space");
    tokenizer_free(t);
}

/* ---- bytes ---- */

static void test_decode_halves(void)
{
    struct tokenizer *t = fixture_load(fixture_file(fixture_model(NULL, 0, 0, 0), LLADA, 0), NULL);
    static const struct { const char *bytes, *want; } cases[] = {
        {"a\xF0\x9F\x99", "a\uFFFD"},           {"\xF0\x9F\x99\x82", "\U0001f642"},
        {"\x82z", "\uFFFDz"},                   {"\xC0\xAF", "\uFFFD\uFFFD"},
        {"\xE2\x82x", "\uFFFDx"},               {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"}, {"\xF0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
        {"\xF1\x80\xE1\x80\x41", "\uFFFD\uFFFD\x41"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t ids[8];
        size_t n = strlen(cases[i].bytes);
        for (size_t k = 0; k < n; k++)
            ids[k] = t->bpe.byte_id[(unsigned char)cases[i].bytes[k]];
        struct buf b = {0};
        tokenizer_decode(t, ids, n, 0, &b);
        ok(!strcmp(b.data, cases[i].want), "broken bytes, case %zu", i);
        struct err e = {0};
        struct ids out = {0};
        ids_push(&out, 5);
        if (strchr(cases[i].want, '\xBD')) /* U+FFFD: the bytes are not UTF-8 */
            ok(tokenizer_encode(t, cases[i].bytes, n, 0, &out, &e) == -1 &&
                   e.code == EXIT_BAD_DATA && strstr(e.text, i == 0 ? "byte 1" : "byte 0") &&
                   out.n == 1, "cannot be encoded: %s", e.text);
        ids_free(&out);
        buf_free(&b);
    }
    tokenizer_free(t);
}

/* Makes text of random code points; half of them are changed by normalization. */
static void random_text(struct rng *r, struct buf *b)
{
    static const uint32_t from[] = {0, 0xC0, 0x300, 0x900, 0x1100, 0x1E00, 0xAC00, 0xF900, 0x1D15E};
    static const uint32_t count[] = {0x80, 0x1C0, 0x70, 0x480, 0x200, 0x200, 0x2BA4, 0x200, 0x70};
    size_t n = rng_below(r, 40);
    for (size_t i = 0; i < n; i++) {
        size_t k = rng_below(r, 12);
        uint32_t c = k < 9 ? from[k] + (uint32_t)rng_below(r, count[k]) :
                             (uint32_t)rng_below(r, 0x110000);
        if ((c < 0xD800 || c > 0xDFFF) && !nfc_stays(c)) /* others: test_hangul, test_newer */
            utf8_put(b, c);
    }
}

static void random_bytes(struct rng *r, struct buf *b)
{
    char s[60];
    size_t n = rng_below(r, sizeof s);
    for (size_t i = 0; i < n; i++)
        s[i] = (char)(rng_below(r, 2) ? rng_below(r, 256) : 0xC2 + rng_below(r, 0x33));
    utf8_put_lossy(b, s, n);
}

static void test_round_trip(void)
{
    for (int nfc = 0; nfc < 2; nfc++) {
        struct tokenizer *t = fixture_load(
            fixture_file(fixture_model(abc, 5, 0, 0), nfc ? LLADA : LLAMA3, nfc), NULL);
        struct rng r = {.seed = 11 + (uint64_t)nfc};
        size_t wrong = 0, changed = 0;
        for (int i = 0; i < 8000; i++) {
            struct buf x = {0}, y = {0};
            struct ids ids = {0};
            buf_reserve(&x, 1);
            buf_reserve(&y, 1);
            (i % 2 ? random_text : random_bytes)(&r, &x);
            utf8proc_uint8_t *want = NULL;
            utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)x.data,
                                              (utf8proc_ssize_t)x.len, &want,
                                              nfc ? UTF8PROC_STABLE | UTF8PROC_COMPOSE : 0);
            wrong += tokenizer_encode(t, x.data, x.len, ENCODE_PLAIN, &ids, NULL) != 0;
            tokenizer_decode(t, ids.v, ids.n, 0, &y);
            wrong += y.len != (size_t)n || memcmp(y.data, want, y.len) != 0;
            changed += x.len != (size_t)n;
            free(want);
            buf_free(&x);
            buf_free(&y);
            ids_free(&ids);
        }
        ok(wrong == 0 && (changed > 100) == nfc, "decode(encode(x)) == %s: %zu of 8000 wrong",
           nfc ? "NFC(x)" : "x", wrong);
        tokenizer_free(t);
    }
}

static void test_long_marks(void)
{
    static const uint32_t marks[] = {0x301, 0x316, 0x327, 0x345, 0x5B0, 0x3099, 0x334};
    struct rng r = {.seed = 3};
    struct buf x = {0}, y = {0};
    buf_char(&x, 'e');
    for (int i = 0; i < 3000; i++)
        utf8_put(&x, marks[rng_below(&r, 7)]);
    nfc_put(x.data, x.len, &y);
    utf8proc_uint8_t *want = utf8proc_NFC((const utf8proc_uint8_t *)x.data);
    ok(y.len && !strcmp(y.data, (char *)want), "3000 marks in canonical order");
    free(want);
    buf_free(&x);
    buf_free(&y);
}

/* U+11A7 is just before the final consonants of Hangul but is none itself, so it stays. */
static void test_hangul(void)
{
    static const struct {
        const char *text, *nfc;
    } given[] = {
        {"\u1100\u1161\u11A8", "\uAC01"},
        {"\u1100\u1161\u11A7", "\uAC00\u11A7"},
        {"\uAC00\u11A7", "\uAC00\u11A7"},
        {"\uAC00\u11A7\u11A8e\u0301", "\uAC00\u11A7\u11A8\u00E9"},
        {"\uAC00\u11A7\u0327\u0301\uAC00\u11A8", "\uAC00\u11A7\u0327\u0301\uAC01"},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        struct buf y = {0};
        nfc_put(given[i].text, strlen(given[i].text), &y);
        ok(y.len && !strcmp(y.data, given[i].nfc), "Hangul, case %zu: got \"%s\"", i, y.data);
        buf_free(&y);
    }
}

/* ---- time ---- */

static double seconds(const struct tokenizer *t, const char *unit, size_t n)
{
    struct buf b = {0};
    double best = 1e9;
    while (b.len < n)
        buf_text(&b, unit);
    for (int i = 0; i < 5; i++) {
        struct ids ids = {0};
        struct timespec start, end;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
        if (tokenizer_encode(t, b.data, b.len, 0, &ids, NULL))
            best = NAN;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        best = fmin(best, (double)(end.tv_sec - start.tv_sec) +
                              1e-9 * (double)(end.tv_nsec - start.tv_nsec));
        ids_free(&ids);
    }
    buf_free(&b);
    return best;
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SLOWER 20
#else
#define SLOWER 1
#endif

/* A text 8 times as long may take 27 times as long; an algorithm of quadratic time takes 64
 * times. */
static void test_time(void)
{
    static const char *const merges[] = {"l l", "ll ll", "_ _", "\u0120 \u0120", "\u010a \u010a",
                                         "Z Z", "\u00cc \u0123"};
    static const char *const units[] = {"l", "Z", "_", "\n", " ", "\r\n", " \n", "7", "'",
                                        "e\u0301\u0316", "\u0301\u0316", "<|x|", "ab"};
    for (int nfc = 0; nfc < 2; nfc++) {
        json_t *file = fixture_file(fixture_model(merges, 7, 0, 0), nfc ? LLADA : LLAMA3, nfc);
        fixture_added(file, 500, "<|x|>", "s");
        struct tokenizer *t = fixture_load(file, NULL);
        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
            double one = seconds(t, units[i], 8000), eight = seconds(t, units[i], 64000);
            ok(eight < 27 * one, "%s: 8 x as many of unit %zu cost %.1f x the time",
               nfc ? "llada" : "llama3", i, eight / one);
        }
        /* a million copies of one character: at most a second for each, in a plain build */
        static const char *const many[] = {"l", " ", "\n"};
        for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
            double s = seconds(t, many[i], 1000000);
            ok(s < SLOWER * 1.0, "%s: a million of unit %zu cost %.3f s",
               nfc ? "llada" : "llama3", i, s);
        }
        tokenizer_free(t);
    }
}

/* A pattern that tries all ways to split a run of letters would take too long and is stopped. */
static void test_patience(void)
{
    struct err e = {0};
    struct ids ids = {0};
    struct tokenizer *t = fixture_load(fixture_file(fixture_model(NULL, 0, 0, 0), "(a+)+$", 0), &e);
    char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    clock_t start = clock();
    int r = tokenizer_encode(t, text, strlen(text), 0, &ids, &e);
    double s = (double)(clock() - start) / CLOCKS_PER_SEC;
    ok(r == -1 && e.code == EXIT_BAD_DATA && strstr(e.text, "gave up"), "%s", e.text);
    ok(s < 4 && ids.n == 0, "after %.2f s", s);
    ids_free(&ids);
    tokenizer_free(t);
}

int main(void)
{
    fixture_start();
    test_words();
    test_merges();
    test_naive();
    test_added();
    test_template();
    test_decode_halves();
    test_round_trip();
    test_long_marks();
    test_hangul();
    test_time();
    test_patience();
    fixture_end();
    return tap_done();
}
