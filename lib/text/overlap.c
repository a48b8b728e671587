/* overlap.c - see overlap.h.
 *
 * The n-grams of the reference are numbered. The key of an n-gram is the number of the (n-1)-gram
 * of its first n - 1 characters, and its last character. So each n costs one step per place of
 * either text, and a place of the text whose (n-1)-gram is not in the reference is dropped. Words
 * are numbered too. Tables compare keys, so hash collisions do not change a result. */
#include "lib/text/overlap.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/text/utf8.h"

/* ---- characters ---- */

/* The characters of a text without white space. gram[i]: the number of the n-gram that begins at
 * place i, among the n-grams of the reference. */
struct chars {
    uint32_t *code, *gram; /* [n] */
    size_t n;
};

static struct chars chars_of(const char *text)
{
    size_t n = strlen(text);
    struct chars chars = {.code = mem_alloc(n * sizeof *chars.code),
                          .gram = mem_zero(n, sizeof *chars.gram)};
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t code = (unsigned char)text[i];
        len = 1;
        if (code >= 0x80)
            code = utf8_read(text + i, &len);
        if (code < 0x80 ? !isspace((int)code) : !utf8_is_space(code))
            chars.code[chars.n++] = code;
    }
    return chars;
}

/* A hash table of the n-grams of the reference. made_of: the key (see above), 0: a free slot. left:
 * count of the n-gram in the reference minus its count in the other text so far, at least 0. */
struct gram { uint64_t made_of; uint32_t number, left; };
struct grams { struct gram *slot; size_t slots; }; /* slots: a power of two */

/* The slot of the n-gram with (n-1)-gram number `begin` and last character `code`, or the free slot
 * for it. */
static struct gram *find(const struct grams *grams, uint32_t begin, uint32_t code)
{
    uint64_t made_of = (uint64_t)begin << 32 | (code + 1);
    size_t i = (made_of * 0x9e3779b97f4a7c15u >> 32) & (grams->slots - 1); /* Knuth 6.4 */
    while (grams->slot[i].made_of && grams->slot[i].made_of != made_of)
        i = (i + 1) & (grams->slots - 1);
    return &grams->slot[i];
}

/* Fills the table with the n-grams of n = `order` characters; wanted->gram must have the numbers
 * for n - 1, and gets the numbers for n. */
static void lengthen(struct grams *grams, struct chars *wanted, size_t order)
{
    uint32_t met = 0;
    memset(grams->slot, 0, grams->slots * sizeof *grams->slot);
    for (size_t i = 0; i + order <= wanted->n; i++) {
        uint32_t begin = wanted->gram[i], code = wanted->code[i + order - 1];
        struct gram *is = find(grams, begin, code);
        if (!is->made_of)
            *is = (struct gram){(uint64_t)begin << 32 | (code + 1), met++, 0};
        is->left++;
        wanted->gram[i] = is->number;
    }
}

/* Number of common n-grams of n = `order` characters; an n-gram counts as often as in the text that
 * has it less often. at[*n]: places of the text whose (n-1)-gram is in the reference; the function
 * keeps only places whose n-gram is in the reference. */
static size_t in_both(const struct grams *grams, struct chars *text, size_t order, uint32_t *at,
                      size_t *n)
{
    size_t both = 0, kept = 0;
    for (size_t k = 0; k < *n && at[k] + order <= text->n; k++) {
        uint32_t i = at[k];
        struct gram *is = find(grams, text->gram[i], text->code[i + order - 1]);
        if (!is->made_of)
            continue;
        both += is->left > 0;
        is->left -= is->left > 0;
        text->gram[i] = is->number;
        at[kept++] = i;
    }
    *n = kept;
    return both;
}

