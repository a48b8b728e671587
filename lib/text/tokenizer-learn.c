/* tokenizer-learn.c - learns a byte-level BPE tokenizer from texts.
 *
 * Words are counted once. Then the most frequent pair of neighbouring pieces is merged, repeatedly;
 * a merge visits all different words. Ties go to the pair whose (left, right) bytes come first, so
 * the result depends only on the texts.
 * Source: Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units",
 * ACL 2016, algorithm 1. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/places.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"
#include "lib/text/utf8.h"

struct pair {
    int32_t left, right;
};
/* Texts and how often each occurs. */
struct counted {
    struct places texts;
    int64_t *count;
    size_t n, cap;
};
struct learn {
    struct counted words, pairs; /* the text of a pair is a struct pair */
    struct places pieces;        /* by id */
    int32_t *symbols;            /* pieces of a word begin where its text does */
    size_t *len;                 /* [words] pieces of a word */
    struct pair *merges;
    size_t n_merges, cap_merges;
};

static int64_t *count_of(struct counted *c, const void *text, size_t n)
{
    size_t at = places_of(&c->texts, text, n);
    if (at == c->n) {
        MEM_GROW(c->count, c->n, c->cap);
        c->count[c->n++] = 0;
    }
    return &c->count[at];
}

static int64_t *count_of_pair(struct learn *l, int32_t left, int32_t right)
{
    return count_of(&l->pairs, &(struct pair){left, right}, sizeof(struct pair));
}

static struct pair pair_at(const struct learn *l, size_t i)
{
    struct pair p;
    memcpy(&p, places_text(&l->pairs.texts, i), sizeof p);
    return p;
}

static int count_word(void *ctx, const char *s, size_t n, struct err *e)
{
    struct learn *l = ctx;
    (void)e;
    ++*count_of(&l->words, s, n);
    return 0;
}

static int count_words(struct learn *l, const char *const *texts, size_t n,
                       const char *const *special, size_t n_special, struct err *e)
{
    struct tokenizer t = {.n_added = n_special};
    t.added = mem_zero(n_special, sizeof *t.added);
    for (size_t i = 0; i < n_special; i++)
        t.added[i] = (struct added){.text = mem_text(special[i]), .len = strlen(special[i]),
                                    .id = (int32_t)i, .special = 1};
    normalize_add(&t.normalizer, NORMALIZE_NFC, NULL, NULL);
    tokenizer_cutters(&t);
    int bad = pretokenize_add(&t.split, (struct pretokenize_rule){.pattern = pretokenize_llada},
                              "learn", e);
    for (size_t i = 0; !bad && i < n; i++)
        if ((bad = tokenizer_words(&t, texts[i], strlen(texts[i]), count_word, l, e)) != 0)
            err_prefix(e, "text %zu of %zu", i + 1, n);
    for (size_t i = 0; i < n_special; i++)
        free(t.added[i].text);
    free(t.added);
    cutter_free(&t.raw);
    cutter_free(&t.normal);
    pretokenize_free(&t.split);
    normalize_free(&t.normalizer);
    return bad;
}

/* ---- pieces and pairs ---- */

/* Id of left+right: new, or old if another merge made the same text. */
static int32_t join_pieces(struct learn *l, struct pair p)
{
    struct buf both = {0};
    buf_put(&both, places_text(&l->pieces, (size_t)p.left), l->pieces.v[p.left].n);
    buf_put(&both, places_text(&l->pieces, (size_t)p.right), l->pieces.v[p.right].n);
    size_t id = places_of(&l->pieces, both.data, both.len);
    buf_free(&both);
    return (int32_t)id;
}

/* Adds the 256 bytes in the order of their characters, as in published files; symbols become their
 * ids. */
static void start(struct learn *l)
{
    const struct places *words = &l->words.texts;
    for (uint32_t code = 0; code < 324; code++) {
        char byte = (char)alphabet_byte(code);
        if (alphabet_byte(code) >= 0)
            places_of(&l->pieces, &byte, 1);
    }
    l->symbols = mem_resize(NULL, words->bytes.len, sizeof *l->symbols);
    for (size_t i = 0; i < words->bytes.len; i++)
        l->symbols[i] = (int32_t)places_of(&l->pieces, words->bytes.data + i, 1);
    l->len = mem_zero(words->n, sizeof *l->len);
    for (size_t w = 0; w < words->n; w++) {
        const int32_t *s = l->symbols + words->v[w].from;
        l->len[w] = words->v[w].n;
        for (size_t i = 1; i < l->len[w]; i++)
            *count_of_pair(l, s[i - 1], s[i]) += l->words.count[w];
    }
}

static int compare_pieces(const struct learn *l, int32_t a, int32_t b)
{
    size_t x = l->pieces.v[a].n, y = l->pieces.v[b].n;
    int c = memcmp(places_text(&l->pieces, (size_t)a), places_text(&l->pieces, (size_t)b),
                   x < y ? x : y);
    return c ? c : (x > y) - (x < y);
}

/* 1: pair x comes before y. */
static int is_before(const struct learn *l, size_t x, size_t y)
{
    if (l->pairs.count[x] != l->pairs.count[y])
        return l->pairs.count[x] > l->pairs.count[y];
    const struct pair p = pair_at(l, x), q = pair_at(l, y);
    int c = compare_pieces(l, p.left, q.left);
    return c ? c < 0 : compare_pieces(l, p.right, q.right) < 0;
}

