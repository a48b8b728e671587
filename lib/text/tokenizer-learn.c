/* tokenizer-learn.c - learns a byte-level BPE tokenizer from texts.
 *
 * Words are counted once. Then the most frequent pair of neighbouring pieces is merged, again and
 * again. Each pair has its count and its words, so a merge visits only these words. The heap is
 * lazy: an entry with an old count is put back with the true count. On ties the pair whose (left,
 * right) bytes come first is merged, so the result depends only on the texts.
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
    size_t at, n; /* place in learn.bytes; later place and number of its ids in learn.symbols */
    int64_t count;
    uint64_t hash;
};
struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t *words; /* [n] owned: words that have, or had, the pair; may list a word twice */
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

static uint64_t hash_text(const char *text, size_t n)
{
    const uint64_t h = hash64_fnv(HASH64_FNV, text, n);
    return h ^ h >> 29;
}

/* Doubles a hash table and enters n items again. hash_of(learn, i): the hash of item i. */
static void grow_table(const struct learn *learn, uint32_t **table, size_t *mask, size_t n,
                       uint64_t (*hash_of)(const struct learn *, size_t))
{
    size_t size = *table ? 2 * (*mask + 1) : 1 << 12;
    free(*table);
    *table = mem_zero(size, sizeof **table);
    *mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        size_t k = hash_of(learn, i) & *mask;
        while ((*table)[k])
            k = (k + 1) & *mask;
        (*table)[k] = (uint32_t)i + 1;
    }
}

static uint64_t word_hash(const struct learn *learn, size_t i)
{
    return learn->words[i].hash;
}

static int count_word(void *ctx, const char *text, size_t n, struct err *e)
{
    struct learn *learn = ctx;
    if (!learn->word_table || 2 * learn->n_words > learn->word_mask)
        grow_table(learn, &learn->word_table, &learn->word_mask, learn->n_words, word_hash);
    uint64_t hash = hash_text(text, n);
    size_t k = hash & learn->word_mask;
    for (; learn->word_table[k]; k = (k + 1) & learn->word_mask) {
        struct word *word = &learn->words[learn->word_table[k] - 1];
        if (word->hash == hash && word->n == n && !memcmp(learn->bytes.data + word->at, text, n)) {
            word->count++;
            return 0;
        }
    }
    if (learn->n_words == UINT32_MAX - 1)
        return err_set(e, EXIT_BAD_DATA, "texts: more than %u different words", UINT32_MAX - 1);
    MEM_GROW(learn->words, learn->n_words, learn->cap_words);
    learn->words[learn->n_words++] = (struct word){learn->bytes.len, n, 1, hash};
    learn->word_table[k] = (uint32_t)learn->n_words;
    buf_put(&learn->bytes, text, n);
    return 0;
}

static int count_words(struct learn *learn, const char *const *texts, size_t n,
                       const char *const *special, size_t n_special, struct err *e)
{
    struct tokenizer tokenizer = {.n_added = n_special};
    tokenizer.added = mem_zero(n_special, sizeof *tokenizer.added);
    for (size_t i = 0; i < n_special; i++)
        tokenizer.added[i] = (struct added){.text = mem_text(special[i]), .len = strlen(special[i]),
                                            .id = (int32_t)i, .special = 1};
    normalize_add(&tokenizer.normalizer, NORMALIZE_NFC, NULL, NULL);
    tokenizer_cutters(&tokenizer);
    int bad = pretokenize_add(&tokenizer.split,
                              (struct pretokenize_rule){.pattern = pretokenize_llada}, "learn", e);
    for (size_t i = 0; !bad && i < n; i++)
        if ((bad = tokenizer_words(&tokenizer, texts[i], strlen(texts[i]), count_word, learn, e)) !=
            0)
            err_prefix(e, "text %zu of %zu", i + 1, n);
    for (size_t i = 0; i < n_special; i++)
        free(tokenizer.added[i].text);
    free(tokenizer.added);
    cutter_free(&tokenizer.raw);
    cutter_free(&tokenizer.normal);
    pretokenize_free(&tokenizer.split);
    normalize_free(&tokenizer.normalizer);
    return bad;
}