void overlap_grams(const char *text, const char *wanted, double grams[OVERLAP_GRAMS])
{
    struct chars own = chars_of(text), other = chars_of(wanted);
    struct grams table = {.slots = 8};
    while (3 * table.slots < 4 * (other.n + 1))
        table.slots *= 2;
    table.slot = mem_alloc(table.slots * sizeof *table.slot);
    uint32_t *at = mem_alloc(own.n * sizeof *at);
    size_t n = own.n;
    for (size_t i = 0; i < n; i++)
        at[i] = (uint32_t)i;
    for (size_t k = 1; k <= OVERLAP_ORDERS; k++) {
        double *count = grams + 3 * (k - 1);
        lengthen(&table, &other, k);
        count[0] = other.n >= k && own.n >= k ? (double)(own.n - k + 1) : 0;
        count[1] = other.n >= k ? (double)(other.n - k + 1) : 0;
        count[2] = (double)in_both(&table, &own, k, at, &n);
    }
    free(at);
    free(table.slot);
    free(own.code);
    free(own.gram);
    free(other.code);
    free(other.gram);
}

double overlap_chrf(const double grams[OVERLAP_GRAMS])
{
    const double weight = 4; /* beta squared, beta = 2 */
    double precision = 0, recall = 0, orders = 0;
    for (const double *g = grams; g < grams + OVERLAP_GRAMS; g += 3)
        if (g[0] > 0 && g[1] > 0) {
            precision += g[2] / g[0];
            recall += g[2] / g[1];
            orders++;
        }
    if (!(precision + recall > 0))
        return 0;
    return (1 + weight) * precision * recall / (weight * precision + recall) / orders;
}

/* ---- words ---- */

/* Writes the words of a text, each ended by a NUL. The function reserves all space first; a
 * lower-case character may have three bytes although the upper-case one has two. */
typedef void cut_fn(const char *text, struct buf *words);

static void put(struct buf *words, int c)
{
    words->data[words->len++] = (char)c;
}

static void end_word(struct buf *words)
{
    if (words->len && words->data[words->len - 1])
        put(words, 0);
}

static void cut_ascii(const char *text, struct buf *words)
{
    buf_reserve(words, 2 * strlen(text) + 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x80 && isalnum(c))
            put(words, tolower(c));
        else
            end_word(words);
    }
    end_word(words);
}

/* Ends a run of letters and digits that began at `from`. Drops the run if it is an article. */
static void end_run(struct buf *words, size_t from)
{
    static const char *const articles[] = {"a", "an", "the"};
    size_t n = words->len - from;
    for (size_t i = 0; n <= 3 && i < sizeof articles / sizeof *articles; i++)
        if (n == strlen(articles[i]) && !memcmp(words->data + from, articles[i], n)) {
            words->len = from;
            end_word(words);
            return;
        }
}

static void cut_squad(const char *text, struct buf *words)
{
    size_t run = 0; /* where the run of letters and digits began */
    buf_reserve(words, 3 * strlen(text) + 4);
    for (size_t len = 1; *text; text += len, len = 1) {
        uint32_t code = (unsigned char)*text;
        if (code >= 0x80)
            code = utf8_read(text, &len);
        if (code < 0x80 && ispunct((int)code))
            continue;
        code = code < 0x80 ? (uint32_t)tolower((int)code)
                           : (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
        int is_word = code < 0x80 ? isalnum((int)code) : utf8_is_word(code);
        if (!is_word && words->len)
            end_run(words, run);
        if (!is_word && (code < 0x80 ? isspace((int)code) : utf8_is_space(code)))
            end_word(words);
        else if (code < 0x80)
            put(words, (int)code);
        else
            utf8_put(words, code);
        run = is_word ? run : words->len;
    }
    if (words->len)
        end_run(words, run);
    end_word(words);
}

/* Two texts as lists of word numbers: equal words have equal numbers. met: the number of different
 * words. */
struct pair {
    uint32_t *v[2];
    size_t n[2], met;
};

static size_t count_words(const struct buf *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->len; i++)
        n += !words->data[i];
    return n;
}

/* Numbers the words of two texts; words[k]: the words of text k, each ended by a NUL. */
static void number(struct pair *pair, const struct buf words[2])
{
    struct places met = {0};
    for (int k = 0; k < 2; k++) {
        pair->v[k] = mem_alloc(pair->n[k] * sizeof *pair->v[k]);
        const char *text = words[k].data;
        for (size_t i = 0, len; i < pair->n[k]; i++, text += len + 1) {
            len = strlen(text);
            pair->v[k][i] = (uint32_t)places_of(&met, text, len);
        }
    }
    pair->met = met.n;
    places_free(&met);
}

