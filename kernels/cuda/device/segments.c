/* segments.c - the blocks of a caching allocator, and the segments from which they are cut.
 *
 * All blocks, free or used, are in one array sorted by address. So the neighbours of a block are
 * beside it, and a block is found by bisection. A block that begins a segment is marked: it is
 * never merged into the block before it. Invariants: the blocks of a segment cover it without gaps,
 * two free blocks of a segment are never neighbours, and requested <= allocated <= reserved.
 *
 * There are a few hundred blocks (the matrices of a model, the arrays of a pass), and a pass
 * allocates none, so a linear search for the best fit costs nothing that matters. With
 * memory.direct a block is a segment, and is returned with it. */
#include "kernels/cuda/device/segments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum {
    MIB = 1 << 20,
    SMALL_MOST = MIB,           /* larger requests never come from small segments */
    SMALL_SEGMENT = 2 * MIB,
    MEDIUM_BELOW = 10 * MIB,    /* larger requests get their own segments */
    MEDIUM_SEGMENT = 20 * MIB,
    LARGE_GRAIN = 2 * MIB
};

struct segment_block {
    uintptr_t at;
    size_t bytes;
    size_t requested;      /* for a block in use */
    enum memory_kind kind; /* for a block in use */
    unsigned char used;
    unsigned char begins;  /* 1: the first block of a segment */
    unsigned char small;   /* 1: in a small segment */
};

struct segments {
    struct memory *memory;
    struct segment_source source;
    struct segment_block *block; /* [n], by address */
    size_t n, room;
};

struct segments *segments_new(struct memory *m, struct segment_source source)
{
    struct segments *s = mem_zero(1, sizeof *s);
    s->memory = m;
    s->source = source;
    return s;
}

static size_t rounded_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The index at which a block of this address is, or would be. */
static size_t place_of(const struct segments *s, uintptr_t at)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->block[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct segments *s, size_t i, struct segment_block b)
{
    MEM_GROW(s->block, s->n, s->room);
    memmove(&s->block[i + 1], &s->block[i], (s->n - i) * sizeof b);
    s->block[i] = b;
    s->n++;
}

static void drop(struct segments *s, size_t i)
{
    s->n--;
    memmove(&s->block[i], &s->block[i + 1], (s->n - i) * sizeof *s->block);
}

/* Merges block i + 1 into block i. */
static void merge(struct segments *s, size_t i)
{
    s->block[i].bytes += s->block[i + 1].bytes;
    drop(s, i + 1);
}

/* 1 if block i is a whole free segment. */
static int is_idle_segment(const struct segments *s, size_t i)
{
    return !s->block[i].used && s->block[i].begins &&
           (i + 1 == s->n || s->block[i + 1].begins);
}

static void raise_peaks(struct memory *m)
{
    assert(m->requested <= m->allocated && m->allocated <= m->reserved);
    if (m->requested > m->requested_peak)
        m->requested_peak = m->requested;
    if (m->allocated > m->allocated_peak)
        m->allocated_peak = m->allocated;
    if (m->reserved > m->reserved_peak)
        m->reserved_peak = m->reserved;
}

static void give_segment(struct segments *s, size_t i)
{
    struct segment_block b = s->block[i];
    drop(s, i);
    s->memory->reserved -= b.bytes;
    s->source.give(s->source.ctx, (void *)b.at, b.bytes);
}

void segments_trim(struct segments *s)
{
    for (size_t i = s->n; i-- > 0;)
        if (is_idle_segment(s, i))
            give_segment(s, i);
}

size_t segments_cached(const struct segments *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_idle_segment(s, i))
            sum += s->block[i].bytes;
    return sum;
}

/* The smallest free block that is large enough, among equals the first; s->n: none. */
static size_t best_fit(const struct segments *s, size_t bytes, int small)
{
    size_t best = s->n;
    for (size_t i = 0; i < s->n; i++) {
        const struct segment_block *b = &s->block[i];
        if (!b->used && b->small == small && b->bytes >= bytes &&
            (best == s->n || b->bytes < s->block[best].bytes))
            best = i;
    }
    return best;
}

