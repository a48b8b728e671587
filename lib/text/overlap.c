/* overlap.c - see overlap.h.
 *
 * N-grams are counted in the order of their first six characters: all that begin alike stand
 * together, so one sorted list serves every n. Words become numbers that are equal when the words
 * are. Nothing is hashed, so nothing collides.
 */
#include "lib/text/overlap.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "lib/base/buf.h"
#include "lib/base/mem.h"
#include "lib/text/utf8.h"

/* ---- characters ---- */

/* The characters from a place on, each plus one; 0: behind the end of the text. */
struct run { uint32_t c[OVERLAP_ORDERS]; };

static int by_run(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    for (int i = 0; i < OVERLAP_ORDERS; i++)
        if (x->c[i] != y->c[i])
            return x->c[i] < y->c[i] ? -1 : 1;
    return 0;
}

/* Every place of a text without its white space, in order; the caller's. */
static struct run *runs_of(const char *s, size_t *count)
{
    size_t n = strlen(s), m = 0;
    uint32_t *c = mem_zero(n + OVERLAP_ORDERS, sizeof *c);
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t code = utf8_read(s + i, &len);
        if (!utf8_is_space(code))
            c[m++] = code + 1;
    }
    struct run *r = mem_zero(m, sizeof *r);
    for (size_t i = 0; i < m; i++)
        memcpy(r[i].c, c + i, sizeof r[i].c);
    if (m)
        qsort(r, m, sizeof *r, by_run);
    free(c);
    *count = m;
    return r;
}

static int order_of(const struct run *a, const struct run *b, size_t characters)
{
    for (size_t i = 0; i < characters; i++)
        if (a->c[i] != b->c[i])
            return a->c[i] < b->c[i] ? -1 : 1;
    return 0;
}

/* How many runs from r on begin with the same `gram` characters. */
static size_t alike(const struct run *r, size_t n, size_t gram)
{
    size_t k = 1;
    while (k < n && !order_of(r, r + k, gram))
        k++;
    return k;
}

/* N-grams that both have, each as often as the one that has it less. */
static size_t in_both(const struct run *a, size_t n, const struct run *b, size_t m, size_t gram)
{
    size_t both = 0;
    for (size_t i = 0, j = 0; i < n && j < m;) {
        int order = order_of(a + i, b + j, gram);
        size_t x = alike(a + i, n - i, gram), y = alike(b + j, m - j, gram);
        if (!order && a[i].c[gram - 1])
            both += x < y ? x : y;
        i += order <= 0 ? x : 0;
        j += order >= 0 ? y : 0;
    }
    return both;
}

void overlap_grams(const char *text, const char *wanted, double grams[OVERLAP_GRAMS])
{
    size_t n, m;
    struct run *a = runs_of(text, &n), *b = runs_of(wanted, &m);
    for (size_t k = 1; k <= OVERLAP_ORDERS; k++) {
        double *g = grams + 3 * (k - 1);
        g[0] = m >= k && n >= k ? (double)(n - k + 1) : 0;
        g[1] = m >= k ? (double)(m - k + 1) : 0;
        g[2] = (double)in_both(a, n, b, m, k);
    }
    free(a);
    free(b);
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

/* Words one after the other, each ended by a NUL. */
typedef void cut_fn(const char *s, struct buf *words);

static void end_word(struct buf *words)
{
    if (words->len && words->data[words->len - 1])
        buf_char(words, 0);
}

static void cut_ascii(const char *s, struct buf *words)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x80 && isalnum(c))
            buf_char(words, (char)tolower(c));
        else
            end_word(words);
    }
    end_word(words);
}

/* Ends a run of letters and digits that began at `from`; an article goes, and parts words. */
static void end_run(struct buf *words, size_t from)
{
    static const char *const articles[] = {"a", "an", "the"};
    for (size_t i = 0; i < sizeof articles / sizeof *articles; i++)
        if (words->len - from == strlen(articles[i]) &&
            !memcmp(words->data + from, articles[i], words->len - from)) {
            words->data[words->len = from] = 0;
            end_word(words);
            return;
        }
}