static int read_pair(struct pair *pair, cut_fn *cut, const char *text, const char *wanted,
                     struct err *e)
{
    struct buf words[2] = {0};
    cut(text, &words[0]);
    cut(wanted, &words[1]);
    *pair = (struct pair){.n = {count_words(&words[0]), count_words(&words[1])}};
    size_t most = pair->n[0] > pair->n[1] ? pair->n[0] : pair->n[1];
    if (most <= OVERLAP_WORDS)
        number(pair, words);
    buf_free(&words[0]);
    buf_free(&words[1]);
    return most <= OVERLAP_WORDS
               ? 0
               : err_set(e, EXIT_BAD_DATA, "text: expected at most %d words on either side, got "
                         "%zu", OVERLAP_WORDS, most);
}

/* F1 from the number `both` of common words; frees the pair. */
static double finish(struct pair *pair, size_t both)
{
    free(pair->v[0]);
    free(pair->v[1]);
    return both ? 2 * (double)both / (double)(pair->n[0] + pair->n[1]) : 0;
}

/* Computes the next row in the table of the longest common subsequence (LCS), with 64 columns in
 * each of n uint64_t. A 0 bit in `row` means that the length rises at this column. match: 1 bits at
 * the columns that have the word of this row; the function clears them. Source: Hyyro 2004
 * (Bit-parallel LCS-length computation revisited), after Crochemore et al. 2001. */
static void next_row(uint64_t *row, uint64_t *match, size_t n)
{
    uint64_t carry = 0;
    for (size_t k = 0; k < n; k++) {
        uint64_t both = row[k] & match[k], sum = row[k] + both, all = sum + carry;
        carry = (sum < both) | (all < sum);
        row[k] = all | (row[k] & ~match[k]);
        match[k] = 0;
    }
}

/* Length of the longest common subsequence. */
static size_t subsequence(const struct pair *pair)
{
    size_t n = pair->n[0], words = n / 64 + 1, longest = 0;
    uint64_t *row = mem_alloc(words * sizeof *row), *match = mem_zero(words, sizeof *match);
    /* The places of each word of text 0 form a list. last[w]: 1 + the last place of word w, 0: no
     * place. before[i]: 1 + the place before place i with the same word, 0: none. */
    uint32_t *last = mem_zero(pair->met, sizeof *last);
    uint32_t *before = mem_alloc(n * sizeof *before);
    memset(row, 0xFF, words * sizeof *row);
    for (size_t i = 0; i < n; i++) {
        before[i] = last[pair->v[0][i]];
        last[pair->v[0][i]] = (uint32_t)i + 1;
    }
    for (size_t j = 0; j < pair->n[1]; j++) {
        for (uint32_t i = last[pair->v[1][j]]; i; i = before[i - 1])
            match[(i - 1) / 64] |= (uint64_t)1 << (i - 1) % 64;
        next_row(row, match, words);
    }
    for (size_t k = 0; k < words; k++)
        longest += (size_t)__builtin_popcountll(~row[k]);
    free(row);
    free(match);
    free(last);
    free(before);
    return longest;
}

int overlap_rouge_l(const char *text, const char *wanted, double *f1, struct err *e)
{
    struct pair pair;
    if (read_pair(&pair, cut_ascii, text, wanted, e))
        return -1;
    *f1 = finish(&pair, subsequence(&pair));
    return 0;
}

int overlap_token_f1(const char *text, const char *wanted, double *f1, struct err *e)
{
    struct pair pair;
    size_t both = 0;
    if (read_pair(&pair, cut_squad, text, wanted, e))
        return -1;
    uint32_t *left = mem_zero(pair.met, sizeof *left);
    for (size_t i = 0; i < pair.n[1]; i++)
        left[pair.v[1][i]]++;
    for (size_t i = 0; i < pair.n[0]; i++) {
        both += left[pair.v[0][i]] > 0;
        left[pair.v[0][i]] -= left[pair.v[0][i]] > 0;
    }
    free(left);
    *f1 = finish(&pair, both);
    return 0;
}
