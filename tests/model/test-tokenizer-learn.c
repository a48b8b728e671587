/* test-tokenizer-learn.c - compares learned merges with a naive recount; tests the written file and
 * the refusals. */
#include "lib/base/file.h"
#include "lib/base/rng.h"
#include "lib/text/tokenizer/nfc.h"
#include "tests/model/tokenizer-fixture.h"

static const char *const special[] = {"<|endoftext|>", "<|mdm_mask|>", "<|bos|>"};

static struct tokenizer *learned(const char *const *texts, size_t n, size_t vocab, const char *bos)
{
    struct err e = {0};
    struct tokenizer *t = NULL;
    if (!tokenizer_learn(fixture_folder, texts, n, vocab, special, 3, bos, &e))
        t = tokenizer_load(fixture_folder, &e);
    if (!t) {
        printf("Bail out! %s\n", e.text);
        exit(EXIT_FAILURE);
    }
    return t;
}

static void test_small(void)
{
    static const char *const texts[] = {"ab ab cd cd", "<|mdm_mask|>"};
    struct tokenizer *t = learned(texts, 2, 256 + 3 + 3, "<|bos|>");
    ok(tokenizer_size(t) == 262, "the vocabulary size counts bytes, merges and special tokens");
    /* a+b, c+d and space+c occur twice each, so the order of bytes decides */
    ok(tokenizer_id(t, " c") == 256 && tokenizer_id(t, " cd") == 257 &&
           tokenizer_id(t, "ab") == 258, "ties: the pair first in byte order");
    ok(tokenizer_id(t, special[0]) == 259 && tokenizer_id(t, special[2]) == 261 &&
           tokenizer_is_special(t, 260), "special tokens come after the merges");
    ok(fixture_ids(t, "ab<|mdm_mask|> cd", ENCODE_SPECIAL, IDS(261, 258, 260, 257)),
       "the written file adds BOS in front and finds special tokens in a text");
    ok(fixture_ids(t, "12", 0, IDS('1' - '!', '2' - '!')), "each digit is a piece");
    ok(fixture_ids(t, "ab", 0, IDS(258)), "no BOS unless asked");
    ok(t->normalizer.n == 1 && t->bpe.n_merges == 3,
       "the file asks for NFC; no merge comes from the text of a special token");
    tokenizer_free(t);
    t = learned(texts, 1, 259, NULL);
    ok(tokenizer_size(t) == 259 && fixture_ids(t, "ab", ENCODE_SPECIAL, IDS('a' - '!', 'b' - '!')),
       "no merges, no BOS");
    tokenizer_free(t);
}

/* ---- the naive way: recount all pairs for every join ---- */

struct naive { char *part[64][24]; size_t n[64], words; };

static int better(size_t count, const char *x, const char *y, size_t best, const char *bx,
                  const char *by)
{
    if (count != best)
        return count > best;
    int c = strcmp(x, bx);
    return c ? c < 0 : strcmp(y, by) < 0;
}

static size_t count_pair(const struct naive *v, const char *x, const char *y)
{
    size_t count = 0;
    for (size_t w = 0; w < v->words; w++)
        for (size_t i = 0; i + 1 < v->n[w]; i++)
            count += !strcmp(v->part[w][i], x) && !strcmp(v->part[w][i + 1], y);
    return count;
}

/* Joins the best pair and returns the joined text, which the caller frees, or NULL. */
static char *naive_join(struct naive *v)
{
    size_t best = 0;
    char *x = NULL, *y = NULL;
    for (size_t w = 0; w < v->words; w++)
        for (size_t i = 0; i + 1 < v->n[w]; i++) {
            size_t count = count_pair(v, v->part[w][i], v->part[w][i + 1]);
            if (!x || better(count, v->part[w][i], v->part[w][i + 1], best, x, y)) {
                best = count;
                x = v->part[w][i];
                y = v->part[w][i + 1];
            }
        }
    if (!x)
        return NULL;
    char *left = mem_text(x), *right = mem_text(y), *both = mem_format("%s%s", x, y);
    for (size_t w = 0; w < v->words; w++)
        for (size_t i = 0; i + 1 < v->n[w]; i++)
            if (!strcmp(v->part[w][i], left) && !strcmp(v->part[w][i + 1], right)) {
                free(v->part[w][i]);
                free(v->part[w][i + 1]);
                v->part[w][i] = mem_text(both);
                v->n[w]--;
                memmove(&v->part[w][i + 1], &v->part[w][i + 2],
                        (v->n[w] - i - 1) * sizeof v->part[w][0]);
            }
    free(left);
    free(right);
    return both;
}

