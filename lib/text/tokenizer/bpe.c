/* bpe.c - byte-pair merges of words into ids; see bpe.h.
 *
 * Rule: merge the neighbouring pair of lowest rank, the leftmost on a tie, until no pair has a
 * merge. Most words are pieces themselves: one look-up finds their id, because bpe_finish has
 * merged every piece once. A short word is scanned for its pair of lowest rank. A long word has a
 * linked list and a heap of (rank, place), so n equal letters cost O(n log n). */
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

static uint64_t hash_word(const char *text, size_t n)
{
    uint64_t h = n, x;
    for (; n >= 8; n -= 8, text += 8) {
        memcpy(&x, text, 8);
        h = mix(h ^ x);
    }
    x = 0;
    memcpy(&x, text, n);
    return mix(mix(h ^ x));
}

static size_t table_size(size_t n)
{
    size_t size = 16;
    while (size < n + n / 2)
        size *= 2;
    return size;
}

/* Most look-ups find nothing, and the tables do not fit in the L1 and L2 caches. A sieve is small
 * enough: it has SIEVE_BITS to 2*SIEVE_BITS bits for each of n entries, and the bit of each added
 * hash is 1. A bit that is 0 proves that the entry is absent; a 1 proves nothing. */
static void sieve_init(struct bpe_sieve *sieve, size_t n)
{
    size_t size = 64;
    while (size < SIEVE_BITS * n)
        size *= 2;
    sieve->bits = mem_zero(size / 64, sizeof *sieve->bits);
    sieve->mask = size - 1;
}

static void sieve_add(struct bpe_sieve *sieve, uint64_t h)
{
    size_t i = h >> 20 & sieve->mask;
    sieve->bits[i / 64] |= (uint64_t)1 << i % 64;
}

static int sieve_has(const struct bpe_sieve *sieve, uint64_t h)
{
    size_t i = h >> 20 & sieve->mask;
    return (int)(sieve->bits[i / 64] >> i % 64 & 1);
}

static const char *piece_bytes(const struct bpe *bpe, int32_t id)
{
    return bpe->pieces->bytes.data + bpe->pieces->v[id].at;
}

static void add_word(struct bpe *bpe, int32_t id)
{
    size_t len = bpe->pieces->v[id].len;
    uint64_t h = hash_word(piece_bytes(bpe, id), len);
    size_t i = h & bpe->words_mask;
    while (bpe->words[i].id >= 0)
        i = (i + 1) & bpe->words_mask;
    bpe->words[i] = (struct bpe_slot){(uint32_t)(h >> 32), id};
    sieve_add(&bpe->may_be_word, h);
    if (len > bpe->longest)
        bpe->longest = len;
    if (len == 1)
        bpe->byte_id[(unsigned char)*piece_bytes(bpe, id)] = id;
}

void bpe_init(struct bpe *bpe, const struct pieces *pieces, size_t n_merges)
{
    *bpe = (struct bpe){.pieces = pieces, .unknown = -1};
    sieve_init(&bpe->may_be_word, pieces->n);
    sieve_init(&bpe->may_be_pair, n_merges);
    size_t size = table_size(pieces->n);
    bpe->words = mem_resize(NULL, size, sizeof *bpe->words);
    bpe->words_mask = size - 1;
    for (size_t i = 0; i < size; i++)
        bpe->words[i].id = -1;
    for (size_t i = 0; i < 256; i++)
        bpe->byte_id[i] = bpe->fallback[i] = -1;
    for (size_t id = 0; id < pieces->n; id++)
        if (pieces->v[id].flags & PIECE_VOCAB)
            add_word(bpe, (int32_t)id);
    size = table_size(n_merges);
    bpe->pairs = mem_resize(NULL, size, sizeof *bpe->pairs);
    bpe->pairs_mask = size - 1;
    memset(bpe->pairs, 0xFF, size * sizeof *bpe->pairs);
    bpe->merged = mem_resize(NULL, n_merges, sizeof *bpe->merged);
}

int32_t bpe_find(const struct bpe *bpe, const char *text, size_t n)
{
    if (n > bpe->longest)
        return -1;
    uint64_t h = hash_word(text, n);
    if (!sieve_has(&bpe->may_be_word, h))
        return -1;
    for (size_t i = h & bpe->words_mask; bpe->words[i].id >= 0; i = (i + 1) & bpe->words_mask) {
        int32_t id = bpe->words[i].id;
        if (bpe->words[i].tag == (uint32_t)(h >> 32) && bpe->pieces->v[id].len == n &&
            !memcmp(piece_bytes(bpe, id), text, n))
            return id;
    }
    return -1;
}

/* Place of the pair in the table, or the free place for it. */
static size_t pair_place(const struct bpe *bpe, uint64_t key, uint64_t h)
{
    size_t i = h & bpe->pairs_mask;
    while (bpe->pairs[i] != NO_PAIR && bpe->pairs[i] >> 22 != key)
        i = (i + 1) & bpe->pairs_mask;
    return i;
}