static void cut_squad(const char *s, struct buf *words)
{
    size_t run = 0; /* where the run of letters and digits began */
    for (size_t len; *s; s += len) {
        uint32_t code = utf8_read(s, &len);
        if (code < 0x80 && ispunct((int)code))
            continue;
        code = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
        if (!utf8_is_word(code)) {
            if (words->len)
                end_run(words, run);
            if (utf8_is_space(code))
                end_word(words);
            else
                utf8_put(words, code);
            run = words->len;
        } else {
            utf8_put(words, code);
        }
    }
    if (words->len)
        end_run(words, run);
    end_word(words);
}

/* A pair of texts as numbers of words: the same word, the same number. */
struct pair { int32_t *v[2]; size_t n[2]; };
struct word { const char *text; int32_t *number; };

static int by_word(const void *a, const void *b)
{
    return strcmp(((const struct word *)a)->text, ((const struct word *)b)->text);
}

static size_t count_words(const struct buf *words)
{
    size_t n = 0;
    for (size_t i = 0; i < words->len; i++)
        n += !words->data[i];
    return n;
}

/* words[2]: the two texts, cut. */
static void number(struct pair *p, const struct buf words[2])
{
    struct word *w = mem_zero(p->n[0] + p->n[1], sizeof *w);
    size_t all = 0;
    for (int k = 0; k < 2; k++) {
        p->v[k] = mem_zero(p->n[k], sizeof *p->v[k]);
        const char *s = words[k].data;
        for (size_t i = 0; i < p->n[k]; i++, s += strlen(s) + 1)
            w[all++] = (struct word){s, &p->v[k][i]};
    }
    if (all)
        qsort(w, all, sizeof *w, by_word);
    for (size_t i = 0, id = 0; i < all; i++) {
        id += i && strcmp(w[i].text, w[i - 1].text);
        *w[i].number = (int32_t)id;
    }
    free(w);
}

static int read_pair(struct pair *p, cut_fn *cut, const char *text, const char *wanted,
                     struct err *e)
{
    struct buf words[2] = {0};
    cut(text, &words[0]);
    cut(wanted, &words[1]);
    *p = (struct pair){.n = {count_words(&words[0]), count_words(&words[1])}};
    size_t most = p->n[0] > p->n[1] ? p->n[0] : p->n[1];
    if (most <= OVERLAP_WORDS)
        number(p, words);
    buf_free(&words[0]);
    buf_free(&words[1]);
    return most <= OVERLAP_WORDS
               ? 0
               : err_set(e, EXIT_BAD_DATA, "text: expected at most %d words on either side, got "
                         "%zu", OVERLAP_WORDS, most);
}

/* F1 from what both have of each; frees the pair. */
static double finish(struct pair *p, size_t both)
{
    free(p->v[0]);
    free(p->v[1]);
    return both ? 2 * (double)both / (double)(p->n[0] + p->n[1]) : 0;
}

/* Longest common subsequence: one row of the table of Wagner and Fischer. */
static size_t subsequence(const struct pair *p)
{
    size_t m = p->n[1];
    int32_t *row = mem_zero(m + 1, sizeof *row);
    for (size_t i = 0; i < p->n[0]; i++) {
        int32_t corner = 0; /* of the row before, one column back */
        for (size_t j = 0; j < m; j++) {
            int32_t above = row[j + 1], best = above > row[j] ? above : row[j];
            row[j + 1] = p->v[0][i] == p->v[1][j] ? corner + 1 : best;
            corner = above;
        }
    }
    size_t longest = (size_t)row[m];
    free(row);
    return longest;
}

int overlap_rouge_l(const char *text, const char *wanted, double *f1, struct err *e)
{
    struct pair p;
    if (read_pair(&p, cut_ascii, text, wanted, e))
        return -1;
    *f1 = finish(&p, subsequence(&p));
    return 0;
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int overlap_token_f1(const char *text, const char *wanted, double *f1, struct err *e)
{
    struct pair p;
    size_t both = 0;
    if (read_pair(&p, cut_squad, text, wanted, e))
        return -1;
    for (int k = 0; k < 2; k++)
        if (p.n[k])
            qsort(p.v[k], p.n[k], sizeof *p.v[k], by_number);
    for (size_t i = 0, j = 0; i < p.n[0] && j < p.n[1];) {
        int32_t a = p.v[0][i], b = p.v[1][j];
        both += a == b;
        i += a <= b;
        j += a >= b;
    }
    *f1 = finish(&p, both);
    return 0;
}
