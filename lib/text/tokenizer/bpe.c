/* bpe.c - byte-pair merges of words into ids; see bpe.h.
 *
 * Rule: merge the neighbouring pair of lowest rank, the leftmost on a tie, until no pair has a
 * merge. Most words are pieces themselves: one look-up finds them, because bpe_finish has merged
 * every piece once. A short word is scanned for its best pair. A long word has a linked list and a
 * heap of (rank, place), so a million equal letters cost n log n. */
#include "lib/text/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/text/utf8.h"

enum { PLACE_BITS = 6, SHORT_WORD = 40, SIEVE_BITS = 8 };
_Static_assert(SHORT_WORD <= 1 << PLACE_BITS, "a place in a short word has PLACE_BITS");
#define NO_RANK UINT32_MAX
#define NO_PAIR UINT64_MAX

static uint64_t mix(uint64_t h)
{
    h *= 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

static uint64_t hash_word(const char *s, size_t n)
{
    uint64_t h = n, x;
    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&x, s, 8);
        h = mix(h ^ x);
    }
    x = 0;
    memcpy(&x, s, n);
    return mix(mix(h ^ x));
}

static size_t table_size(size_t n)
{
    size_t size = 16;
    while (size < n + n / 2)
        size *= 2;
    return size;
}

/* Most look-ups find nothing, and the tables do not fit in the near caches. A sieve does: it has a
 * bit for each hash that was added, and SIEVE_BITS to 2*SIEVE_BITS for each of n. It is wrong only
 * when it says yes. */
static void sieve_init(struct bpe_sieve *v, size_t n)
{
    size_t size = 64;
    while (size < SIEVE_BITS * n)
        size *= 2;
    v->bits = mem_zero(size / 64, sizeof *v->bits);
    v->mask = size - 1;
}

static void sieve_add(struct bpe_sieve *v, uint64_t h)
{
    size_t i = h >> 20 & v->mask;
    v->bits[i / 64] |= (uint64_t)1 << i % 64;
}

static int sieve_has(const struct bpe_sieve *v, uint64_t h)
{
    size_t i = h >> 20 & v->mask;
    return (int)(v->bits[i / 64] >> i % 64 & 1);
}

static const char *piece_bytes(const struct bpe *b, int32_t id)
{
    return b->pieces->bytes.data + b->pieces->v[id].at;
}

static void add_word(struct bpe *b, int32_t id)
{
    size_t len = b->pieces->v[id].len;
    uint64_t h = hash_word(piece_bytes(b, id), len);
    size_t i = h & b->words_mask;
    while (b->words[i].id >= 0)
        i = (i + 1) & b->words_mask;
    b->words[i] = (struct bpe_slot){(uint32_t)(h >> 32), id};
    sieve_add(&b->may_be_word, h);
    if (len > b->longest)
        b->longest = len;
    if (len == 1)
        b->byte_id[(unsigned char)*piece_bytes(b, id)] = id;
}

void bpe_init(struct bpe *b, const struct pieces *p, size_t n_merges)
{
    *b = (struct bpe){.pieces = p, .unknown = -1};
    sieve_init(&b->may_be_word, p->n);
    sieve_init(&b->may_be_pair, n_merges);
    size_t size = table_size(p->n);
    b->words = mem_resize(NULL, size, sizeof *b->words);
    b->words_mask = size - 1;
    for (size_t i = 0; i < size; i++)
        b->words[i].id = -1;
    for (size_t i = 0; i < 256; i++)
        b->byte_id[i] = b->fallback[i] = -1;
    for (size_t id = 0; id < p->n; id++)
        if (p->v[id].flags & PIECE_VOCAB)
            add_word(b, (int32_t)id);
    size = table_size(n_merges);
    b->pairs = mem_resize(NULL, size, sizeof *b->pairs);
    b->pairs_mask = size - 1;
    memset(b->pairs, 0xFF, size * sizeof *b->pairs);
    b->merged = mem_resize(NULL, n_merges, sizeof *b->merged);
}

int32_t bpe_find(const struct bpe *b, const char *s, size_t n)
{
    if (n > b->longest)
        return -1;
    uint64_t h = hash_word(s, n);
    if (!sieve_has(&b->may_be_word, h))
        return -1;
    for (size_t i = h & b->words_mask; b->words[i].id >= 0; i = (i + 1) & b->words_mask) {
        int32_t id = b->words[i].id;
        if (b->words[i].tag == (uint32_t)(h >> 32) && b->pieces->v[id].len == n &&
            !memcmp(piece_bytes(b, id), s, n))
            return id;
    }
    return -1;
}