static uint32_t rank_of(const struct bpe *bpe, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)left << 21 | (uint64_t)right, h = mix(key);
    if (!sieve_has(&bpe->may_be_pair, h))
        return NO_RANK;
    uint64_t found = bpe->pairs[pair_place(bpe, key, h)];
    if (found == NO_PAIR)
        return NO_RANK;
    uint32_t rank = (uint32_t)found & (TOKEN_RANK_LIMIT - 1);
    __builtin_prefetch(&bpe->merged[rank]); /* most pairs found here are merged later */
    return rank;
}

int bpe_add(struct bpe *bpe, int32_t left, int32_t right, int32_t merged)
{
    uint64_t key = (uint64_t)left << 21 | (uint64_t)right, h = mix(key);
    size_t i = pair_place(bpe, key, h);
    if (bpe->pairs[i] != NO_PAIR)
        return -1;
    sieve_add(&bpe->may_be_pair, h);
    bpe->pairs[i] = key << 22 | bpe->n_merges;
    bpe->merged[bpe->n_merges++] = merged;
    return 0;
}

void bpe_free(struct bpe *bpe)
{
    free(bpe->first);
    free(bpe->pairs);
    free(bpe->merged);
    free(bpe->words);
    free(bpe->may_be_word.bits);
    free(bpe->may_be_pair.bits);
    *bpe = (struct bpe){0};
}

void bpe_work_free(struct bpe_work *work)
{
    free(work->id);
    free(work->next);
    free(work->prev);
    free(work->heap);
    *work = (struct bpe_work){0};
}

/* Merges n <= SHORT_WORD symbols in id[]; rank[0..n-2]: ranks of their pairs. Returns the number of
 * symbols that are left. */