static void test_naive(void)
{
    struct rng r = {.seed = 21};
    size_t wrong = 0, joins = 0;
    for (unsigned round = 0; round < 25; round++) {
        static struct naive v;
        struct buf text = {0};
        v.words = 20 + rng_below(&r, 40);
        for (size_t w = 0; w < v.words; w++) { /* words of letters, one space before each */
            v.n[w] = 2 + rng_below(&r, 20);
            for (size_t i = 0; i < v.n[w]; i++) {
                char c = i == 0 ? ' ' : (char)('a' + rng_below(&r, round % 3 + 1));
                buf_char(&text, c);
                v.part[w][i] = mem_format("%c", c);
            }
        }
        const char *texts[] = {text.data};
        int32_t next = 256;
        struct tokenizer *t = learned(texts, 1, 256 + 8 + 3, NULL);
        while (next < 264) {
            char *both = naive_join(&v);
            int32_t id = both ? tokenizer_id(t, both) : -1;
            /* an earlier id is right too: another pair of pieces has the same text */
            wrong += id != next && !(id >= 256 && id < next);
            next += id == next;
            joins++;
            if (!both || wrong)
                next = 264;
            free(both);
        }
        for (size_t w = 0; w < v.words; w++)
            for (size_t i = 0; i < v.n[w]; i++)
                free(v.part[w][i]);
        tokenizer_free(t);
        buf_free(&text);
    }
    ok(wrong == 0 && joins >= 200, "%zu merges are those of the naive recount", joins);
}

static void make_text(struct rng *r, struct buf *b, size_t n)
{
    static const char *const syllables[] = {"ka", "lo", "mi", "ser", "tun", "caf\u00e9", "e\u0301",
                                            "\u4e2d", "'s", "don't"};
    buf_reserve(b, n);
    while (b->len < n) {
        for (size_t k = 1 + rng_below(r, 3); k > 0; k--)
            buf_text(b, syllables[rng_below(r, 10)]);
        buf_text(b, rng_below(r, 9) ? " " : ".\n");
    }
}

static void test_determinism(void)
{
    struct rng r = {.seed = 2};
    struct buf text[2] = {{0}, {0}}, file[2] = {{0}, {0}};
    make_text(&r, &text[0], 40000);
    make_text(&r, &text[1], 60000);
    const char *texts[] = {text[0].data, text[1].data};
    char *path = mem_format("%s/tokenizer.json", fixture_folder);
    for (int i = 0; i < 2; i++) {
        struct tokenizer *t = learned(texts, 2, 600, special[0]);
        file_read(path, 1 << 24, &file[i], NULL);
        struct ids ids = {0};
        struct buf back = {0}, want = {0};
        tokenizer_encode(t, texts[0], text[0].len, 0, &ids, NULL);
        tokenizer_decode(t, ids.v, ids.n, 0, &back);
        nfc_put(texts[0], text[0].len, &want);
        ok(tokenizer_size(t) == 600 && ids.n < text[0].len / 3 && !strcmp(back.data, want.data),
           "%zu bytes become %zu ids, which decode to the same text", text[0].len, ids.n);
        ids_free(&ids);
        buf_free(&back);
        buf_free(&want);
        tokenizer_free(t);
    }
    ok(file[0].len > 0 && file[0].len == file[1].len &&
           !memcmp(file[0].data, file[1].data, file[0].len), "the same texts give the same file");
    for (int i = 0; i < 2; i++) {
        buf_free(&text[i]);
        buf_free(&file[i]);
    }
    free(path);
}

static void check_refused(const char *text, size_t vocab, const char *extra, const char *bos,
                          int code, const char *says)
{
    const char *names[] = {"<|endoftext|>", extra};
    struct err e = {0};
    ok(tokenizer_learn(fixture_folder, &text, 1, vocab, names, 2, bos, &e) == -1 &&
           e.code == code && strstr(e.text, says), "refused: %s", e.text);
}

static void test_refused(void)
{
    check_refused("ab", 257, "x1", NULL, EXIT_BAD_USAGE, "vocab");
    check_refused("ab", 1, "x1", NULL, EXIT_BAD_USAGE, "vocab");
    check_refused("ab", 3000000, "x1", NULL, EXIT_BAD_USAGE, "vocab");
    check_refused("ab", 260, "x1", NULL, EXIT_BAD_DATA, "258");
    check_refused("", 259, "x1", NULL, EXIT_BAD_DATA, "pieces");
    check_refused("a\xFF", 258, "x1", NULL, EXIT_BAD_DATA, "text 1 of 1: text: byte 1");
    check_refused("ab", 258, "", NULL, EXIT_BAD_USAGE, "special");
    check_refused("ab", 258, "<|endoftext|>", NULL, EXIT_BAD_USAGE, "twice");
    check_refused("ab", 258, "x1", "<s>", EXIT_BAD_USAGE, "bos");
}

int main(void)
{
    fixture_start();
    test_small();
    test_naive();
    test_determinism();
    test_refused();
    fixture_end();
    return tap_done();
}
