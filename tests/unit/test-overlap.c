/* test-overlap.c - compares the agreement of texts with the arithmetic of the definitions: n-grams
 * compared one by one, the whole table of the longest common subsequence, words crossed off a list.
 * The texts are random: of few letters (everything matches), of several scripts, and long. */
#include <ctype.h>
#include <utf8proc.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/text/overlap.h"
#include "lib/text/utf8.h"
#include "tests/tap.h"

enum { CHARS = 4096, WORDS = 1024, WORD = 64 };

/* ---- by the definitions ---- */

struct text {
    uint32_t c[CHARS];
    char word[WORDS][WORD];
    size_t n, words;
};

static void read_chars(struct text *t, const char *s)
{
    t->n = 0;
    for (size_t len; *s; s += len) {
        uint32_t code = utf8_read(s, &len);
        if (!utf8_is_space(code))
            t->c[t->n++] = code;
    }
}

static double in_both(const struct text *a, const struct text *b, size_t gram)
{
    char taken[CHARS] = {0};
    size_t both = 0;
    for (size_t i = 0; i + gram <= a->n; i++)
        for (size_t j = 0; j + gram <= b->n; j++)
            if (!taken[j] && !memcmp(a->c + i, b->c + j, gram * sizeof *a->c)) {
                taken[j] = 1;
                both++;
                break;
            }
    return (double)both;
}

static void grams_of(const struct text *a, const struct text *b, double grams[OVERLAP_GRAMS])
{
    for (size_t k = 1; k <= OVERLAP_ORDERS; k++, grams += 3) {
        grams[0] = a->n >= k && b->n >= k ? (double)(a->n - k + 1) : 0;
        grams[1] = b->n >= k ? (double)(b->n - k + 1) : 0;
        grams[2] = in_both(a, b, k);
    }
}

static void read_ascii(struct text *t, const char *s)
{
    size_t n = 0;
    for (t->words = 0;; s++) {
        int in = (unsigned char)*s < 0x80 && isalnum((unsigned char)*s);
        if (in)
            t->word[t->words][n++] = (char)tolower((unsigned char)*s);
        t->word[t->words][n] = 0;
        t->words += !in && n;
        n = in ? n : 0;
        if (!*s)
            return;
    }
}

/* Punctuation is removed, then articles that stand alone become a space, then spaces separate
 * words. */