static size_t segment_bytes(size_t bytes)
{
    if (bytes <= SMALL_MOST)
        return SMALL_SEGMENT;
    return bytes < MEDIUM_BELOW ? MEDIUM_SEGMENT : rounded_up(bytes, LARGE_GRAIN);
}

static void *get_segment(struct segments *s, size_t bytes)
{
    const struct memory *m = s->memory;
    if (m->cap && (bytes > m->cap || m->reserved > m->cap - bytes))
        return NULL;
    return s->source.get(s->source.ctx, bytes);
}

/* Adds a new segment as one free block. Returns its index; s->n: there is no memory. */
static size_t add_segment(struct segments *s, size_t bytes, int small)
{
    void *p = get_segment(s, bytes);
    if (!p && segments_cached(s)) {
        segments_trim(s);
        p = get_segment(s, bytes);
    }
    if (!p)
        return s->n;
    assert((uintptr_t)p % SEGMENT_GRAIN == 0);
    size_t i = place_of(s, (uintptr_t)p);
    insert(s, i, (struct segment_block){.at = (uintptr_t)p, .bytes = bytes, .begins = 1,
                                        .small = (unsigned char)small});
    s->memory->reserved += bytes;
    return i;
}

/* Splits a free block when the rest is large enough to keep. */
static void split(struct segments *s, size_t i, size_t bytes)
{
    struct segment_block rest = s->block[i];
    rest.at += bytes;
    rest.bytes -= bytes;
    rest.begins = 0;
    if (rest.small ? rest.bytes < SEGMENT_GRAIN : rest.bytes <= SMALL_MOST)
        return;
    s->block[i].bytes = bytes;
    insert(s, i + 1, rest);
}

void *segments_alloc(struct segments *s, size_t bytes, enum memory_kind kind)
{
    if (bytes > SIZE_MAX - LARGE_GRAIN)
        return NULL;
    size_t wanted = rounded_up(bytes ? bytes : 1, SEGMENT_GRAIN);
    int small = wanted <= SMALL_MOST, direct = s->memory->direct;
    size_t i = direct ? s->n : best_fit(s, wanted, small);
    if (i == s->n)
        i = add_segment(s, direct ? wanted : segment_bytes(wanted), small);
    if (i == s->n)
        return NULL;
    split(s, i, wanted);
    struct segment_block *b = &s->block[i];
    b->used = 1;
    b->requested = bytes;
    b->kind = kind;
    s->memory->calls++;
    s->memory->requested += bytes;
    s->memory->allocated += b->bytes;
    s->memory->kind[kind] += b->bytes;
    raise_peaks(s->memory);
    return (void *)b->at;
}

/* The index of a block in use. */
static size_t find(const struct segments *s, const void *p)
{
    size_t i = place_of(s, (uintptr_t)p);
    assert(i < s->n && s->block[i].at == (uintptr_t)p && s->block[i].used);
    return i;
}

size_t segments_size(const struct segments *s, const void *p)
{
    return s->block[find(s, p)].requested;
}

enum memory_kind segments_free(struct segments *s, void *p)
{
    size_t i = find(s, p);
    struct segment_block *b = &s->block[i];
    enum memory_kind kind = b->kind;
    s->memory->requested -= b->requested;
    s->memory->allocated -= b->bytes;
    s->memory->kind[kind] -= b->bytes;
    b->used = 0;
    if (i + 1 < s->n && !b[1].used && !b[1].begins)
        merge(s, i);
    if (i > 0 && !b->begins && !b[-1].used)
        merge(s, i - 1);
    if (s->memory->direct && is_idle_segment(s, i))
        give_segment(s, i);
    return kind;
}

void segments_delete(struct segments *s)
{
    if (!s)
        return;
    while (s->n) {
        size_t last = s->n - 1;
        while (!s->block[last].begins)
            merge(s, --last);
        give_segment(s, last);
    }
    free(s->block);
    free(s);
}