static size_t merge_short(const struct bpe *bpe, int32_t *id, uint32_t *rank, size_t n)
{
    for (;;) {
        uint32_t low = NO_RANK; /* rank and place in one number, so that no branch is needed */
        for (uint32_t i = 0; i + 1 < n; i++) {
            uint32_t found = rank[i] << PLACE_BITS | i;
            low = found < low ? found : low;
        }
        if (low >> PLACE_BITS >= TOKEN_RANK_LIMIT)
            return n;
        size_t best = low & ((1 << PLACE_BITS) - 1);
        id[best] = bpe->merged[low >> PLACE_BITS];
        n--;
        for (size_t i = best + 1; i < n; i++) {
            id[i] = id[i + 1];
            rank[i - 1] = rank[i];
        }
        if (best > 0)
            rank[best - 1] = rank_of(bpe, id[best - 1], id[best]);
        if (best + 1 < n)
            rank[best] = rank_of(bpe, id[best], id[best + 1]);
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

/* If the pair at place `left` has a merge: adds rank << 32 | left to the heap. */
static void offer(const struct bpe *bpe, const struct bpe_work *work, int32_t left, size_t *n)
{
    if (left < 0 || work->next[left] < 0)
        return;
    uint32_t rank = rank_of(bpe, work->id[left], work->id[work->next[left]]);
    if (rank != NO_RANK)
        heap_push(work->heap, n, (uint64_t)rank << 32 | (uint32_t)left);
}

static void join(const struct bpe *bpe, const struct bpe_work *work, int32_t left, uint32_t rank)
{
    int32_t right = work->next[left], after = work->next[right];
    work->id[left] = bpe->merged[rank];
    work->id[right] = -1;
    work->next[left] = after;
    if (after >= 0)
        work->prev[after] = left;
}

/* Merges n symbols in work->id. An entry of the heap is out of date if the pair at its place has
 * changed. Then the rank of the new pair differs from the entry's rank, because the new pair has a
 * longer text, and the entry is skipped. */
static void merge_long(const struct bpe *bpe, const struct bpe_work *work, size_t n)
{
    size_t heap_n = 0;
    for (size_t i = 0; i < n; i++) {
        work->prev[i] = (int32_t)i - 1;
        work->next[i] = i + 1 < n ? (int32_t)i + 1 : -1;
    }
    for (size_t i = 0; i < n; i++)
        offer(bpe, work, (int32_t)i, &heap_n);
    while (heap_n > 0) {
        uint64_t top = work->heap[0];
        work->heap[0] = work->heap[--heap_n];
        if (heap_n > 0)
            sift_down(work->heap, heap_n, 0);
        int32_t left = (int32_t)(uint32_t)top;
        uint32_t rank = (uint32_t)(top >> 32);
        if (work->id[left] < 0 || work->next[left] < 0 ||
            rank_of(bpe, work->id[left], work->id[work->next[left]]) != rank)
            continue;
        join(bpe, work, left, rank);
        offer(bpe, work, work->prev[left], &heap_n);
        offer(bpe, work, left, &heap_n);
    }
}

static void work_room(struct bpe_work *work, size_t n)
{
    if (n <= work->cap)
        return;
    work->cap = n;
    work->id = mem_resize(work->id, n, sizeof *work->id);
    work->next = mem_resize(work->next, n, sizeof *work->next);
    work->prev = mem_resize(work->prev, n, sizeof *work->prev);
    /* a merge removes one entry of the heap and adds at most two */
    work->heap = mem_resize(work->heap, 2 * n, sizeof *work->heap);
}

/* Appends to id[0..n-1] the symbols for a character that has no piece. Returns the new number of
 * symbols. */
static size_t replace_character(const struct bpe *bpe, const char *text, size_t len, int32_t *id,
                                size_t n)
{
    if (bpe->fallback[0] >= 0)
        for (size_t i = 0; i < len; i++)
            id[n++] = bpe->fallback[(unsigned char)text[i]];
    else if (bpe->unknown >= 0 && !(bpe->fuse && n > 0 && id[n - 1] == bpe->unknown))
        id[n++] = bpe->unknown;
    return n;
}

/* Fills id[] with the symbols with which merging begins, and returns their number. *replaced = 0 if
 * each byte is one symbol with a piece of its own; then their number is n. */
static size_t symbols(const struct bpe *bpe, const char *text, size_t n, int32_t *id, int *replaced)
{
    size_t len, k = 0;
    *replaced = bpe->by_character;
    for (size_t i = 0; i < n; i += len) {
        unsigned byte = (unsigned char)text[i];
        len = 1;
        if (bpe->by_character && byte >= 0x80)
            utf8_read(text + i, &len);
        id[k] = len > 1 ? bpe_find(bpe, text + i, len) : bpe->byte_id[byte];
        if (id[k] >= 0) {
            k++;
        } else {
            k = replace_character(bpe, text + i, len, id, k);
            *replaced = 1;
        }
    }
    return k;
}

static int long_word(const struct bpe *bpe, struct bpe_work *work, const char *text, size_t n,
                     struct ids *out, struct err *e)
{
    if (n > INT32_MAX)
        return err_set(e, EXIT_BAD_DATA, "text: one word of %zu bytes, at most %d", n, INT32_MAX);
    int replaced;
    work_room(work, n);
    n = symbols(bpe, text, n, work->id, &replaced);
    merge_long(bpe, work, n);
    for (int32_t i = 0; n > 0 && i >= 0; i = work->next[i])
        ids_push(out, work->id[i]);
    return 0;
}

static void short_word(const struct bpe *bpe, const char *text, size_t n, struct ids *out)
{
    int32_t id[SHORT_WORD];
    uint32_t rank[SHORT_WORD];
    int replaced;
    n = symbols(bpe, text, n, id, &replaced);
    for (size_t i = 1; i < n; i++)
        rank[i - 1] = replaced ? rank_of(bpe, id[i - 1], id[i])
                               : ~bpe->first[(unsigned)(unsigned char)text[i - 1] << 8 |
                                             (unsigned char)text[i]];
    n = merge_short(bpe, id, rank, n);
    for (size_t i = 0; i < n; i++)
        ids_push(out, id[i]);
}

int bpe_word(const struct bpe *bpe, struct bpe_work *work, const char *text, size_t n,
             struct ids *out, struct err *e)
{
    int32_t id = bpe_find(bpe, text, n);
    if (id >= 0 && bpe->pieces->v[id].flags & PIECE_WHOLE) {
        ids_push(out, id);
        return 0;
    }
    if (n > SHORT_WORD)
        return long_word(bpe, work, text, n, out, e);
    short_word(bpe, text, n, out);
    return 0;
}

void bpe_finish(struct bpe *bpe, struct piece *piece, int all)
{
    bpe->first = mem_zero(256 * 256, sizeof *bpe->first);
    for (size_t left = 0; left < 256; left++)
        for (size_t right = 0; right < 256 && bpe->byte_id[left] >= 0; right++)
            if (bpe->byte_id[right] >= 0)
                bpe->first[left << 8 | right] = ~rank_of(bpe, bpe->byte_id[left],
                                                         bpe->byte_id[right]);
    struct ids got = {0};
    struct bpe_work work = {0};
    for (size_t id = 0; id < bpe->pieces->n; id++) {
        if (!(piece[id].flags & PIECE_VOCAB))
            continue;
        got.n = 0;
        if (all ||
            (!bpe_word(bpe, &work, piece_bytes(bpe, (int32_t)id), piece[id].len, &got, NULL) &&
             got.n == 1 && got.v[0] == (int32_t)id))
            piece[id].flags |= PIECE_WHOLE;
    }
    ids_free(&got);
    bpe_work_free(&work);
}