static void read_squad(struct text *t, const char *s)
{
    struct buf plain = {0}, bare = {0};
    for (size_t len; *s; s += len) {
        uint32_t code = utf8_read(s, &len);
        if (code >= 0x80 || !ispunct((int)code))
            utf8_put(&plain, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
    }
    for (const char *p = plain.len ? plain.data : ""; *p;) {
        size_t n = 0, len;
        while (p[n] && utf8_is_word(utf8_read(p + n, &len)))
            n += len;
        int article = (n == 1 && *p == 'a') || (n == 2 && !memcmp(p, "an", 2)) ||
                      (n == 3 && !memcmp(p, "the", 3));
        if (n)
            buf_put(&bare, article ? " " : p, article ? 1 : n);
        p += n;
        if (!n) {
            utf8_read(p, &len);
            buf_put(&bare, p, len);
            p += len;
        }
    }
    t->words = 0;
    size_t n = 0, len;
    for (const char *p = bare.len ? bare.data : ""; *p; p += len) {
        int space = utf8_is_space(utf8_read(p, &len));
        if (!space)
            memcpy(t->word[t->words] + n, p, len);
        t->words += space && n;
        n = space ? 0 : n + len;
        t->word[t->words][n] = 0;
    }
    t->words += n > 0;
    buf_free(&plain);
    buf_free(&bare);
}

static double f1_of(size_t both, const struct text *a, const struct text *b)
{
    return both ? 2 * (double)both / (double)(a->words + b->words) : 0;
}

static double rouge_of(const struct text *a, const struct text *b)
{
    static size_t table[WORDS + 1][WORDS + 1];
    for (size_t i = 1; i <= a->words; i++)
        for (size_t j = 1; j <= b->words; j++) {
            size_t up = table[i - 1][j], left = table[i][j - 1];
            table[i][j] = !strcmp(a->word[i - 1], b->word[j - 1]) ? table[i - 1][j - 1] + 1
                          : up > left                             ? up
                                                                  : left;
        }
    return f1_of(table[a->words][b->words], a, b);
}

static double words_of(const struct text *a, const struct text *b)
{
    char taken[WORDS] = {0};
    size_t both = 0;
    for (size_t i = 0; i < a->words; i++)
        for (size_t j = 0; j < b->words; j++)
            if (!taken[j] && !strcmp(a->word[i], b->word[j])) {
                taken[j] = 1;
                both++;
                break;
            }
    return f1_of(both, a, b);
}

/* ---- random texts ---- */

/* Parts that texts of each kind are made of. */
static const char *const few[] = {"a", "b", " ", "a", "an", "the", " "};
static const char *const plain[] = {"the ", "small ", "boat", " an", "A ", ", ", ".", "It's ",
                                    "42", " went", "-", "\n", "over ", "\t", "_"};
static const char *const wide[] = {"na\xc3\xafve", " ", "\xc3\x89T\xc3\x89", "\xe2\x80\x93", "a",
                                   "\xe4\xb8\xad", "\xe6\x96\x87", "\xc2\xa0", "\xe3\x80\x80",
                                   "\xc8\xba", "the", "\xf0\x9f\x98\x80", "\x01", ". "};
static const struct {
    const char *name, *const *part;
    size_t n;
} kinds[] = {{"few letters", few, sizeof few / sizeof *few},
             {"English", plain, sizeof plain / sizeof *plain},
             {"several scripts", wide, sizeof wide / sizeof *wide}};

static void make(struct rng *r, size_t kind, size_t most, struct buf *b)
{
    buf_clear(b);
    buf_text(b, "");
    for (size_t n = rng_below(r, most + 1), word = 0; n > 0; n--) {
        const char *part = kinds[kind].part[rng_below(r, kinds[kind].n)];
        word += strlen(part);
        if (word > WORD / 2) { /* longer words would not fit the table of the naive algorithm */
            buf_text(b, " ");
            word = 0;
        }
        buf_text(b, part);
    }
}

static int agrees(const char *a, const char *b, struct text *x, struct text *y)
{
    double grams[OVERLAP_GRAMS], expected[OVERLAP_GRAMS], rouge, words;
    struct err e = {0};
    overlap_grams(a, b, grams);
    if (overlap_rouge_l(a, b, &rouge, &e) || overlap_token_f1(a, b, &words, &e))
        return 0;
    read_chars(x, a), read_chars(y, b);
    grams_of(x, y, expected);
    read_ascii(x, a), read_ascii(y, b);
    double by_table = rouge_of(x, y);
    read_squad(x, a), read_squad(y, b);
    double by_list = words_of(x, y);
    return !memcmp(grams, expected, sizeof grams) && !memcmp(&rouge, &by_table, sizeof rouge) &&
           !memcmp(&words, &by_list, sizeof words);
}

int main(void)
{
    struct rng r = {.seed = 5};
    struct buf a = {0}, b = {0};
    struct text *x = mem_alloc(sizeof *x), *y = mem_alloc(sizeof *y);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        int wrong = 0;
        for (int round = 0; round < 400; round++) {
            size_t most = round < 300 ? 24 : round < 396 ? 150 : 500;
            make(&r, kind, most, &a);
            make(&r, kind, round % 7 ? most : 3, &b);
            wrong += !agrees(a.data, round % 11 ? b.data : a.data, x, y);
        }
        ok(!wrong, "%s: 400 random pairs, to the bit (%d differ)", kinds[kind].name, wrong);
    }
    free(x);
    free(y);
    buf_free(&a);
    buf_free(&b);
    return tap_done();
}