/* ---- pieces and pairs ---- */

/* The id of the piece left+right. If an earlier merge made the same text, this is its id. */
static int32_t join_pieces(struct learn *learn, int32_t left, int32_t right)
{
    const struct piece first = learn->pieces[left], second = learn->pieces[right];
    struct buf *text = &learn->piece_bytes;
    size_t at = text->len, n = first.len + second.len;
    buf_reserve(text, n);
    buf_put(text, text->data + first.at, first.len);
    buf_put(text, text->data + second.at, second.len);
    for (size_t i = 256; i < learn->n_pieces; i++)
        if (learn->pieces[i].len == n &&
            !memcmp(text->data + learn->pieces[i].at, text->data + at, n)) {
            text->len = at;
            return (int32_t)i;
        }
    MEM_GROW(learn->pieces, learn->n_pieces, learn->cap_pieces);
    learn->pieces[learn->n_pieces++] = (struct piece){(uint32_t)at, (uint32_t)n, PIECE_VOCAB};
    return (int32_t)learn->n_pieces - 1;
}

/* Makes a piece of each byte, in the order of their characters (alphabet.h), as in published files.
 * learn->symbols = the ids of all bytes of the words. */
static void start_pieces(struct learn *learn)
{
    int32_t id_of[256];
    for (uint32_t code = 0; code < 324; code++) {
        int byte = alphabet_byte(code);
        if (byte < 0)
            continue;
        id_of[byte] = (int32_t)learn->n_pieces;
        MEM_GROW(learn->pieces, learn->n_pieces, learn->cap_pieces);
        learn->pieces[learn->n_pieces++] =
            (struct piece){(uint32_t)learn->piece_bytes.len, 1, PIECE_VOCAB};
        buf_char(&learn->piece_bytes, (char)byte);
    }
    learn->symbols = mem_resize(NULL, learn->bytes.len, sizeof *learn->symbols);
    for (size_t i = 0; i < learn->bytes.len; i++)
        learn->symbols[i] = id_of[(unsigned char)learn->bytes.data[i]];
}

