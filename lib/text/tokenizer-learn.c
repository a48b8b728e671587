/* tokenizer-learn.c - learns a byte-level BPE tokenizer from texts.
 *
 * Words are counted once. Then the most frequent pair of neighbouring pieces is merged, repeatedly.
 * Each pair has its count and its words, so a merge visits only these words. The heap is lazy: an
 * entry with an old count is put back with the true one. Ties go to the pair whose (left, right)
 * bytes come first, so the result depends only on the texts.
 * Source: Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units",
 * ACL 2016, algorithm 1. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/hash64.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/text/tokenizer/alphabet.h"
#include "lib/text/tokenizer-parts.h"
#include "lib/text/tokenizer.h"
#include "lib/text/utf8.h"

struct word {
    size_t at, n; /* its bytes, later its symbols, in the pools */
    int64_t count;
    uint64_t hash;
};
struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t *words; /* owned: words that have, or had, the pair; a word may be there twice */
    size_t n, cap;
    size_t touched; /* number of the last merge that raised the count */
};
struct entry {
    int64_t count;
    size_t pair;
};
struct learn {
    struct buf bytes;
    struct word *words;
    size_t n_words, cap_words;
    uint32_t *word_table; /* index + 1, 0: free */
    size_t word_mask;
    int32_t *symbols;
    struct pair *pairs;
    size_t n_pairs, cap_pairs;
    uint32_t *pair_table; /* index + 1, 0: free */
    size_t pair_mask;
    struct entry *heap;
    size_t n_heap, cap_heap;
    size_t *raised; /* pairs whose count rose in this merge */
    size_t n_raised, cap_raised;
    struct buf piece_bytes;
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
    struct { int32_t left, right; } *merges;
    size_t n_merges, cap_merges;
};

/* ---- words ---- */

static uint64_t hash_text(const char *s, size_t n)
{
    const uint64_t h = hash64_fnv(HASH64_FNV, s, n);
    return h ^ h >> 29;
}

/* A table twice as large; hash_of(l, i) is the hash of item i of n. */
static void grow_table(const struct learn *l, uint32_t **table, size_t *mask, size_t n,
                       uint64_t (*hash_of)(const struct learn *, size_t))
{
    size_t size = *table ? 2 * (*mask + 1) : 1 << 12;
    free(*table);
    *table = mem_zero(size, sizeof **table);
    *mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        size_t k = hash_of(l, i) & *mask;
        while ((*table)[k])
            k = (k + 1) & *mask;
        (*table)[k] = (uint32_t)i + 1;
    }
}

static uint64_t word_hash(const struct learn *l, size_t i)
{
    return l->words[i].hash;
}