/* Place of the pair in the table, or the free place for it. */
static size_t pair_place(const struct bpe *b, uint64_t key, uint64_t h)
{
    size_t i = h & b->pairs_mask;
    while (b->pairs[i] != NO_PAIR && b->pairs[i] >> 22 != key)
        i = (i + 1) & b->pairs_mask;
    return i;
}

static uint32_t rank_of(const struct bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)left << 21 | (uint64_t)right, h = mix(key);
    if (!sieve_has(&b->may_be_pair, h))
        return NO_RANK;
    uint64_t found = b->pairs[pair_place(b, key, h)];
    if (found == NO_PAIR)
        return NO_RANK;
    uint32_t rank = (uint32_t)found & (TOKEN_RANK_LIMIT - 1);
    __builtin_prefetch(&b->merged[rank]); /* most merges that are found are done later */
    return rank;
}

int bpe_add(struct bpe *b, int32_t left, int32_t right, int32_t merged)
{
    uint64_t key = (uint64_t)left << 21 | (uint64_t)right, h = mix(key);
    size_t i = pair_place(b, key, h);
    if (b->pairs[i] != NO_PAIR)
        return -1;
    sieve_add(&b->may_be_pair, h);
    b->pairs[i] = key << 22 | b->n_merges;
    b->merged[b->n_merges++] = merged;
    return 0;
}

void bpe_free(struct bpe *b)
{
    free(b->first);
    free(b->pairs);
    free(b->merged);
    free(b->words);
    free(b->may_be_word.bits);
    free(b->may_be_pair.bits);
    *b = (struct bpe){0};
}

void bpe_work_free(struct bpe_work *w)
{
    free(w->id);
    free(w->next);
    free(w->prev);
    free(w->heap);
    *w = (struct bpe_work){0};
}

/* Merges n <= SHORT_WORD symbols in id; rank[0..n-2]: ranks of their pairs. Returns how many are
 * left. */
static size_t merge_short(const struct bpe *b, int32_t *id, uint32_t *rank, size_t n)
{
    for (;;) {
        uint32_t low = NO_RANK; /* rank and place in one number: no branch to predict */
        for (uint32_t i = 0; i + 1 < n; i++) {
            uint32_t x = rank[i] << PLACE_BITS | i;
            low = x < low ? x : low;
        }
        if (low >> PLACE_BITS >= TOKEN_RANK_LIMIT)
            return n;
        size_t best = low & ((1 << PLACE_BITS) - 1);
        id[best] = b->merged[low >> PLACE_BITS];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i - 1] = rank[i];
        }
        if (best > 0)
            rank[best - 1] = rank_of(b, id[best - 1], id[best]);
        if (best + 1 < n)
            rank[best] = rank_of(b, id[best], id[best + 1]);
    }
}

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t x = heap[i];
    for (size_t k; (k = 2 * i + 1) < n; i = k) {
        k += k + 1 < n && heap[k + 1] < heap[k];
        if (heap[k] >= x)
            break;
        heap[i] = heap[k];
    }
    heap[i] = x;
}