/* Joins the pair to id in word w, left to right, and moves the counts of the neighbours. */
static void join_in_word(struct learn *l, size_t w, struct pair p, int32_t id)
{
    int32_t *s = l->symbols + l->words.texts.v[w].from;
    size_t n = l->len[w], to = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || s[i] != p.left || s[i + 1] != p.right) {
            s[to++] = s[i];
            continue;
        }
        if (to > 0) {
            *count_of_pair(l, s[to - 1], p.left) -= l->words.count[w];
            *count_of_pair(l, s[to - 1], id) += l->words.count[w];
        }
        if (i + 2 < n) {
            *count_of_pair(l, p.right, s[i + 2]) -= l->words.count[w];
            *count_of_pair(l, id, s[i + 2]) += l->words.count[w];
        }
        s[to++] = id;
        i++;
    }
    l->len[w] = to;
}

static int join_pairs(struct learn *l, size_t n_pieces, struct err *e)
{
    while (l->pieces.n < n_pieces) {
        size_t best = 0;
        for (size_t i = 1; i < l->pairs.n; i++)
            best = is_before(l, i, best) ? i : best;
        if (!l->pairs.n || l->pairs.count[best] <= 0)
            return err_set(e, EXIT_BAD_DATA, "texts: expected enough for %zu pieces, got %zu",
                           n_pieces, l->pieces.n);
        const struct pair p = pair_at(l, best);
        int32_t id = join_pieces(l, p);
        MEM_GROW(l->merges, l->n_merges, l->cap_merges);
        l->merges[l->n_merges++] = p;
        for (size_t w = 0; w < l->words.n; w++)
            join_in_word(l, w, p, id);
        l->pairs.count[best] = 0;
    }
    return 0;
}

static void learn_free(struct learn *l)
{
    places_free(&l->words.texts);
    places_free(&l->pairs.texts);
    places_free(&l->pieces);
    free(l->words.count);
    free(l->pairs.count);
    free(l->symbols);
    free(l->len);
    free(l->merges);
}

/* ---- the file ---- */

static const char *spell(const struct learn *l, int32_t id, struct buf *b)
{
    alphabet_piece(places_text(&l->pieces, (size_t)id), l->pieces.v[id].n, b);
    return b->data;
}

static json_t *model_json(const struct learn *l)
{
    json_t *vocab = json_object(), *merges = json_array();
    struct buf b = {0};
    for (size_t i = 0; i < l->pieces.n; i++) {
        buf_clear(&b);
        json_object_set_new(vocab, spell(l, (int32_t)i, &b), json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < l->n_merges; i++) {
        buf_clear(&b);
        spell(l, l->merges[i].left, &b);
        buf_char(&b, ' ');
        json_array_append_new(merges, json_string(spell(l, l->merges[i].right, &b)));
    }
    buf_free(&b);
    return json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:b,s:o,s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
}

static json_t *file_json(const struct learn *l, const char *const *special, size_t n_special,
                         const char *bos)
{
    json_t *added = json_array();
    int64_t bos_id = 0;
    for (size_t i = 0; i < n_special; i++) {
        size_t id = l->pieces.n + i;
        if (bos && !strcmp(bos, special[i]))
            bos_id = (int64_t)id;
        json_array_append_new(added, json_pack("{s:I,s:s,s:b,s:b,s:b,s:b,s:b}", "id",
                                               (json_int_t)id, "content", special[i],
                                               "single_word", 0, "lstrip", 0, "rstrip", 0,
                                               "normalized", 0, "special", 1));
    }
    json_t *split = json_pack("{s:s,s:{s:s},s:s,s:b}", "type", "Split", "pattern", "Regex",
                              pretokenize_llada, "behavior", "Isolated", "invert", 0);
    json_t *pre = json_pack("{s:s,s:[o,o]}", "type", "Sequence", "pretokenizers", split,
                            tokenizer_byte_level());
    return json_pack("{s:s,s:n,s:n,s:o,s:{s:s},s:o,s:o,s:o,s:o}", "version", "1.0", "truncation",
                     "padding", "added_tokens", added, "normalizer", "type", "NFC",
                     "pre_tokenizer", pre, "post_processor", tokenizer_template(bos, bos_id),
                     "decoder", tokenizer_byte_level(), "model", model_json(l));
}

/* Checks that special tokens are unique and not empty, and that bos is one. */
static int check_special(const char *const *special, size_t n, const char *bos, struct err *e)
{
    int found = !bos;
    for (size_t i = 0; i < n; i++) {
        if (!*special[i] || utf8_valid(special[i], strlen(special[i])) < strlen(special[i]))
            return err_set(e, EXIT_BAD_USAGE, "special token %zu: expected text, got \"%s\"", i,
                           special[i]);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(special[i], special[k]))
                return err_set(e, EXIT_BAD_USAGE, "special token \"%s\" twice", special[i]);
        found |= bos && !strcmp(bos, special[i]);
    }
    return found ? 0 : err_set(e, EXIT_BAD_USAGE, "bos \"%s\" is not a special token", bos);
}

int tokenizer_learn(const char *folder, const char *const *texts, size_t n_texts, size_t vocab,
                    const char *const *special, size_t n_special, const char *bos, struct err *e)
{
    if (vocab > TOKEN_ID_LIMIT || vocab < n_special || vocab - n_special < 256)
        return err_set(e, EXIT_BAD_USAGE, "vocab: expected %zu to %d (256 bytes, %zu special "
                       "tokens, merges), got %zu", 256 + n_special, TOKEN_ID_LIMIT, n_special,
                       vocab);
    if (check_special(special, n_special, bos, e))
        return -1;
    struct learn l = {0};
    int bad = count_words(&l, texts, n_texts, special, n_special, e);
    if (!bad) {
        start(&l);
        bad = join_pairs(&l, vocab - n_special, e);
    }
    if (!bad) {
        json_t *j = file_json(&l, special, n_special, bos);
        bad = tokenizer_save(folder, j, e);
        json_decref(j);
    }
    learn_free(&l);
    return bad;
}