static uint64_t key_hash(int32_t left, int32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

static uint64_t pair_hash(const struct learn *learn, size_t i)
{
    return key_hash(learn->pairs[i].left, learn->pairs[i].right);
}

static struct pair *pair_of(struct learn *learn, int32_t left, int32_t right)
{
    if (!learn->pair_table || 2 * learn->n_pairs > learn->pair_mask)
        grow_table(learn, &learn->pair_table, &learn->pair_mask, learn->n_pairs, pair_hash);
    size_t k = key_hash(left, right) & learn->pair_mask;
    for (; learn->pair_table[k]; k = (k + 1) & learn->pair_mask) {
        struct pair *pair = &learn->pairs[learn->pair_table[k] - 1];
        if (pair->left == left && pair->right == right)
            return pair;
    }
    MEM_GROW(learn->pairs, learn->n_pairs, learn->cap_pairs);
    learn->pairs[learn->n_pairs++] = (struct pair){.left = left, .right = right};
    learn->pair_table[k] = (uint32_t)learn->n_pairs;
    return &learn->pairs[learn->n_pairs - 1];
}

/* Counts one more place of the pair in word w; `join` is the number of the current merge. */
static void raise_pair(struct learn *learn, int32_t left, int32_t right, size_t w, size_t join)
{
    struct pair *pair = pair_of(learn, left, right);
    pair->count += learn->words[w].count;
    if (!pair->n || pair->words[pair->n - 1] != w) {
        MEM_GROW(pair->words, pair->n, pair->cap);
        pair->words[pair->n++] = (uint32_t)w;
    }
    if (pair->touched != join) {
        pair->touched = join;
        MEM_GROW(learn->raised, learn->n_raised, learn->cap_raised);
        learn->raised[learn->n_raised++] = (size_t)(pair - learn->pairs);
    }
}

/* ---- heap ---- */

static int compare_pieces(const struct learn *learn, int32_t a, int32_t b)
{
    const struct piece *x = &learn->pieces[a], *y = &learn->pieces[b];
    int c = memcmp(learn->piece_bytes.data + x->at, learn->piece_bytes.data + y->at,
                   x->len < y->len ? x->len : y->len);
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* 1: x comes before y. */
static int is_before(const struct learn *learn, struct entry x, struct entry y)
{
    if (x.count != y.count)
        return x.count > y.count;
    const struct pair *p = &learn->pairs[x.pair], *q = &learn->pairs[y.pair];
    int c = compare_pieces(learn, p->left, q->left);
    return c ? c < 0 : compare_pieces(learn, p->right, q->right) < 0;
}

static void heap_push(struct learn *learn, size_t pair)
{
    MEM_GROW(learn->heap, learn->n_heap, learn->cap_heap);
    struct entry entry = {learn->pairs[pair].count, pair};
    size_t i = learn->n_heap++;
    for (; i > 0 && is_before(learn, entry, learn->heap[(i - 1) / 2]); i = (i - 1) / 2)
        learn->heap[i] = learn->heap[(i - 1) / 2];
    learn->heap[i] = entry;
}

static struct entry heap_pop(struct learn *learn)
{
    struct entry top = learn->heap[0], entry = learn->heap[--learn->n_heap];
    size_t i = 0;
    for (size_t k; (k = 2 * i + 1) < learn->n_heap; i = k) {
        k += k + 1 < learn->n_heap && is_before(learn, learn->heap[k + 1], learn->heap[k]);
        if (!is_before(learn, learn->heap[k], entry))
            break;
        learn->heap[i] = learn->heap[k];
    }
    learn->heap[i] = entry;
    return top;
}

/* Index of the most frequent pair. -1: there is none. */
static int64_t best_pair(struct learn *learn)
{
    while (learn->n_heap > 0) {
        struct entry top = heap_pop(learn);
        int64_t now = learn->pairs[top.pair].count;
        if (now == top.count && now > 0)
            return (int64_t)top.pair;
        if (now > 0 && now < top.count)
            heap_push(learn, top.pair);
    }
    return -1;
}

/* ---- merges ---- */

static void raised_to_heap(struct learn *learn)
{
    for (size_t i = 0; i < learn->n_raised; i++)
        heap_push(learn, learn->raised[i]);
    learn->n_raised = 0;
}

static void count_pairs(struct learn *learn)
{
    for (size_t w = 0; w < learn->n_words; w++)
        for (size_t i = 1; i < learn->words[w].n; i++) {
            const int32_t *s = learn->symbols + learn->words[w].at + i;
            raise_pair(learn, s[-1], s[0], w, 1);
        }
    raised_to_heap(learn);
}

/* Replaces each left, right in a word by id, from left to right. Corrects the counts of the pairs
 * with the neighbours. */
static void join_in_word(struct learn *learn, size_t number, int32_t left, int32_t right,
                         int32_t id, size_t join)
{
    struct word *word = &learn->words[number];
    int32_t *symbols = learn->symbols + word->at;
    size_t n = word->n, to = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || symbols[i] != left || symbols[i + 1] != right) {
            symbols[to++] = symbols[i];
            continue;
        }
        if (to > 0) {
            pair_of(learn, symbols[to - 1], left)->count -= word->count;
            raise_pair(learn, symbols[to - 1], id, number, join);
        }
        if (i + 2 < n) {
            pair_of(learn, right, symbols[i + 2])->count -= word->count;
            raise_pair(learn, id, symbols[i + 2], number, join);
        }
        symbols[to++] = id;
        i++;
    }
    word->n = to;
}