static void heap_push(uint64_t *heap, size_t *n, uint64_t x)
{
    size_t i = (*n)++;
    for (; i > 0 && heap[(i - 1) / 2] > x; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = x;
}

/* Adds a pair that has a merge to the heap, as rank << 32 | place of its left symbol. */
static void offer(const struct bpe *b, const struct bpe_work *w, int32_t left, size_t *n)
{
    if (left < 0 || w->next[left] < 0)
        return;
    uint32_t rank = rank_of(b, w->id[left], w->id[w->next[left]]);
    if (rank != NO_RANK)
        heap_push(w->heap, n, (uint64_t)rank << 32 | (uint32_t)left);
}

static void join(const struct bpe *b, const struct bpe_work *w, int32_t left, uint32_t rank)
{
    int32_t right = w->next[left], after = w->next[right];
    w->id[left] = b->merged[rank];
    w->id[right] = -1;
    w->next[left] = after;
    if (after >= 0)
        w->prev[after] = left;
}

/* Merges n symbols in w->id. An entry of the heap is stale if its pair has changed; its rank then
 * differs, because the new pair has a longer text. */
static void merge_long(const struct bpe *b, const struct bpe_work *w, size_t n)
{
    size_t heap_n = 0;
    for (size_t i = 0; i < n; i++) {
        w->prev[i] = (int32_t)i - 1;
        w->next[i] = i + 1 < n ? (int32_t)i + 1 : -1;
    }
    for (size_t i = 0; i < n; i++)
        offer(b, w, (int32_t)i, &heap_n);
    while (heap_n > 0) {
        uint64_t top = w->heap[0];
        w->heap[0] = w->heap[--heap_n];
        if (heap_n > 0)
            sift_down(w->heap, heap_n, 0);
        int32_t left = (int32_t)(uint32_t)top;
        uint32_t rank = (uint32_t)(top >> 32);
        if (w->id[left] < 0 || w->next[left] < 0 ||
            rank_of(b, w->id[left], w->id[w->next[left]]) != rank)
            continue;
        join(b, w, left, rank);
        offer(b, w, w->prev[left], &heap_n);
        offer(b, w, left, &heap_n);
    }
}

static void work_room(struct bpe_work *w, size_t n)
{
    if (n <= w->cap)
        return;
    w->cap = n;
    w->id = mem_resize(w->id, n, sizeof *w->id);
    w->next = mem_resize(w->next, n, sizeof *w->next);
    w->prev = mem_resize(w->prev, n, sizeof *w->prev);
    w->heap = mem_resize(w->heap, 2 * n, sizeof *w->heap); /* a merge removes one and adds two */
}

/* Fills id[] for a character that has no piece; n: symbols before it. Returns their new number. */
static size_t replace_character(const struct bpe *b, const char *s, size_t len, int32_t *id,
                                size_t n)
{
    if (b->fallback[0] >= 0)
        for (size_t i = 0; i < len; i++)
            id[n++] = b->fallback[(unsigned char)s[i]];
    else if (b->unknown >= 0 && !(b->fuse && n > 0 && id[n - 1] == b->unknown))
        id[n++] = b->unknown;
    return n;
}

/* Fills id[] with what merging begins with. Returns their number: n for bytes that all have a
 * piece, and *replaced is 0. */
static size_t symbols(const struct bpe *b, const char *s, size_t n, int32_t *id, int *replaced)
{
    size_t len, k = 0;
    *replaced = b->by_character;
    for (size_t i = 0; i < n; i += len) {
        unsigned byte = (unsigned char)s[i];
        len = 1;
        if (b->by_character && byte >= 0x80)
            utf8_read(s + i, &len);
        id[k] = len > 1 ? bpe_find(b, s + i, len) : b->byte_id[byte];
        if (id[k] >= 0) {
            k++;
        } else {
            k = replace_character(b, s + i, len, id, k);
            *replaced = 1;
        }
    }
    return k;
}

static int long_word(const struct bpe *b, struct bpe_work *w, const char *s, size_t n,
                     struct ids *out, struct err *e)
{
    if (n > INT32_MAX)
        return err_set(e, EXIT_BAD_DATA, "text: one word of %zu bytes, at most %d", n, INT32_MAX);
    int replaced;
    work_room(w, n);
    n = symbols(b, s, n, w->id, &replaced);
    merge_long(b, w, n);
    for (int32_t i = 0; n > 0 && i >= 0; i = w->next[i])
        ids_push(out, w->id[i]);
    return 0;
}

static void short_word(const struct bpe *b, const char *s, size_t n, struct ids *out)
{
    int32_t id[SHORT_WORD];
    uint32_t rank[SHORT_WORD];
    int replaced;
    n = symbols(b, s, n, id, &replaced);
    for (size_t i = 1; i < n; i++)
        rank[i - 1] = replaced ? rank_of(b, id[i - 1], id[i])
                               : ~b->first[(unsigned)(unsigned char)s[i - 1] << 8 |
                                           (unsigned char)s[i]];
    n = merge_short(b, id, rank, n);
    for (size_t i = 0; i < n; i++)
        ids_push(out, id[i]);
}

int bpe_word(const struct bpe *b, struct bpe_work *w, const char *s, size_t n, struct ids *out,
             struct err *e)
{
    int32_t id = bpe_find(b, s, n);
    if (id >= 0 && b->pieces->v[id].flags & PIECE_WHOLE) {
        ids_push(out, id);
        return 0;
    }
    if (n > SHORT_WORD)
        return long_word(b, w, s, n, out, e);
    short_word(b, s, n, out);
    return 0;
}

void bpe_finish(struct bpe *b, struct piece *v, int all)
{
    b->first = mem_zero(256 * 256, sizeof *b->first);
    for (size_t left = 0; left < 256; left++)
        for (size_t right = 0; right < 256 && b->byte_id[left] >= 0; right++)
            if (b->byte_id[right] >= 0)
                b->first[left << 8 | right] = ~rank_of(b, b->byte_id[left], b->byte_id[right]);
    struct ids got = {0};
    struct bpe_work w = {0};
    for (size_t id = 0; id < b->pieces->n; id++) {
        if (!(v[id].flags & PIECE_VOCAB))
            continue;
        got.n = 0;
        if (all || (!bpe_word(b, &w, piece_bytes(b, (int32_t)id), v[id].len, &got, NULL) &&
                    got.n == 1 && got.v[0] == (int32_t)id))
            v[id].flags |= PIECE_WHOLE;
    }
    ids_free(&got);
    bpe_work_free(&w);
}