static int count_word(void *ctx, const char *s, size_t n, struct err *e)
{
    struct learn *l = ctx;
    if (!l->word_table || 2 * l->n_words > l->word_mask)
        grow_table(l, &l->word_table, &l->word_mask, l->n_words, word_hash);
    uint64_t h = hash_text(s, n);
    size_t k = h & l->word_mask;
    for (; l->word_table[k]; k = (k + 1) & l->word_mask) {
        struct word *w = &l->words[l->word_table[k] - 1];
        if (w->hash == h && w->n == n && !memcmp(l->bytes.data + w->at, s, n)) {
            w->count++;
            return 0;
        }
    }
    if (l->n_words == UINT32_MAX - 1)
        return err_set(e, EXIT_BAD_DATA, "texts: more than %u different words", UINT32_MAX - 1);
    MEM_GROW(l->words, l->n_words, l->cap_words);
    l->words[l->n_words++] = (struct word){l->bytes.len, n, 1, h};
    l->word_table[k] = (uint32_t)l->n_words;
    buf_put(&l->bytes, s, n);
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
static int32_t join_pieces(struct learn *l, int32_t left, int32_t right)
{
    const struct piece x = l->pieces[left], y = l->pieces[right];
    struct buf *b = &l->piece_bytes;
    size_t at = b->len, n = x.len + y.len;
    buf_reserve(b, n);
    buf_put(b, b->data + x.at, x.len);
    buf_put(b, b->data + y.at, y.len);
    for (size_t i = 256; i < l->n_pieces; i++)
        if (l->pieces[i].len == n && !memcmp(b->data + l->pieces[i].at, b->data + at, n)) {
            b->len = at;
            return (int32_t)i;
        }
    MEM_GROW(l->pieces, l->n_pieces, l->cap_pieces);
    l->pieces[l->n_pieces++] = (struct piece){(uint32_t)at, (uint32_t)n, PIECE_VOCAB};
    return (int32_t)l->n_pieces - 1;
}

/* Adds the 256 bytes in the order of their characters, as in published files; symbols become their
 * ids. */
static void start_pieces(struct learn *l)
{
    int32_t id_of[256];
    for (uint32_t code = 0; code < 324; code++) {
        int byte = alphabet_byte(code);
        if (byte < 0)
            continue;
        id_of[byte] = (int32_t)l->n_pieces;
        MEM_GROW(l->pieces, l->n_pieces, l->cap_pieces);
        l->pieces[l->n_pieces++] =
            (struct piece){(uint32_t)l->piece_bytes.len, 1, PIECE_VOCAB};
        buf_char(&l->piece_bytes, (char)byte);
    }
    l->symbols = mem_resize(NULL, l->bytes.len, sizeof *l->symbols);
    for (size_t i = 0; i < l->bytes.len; i++)
        l->symbols[i] = id_of[(unsigned char)l->bytes.data[i]];
}

static uint64_t key_hash(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

static uint64_t pair_hash(const struct learn *l, size_t i)
{
    return key_hash(l->pairs[i].left, l->pairs[i].right);
}

static struct pair *pair_of(struct learn *l, int32_t left, int32_t right)
{
    if (!l->pair_table || 2 * l->n_pairs > l->pair_mask)
        grow_table(l, &l->pair_table, &l->pair_mask, l->n_pairs, pair_hash);
    size_t k = key_hash(left, right) & l->pair_mask;
    for (; l->pair_table[k]; k = (k + 1) & l->pair_mask) {
        struct pair *p = &l->pairs[l->pair_table[k] - 1];
        if (p->left == left && p->right == right)
            return p;
    }
    MEM_GROW(l->pairs, l->n_pairs, l->cap_pairs);
    l->pairs[l->n_pairs++] = (struct pair){.left = left, .right = right};
    l->pair_table[k] = (uint32_t)l->n_pairs;
    return &l->pairs[l->n_pairs - 1];
}

/* Counts one more place of the pair in word w; `join` is the number of the current merge. */
static void raise_pair(struct learn *l, int32_t left, int32_t right, size_t w, size_t join)
{
    struct pair *p = pair_of(l, left, right);
    p->count += l->words[w].count;
    if (!p->n || p->words[p->n - 1] != w) {
        MEM_GROW(p->words, p->n, p->cap);
        p->words[p->n++] = (uint32_t)w;
    }
    if (p->touched != join) {
        p->touched = join;
        MEM_GROW(l->raised, l->n_raised, l->cap_raised);
        l->raised[l->n_raised++] = (size_t)(p - l->pairs);
    }
}

/* ---- heap ---- */

static int compare_pieces(const struct learn *l, int32_t a, int32_t b)
{
    const struct piece *x = &l->pieces[a], *y = &l->pieces[b];
    int c = memcmp(l->piece_bytes.data + x->at, l->piece_bytes.data + y->at,
                   x->len < y->len ? x->len : y->len);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* 1: x comes before y. */
static int is_before(const struct learn *l, struct entry x, struct entry y)
{
    if (x.count != y.count)
        return x.count > y.count;
    const struct pair *p = &l->pairs[x.pair], *q = &l->pairs[y.pair];
    int c = compare_pieces(l, p->left, q->left);
    return c ? c < 0 : compare_pieces(l, p->right, q->right) < 0;
}

static void heap_push(struct learn *l, size_t pair)
{
    MEM_GROW(l->heap, l->n_heap, l->cap_heap);
    struct entry x = {l->pairs[pair].count, pair};
    size_t i = l->n_heap++;
    for (; i > 0 && is_before(l, x, l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = x;
}

static struct entry heap_pop(struct learn *l)
{
    struct entry top = l->heap[0], x = l->heap[--l->n_heap];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < l->n_heap; i = k) {
        k += k + 1 < l->n_heap && is_before(l, l->heap[k + 1], l->heap[k]);
        if (!is_before(l, l->heap[k], x))
            break;
        l->heap[i] = l->heap[k];
    }
    l->heap[i] = x;
    return top;
}

/* Index of the most frequent pair. -1: there is none. */
static int64_t best_pair(struct learn *l)
{
    while (l->n_heap > 0) {
        struct entry top = heap_pop(l);
        int64_t now = l->pairs[top.pair].count;
        if (now == top.count && now > 0)
            return (int64_t)top.pair;
        if (now > 0 && now < top.count)
            heap_push(l, top.pair);
    }
    return -1;
}

/* ---- joins ---- */

static void raised_to_heap(struct learn *l)
{
    for (size_t i = 0; i < l->n_raised; i++)
        heap_push(l, l->raised[i]);
    l->n_raised = 0;
}

static void count_pairs(struct learn *l)
{
    for (size_t w = 0; w < l->n_words; w++)
        for (size_t i = 1; i < l->words[w].n; i++) {
            const int32_t *s = l->symbols + l->words[w].at + i;
            raise_pair(l, s[-1], s[0], w, 1);
        }
    raised_to_heap(l);
}

/* Joins left+right to id in word w, left to right, and moves the counts of the neighbours. */
static void join_in_word(struct learn *l, size_t w, int32_t left, int32_t right, int32_t id,
                         size_t join)
{
    struct word *word = &l->words[w];
    int32_t *s = l->symbols + word->at;
    size_t n = word->n, to = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || s[i] != left || s[i + 1] != right) {
            s[to++] = s[i];
            continue;
        }
        if (to > 0) {
            pair_of(l, s[to - 1], left)->count -= word->count;
            raise_pair(l, s[to - 1], id, w, join);
        }
        if (i + 2 < n) {
            pair_of(l, right, s[i + 2])->count -= word->count;
            raise_pair(l, id, s[i + 2], w, join);
        }
        s[to++] = id;
        i++;
    }
    word->n = to;
}

static void join_pair(struct learn *l, size_t index)
{
    struct pair p = l->pairs[index]; /* a copy: the array may move */
    int32_t id = join_pieces(l, p.left, p.right);
    MEM_GROW(l->merges, l->n_merges, l->cap_merges);
    l->merges[l->n_merges].left = p.left;
    l->merges[l->n_merges++].right = p.right;
    l->pairs[index].words = NULL;
    l->pairs[index].n = l->pairs[index].cap = 0;
    for (size_t i = 0; i < p.n; i++)
        join_in_word(l, p.words[i], p.left, p.right, id, l->n_merges + 1);
    free(p.words);
    l->pairs[index].count = 0;
    raised_to_heap(l);
}

static int join_pairs(struct learn *l, size_t n_pieces, struct err *e)
{
    count_pairs(l);
    while (l->n_pieces < n_pieces) {
        int64_t best = best_pair(l);
        if (best < 0)
            return err_set(e, EXIT_BAD_DATA, "texts: expected enough for %zu pieces, got %zu",
                           n_pieces, l->n_pieces);
        join_pair(l, (size_t)best);
    }
    return 0;
}

static void learn_free(struct learn *l)
{
    for (size_t i = 0; i < l->n_pairs; i++)
        free(l->pairs[i].words);
    free(l->pairs);
    free(l->pair_table);
    free(l->words);
    free(l->word_table);
    free(l->symbols);
    free(l->heap);
    free(l->raised);
    free(l->pieces);
    free(l->merges);
    buf_free(&l->bytes);
    buf_free(&l->piece_bytes);
}

/* ---- the file ---- */

static const char *spell(const struct learn *l, int32_t id, struct buf *b)
{
    alphabet_piece(l->piece_bytes.data + l->pieces[id].at, l->pieces[id].len, b);
    return b->data;
}

static json_t *model_json(const struct learn *l)
{
    json_t *vocab = json_object(), *merges = json_array();
    struct buf b = {0};
    for (size_t i = 0; i < l->n_pieces; i++) {
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
        size_t id = l->n_pieces + i;
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
        start_pieces(&l);
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