static void join_pair(struct learn *learn, size_t index)
{
    struct pair pair = learn->pairs[index]; /* a copy: the array may move */
    int32_t id = join_pieces(learn, pair.left, pair.right);
    MEM_GROW(learn->merges, learn->n_merges, learn->cap_merges);
    learn->merges[learn->n_merges].left = pair.left;
    learn->merges[learn->n_merges++].right = pair.right;
    learn->pairs[index].words = NULL;
    learn->pairs[index].n = learn->pairs[index].cap = 0;
    for (size_t i = 0; i < pair.n; i++)
        join_in_word(learn, pair.words[i], pair.left, pair.right, id, learn->n_merges + 1);
    free(pair.words);
    learn->pairs[index].count = 0;
    raised_to_heap(learn);
}

static int join_pairs(struct learn *learn, size_t n_pieces, struct err *e)
{
    count_pairs(learn);
    while (learn->n_pieces < n_pieces) {
        int64_t best = best_pair(learn);
        if (best < 0)
            return err_set(e, EXIT_BAD_DATA, "texts: expected enough for %zu pieces, got %zu",
                           n_pieces, learn->n_pieces);
        join_pair(learn, (size_t)best);
    }
    return 0;
}

static void learn_free(struct learn *learn)
{
    for (size_t i = 0; i < learn->n_pairs; i++)
        free(learn->pairs[i].words);
    free(learn->pairs);
    free(learn->pair_table);
    free(learn->words);
    free(learn->word_table);
    free(learn->symbols);
    free(learn->heap);
    free(learn->raised);
    free(learn->pieces);
    free(learn->merges);
    buf_free(&learn->bytes);
    buf_free(&learn->piece_bytes);
}

/* ---- tokenizer.json ---- */

static const char *spell(const struct learn *learn, int32_t id, struct buf *text)
{
    alphabet_piece(learn->piece_bytes.data + learn->pieces[id].at, learn->pieces[id].len, text);
    return text->data;
}

static json_t *model_json(const struct learn *learn)
{
    json_t *vocab = json_object(), *merges = json_array();
    struct buf text = {0};
    for (size_t i = 0; i < learn->n_pieces; i++) {
        buf_clear(&text);
        json_object_set_new(vocab, spell(learn, (int32_t)i, &text), json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < learn->n_merges; i++) {
        buf_clear(&text);
        spell(learn, learn->merges[i].left, &text);
        buf_char(&text, ' ');
        json_array_append_new(merges, json_string(spell(learn, learn->merges[i].right, &text)));
    }
    buf_free(&text);
    return json_pack("{s:s,s:n,s:n,s:n,s:n,s:b,s:b,s:b,s:o,s:o}", "type", "BPE", "dropout",
                     "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0,
                     "byte_fallback", 0, "ignore_merges", 0, "vocab", vocab, "merges", merges);
}

static json_t *file_json(const struct learn *learn, const char *const *special, size_t n_special,
                         const char *bos)
{
    json_t *added = json_array();
    int64_t bos_id = 0;
    for (size_t i = 0; i < n_special; i++) {
        size_t id = learn->n_pieces + i;
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
                     "decoder", tokenizer_byte_level(), "model", model_json(learn));
}

/* Checks that special tokens are UTF-8, unique and not empty, and that bos, if given, is one of
 * them. */
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
    struct learn learn = {0};
    int bad = count_words(&learn, texts, n_texts, special, n_special, e);
    if (!bad) {
        start_pieces(&learn);
        bad = join_pairs(&learn, vocab - n_special, e);
    }
    if (!bad) {
        json_t *j = file_json(&learn, special, n_special, bos);
        bad = tokenizer_save(folder, j, e);
        json_decref(j);
    }
    learn_free(&learn);
    return bad;
}
