/* segments.c - the blocks of a caching allocator, and the segments from which they are cut.
 *
 * All blocks, free or used, are in one array sorted by address. So the neighbours of a block are
 * beside it, and a block is found by bisection. A block that begins a segment is marked: it is
 * never merged into the block before it. Invariants: the blocks of a segment cover it without gaps,
 * two free blocks of a segment are never neighbours, and requested <= allocated <= reserved.
 *
 * There are a few hundred blocks (the matrices of a model, the arrays of a pass), and a pass
 * allocates no block, so the time of a linear search for the best fit does not matter. With
 * memory.direct each block is a segment of its own, which is returned when the block is freed. */
#include "kernels/cuda/device/segments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum {
    MIB = 1 << 20,
    SMALL_MOST = MIB,           /* larger requests never come from small segments */
    SMALL_SEGMENT = 2 * MIB,
    MEDIUM_BELOW = 10 * MIB,    /* requests of this size or more get segments of their own */
    MEDIUM_SEGMENT = 20 * MIB,
    LARGE_GRAIN = 2 * MIB
};

struct segment_block {
    uintptr_t at;
    size_t bytes;
    size_t requested;      /* bytes requested for a block in use */
    enum memory_kind kind; /* kind of a block in use */
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

struct segments *segments_new(struct memory *memory, struct segment_source source)
{
    struct segments *segments = mem_zero(1, sizeof *segments);
    segments->memory = memory;
    segments->source = source;
    return segments;
}

static size_t rounded_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The index of the block at this address, or the index at which it would be inserted. */
static size_t place_of(const struct segments *segments, uintptr_t at)
{
    size_t low = 0, high = segments->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (segments->block[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct segments *segments, size_t i, struct segment_block block)
{
    MEM_GROW(segments->block, segments->n, segments->room);
    memmove(&segments->block[i + 1], &segments->block[i], (segments->n - i) * sizeof block);
    segments->block[i] = block;
    segments->n++;
}

static void drop(struct segments *segments, size_t i)
{
    segments->n--;
    memmove(&segments->block[i], &segments->block[i + 1],
            (segments->n - i) * sizeof *segments->block);
}

/* Merges block i + 1 into block i. */
static void merge(struct segments *segments, size_t i)
{
    segments->block[i].bytes += segments->block[i + 1].bytes;
    drop(segments, i + 1);
}

/* 1 if block i is free and is a whole segment. */
static int is_idle_segment(const struct segments *segments, size_t i)
{
    return !segments->block[i].used && segments->block[i].begins &&
           (i + 1 == segments->n || segments->block[i + 1].begins);
}

static void raise_peaks(struct memory *memory)
{
    assert(memory->requested <= memory->allocated && memory->allocated <= memory->reserved);
    if (memory->requested > memory->requested_peak)
        memory->requested_peak = memory->requested;
    if (memory->allocated > memory->allocated_peak)
        memory->allocated_peak = memory->allocated;
    if (memory->reserved > memory->reserved_peak)
        memory->reserved_peak = memory->reserved;
}

static void give_segment(struct segments *segments, size_t i)
{
    struct segment_block block = segments->block[i];
    drop(segments, i);
    segments->memory->reserved -= block.bytes;
    segments->source.give(segments->source.ctx, (void *)block.at, block.bytes);
}

void segments_trim(struct segments *segments)
{
    for (size_t i = segments->n; i-- > 0;)
        if (is_idle_segment(segments, i))
            give_segment(segments, i);
}

size_t segments_cached(const struct segments *segments)
{
    size_t sum = 0;
    for (size_t i = 0; i < segments->n; i++)
        if (is_idle_segment(segments, i))
            sum += segments->block[i].bytes;
    return sum;
}

/* The smallest free block that is large enough, among equals the first; segments->n: none. */
static size_t best_fit(const struct segments *segments, size_t bytes, int small)
{
    size_t best = segments->n;
    for (size_t i = 0; i < segments->n; i++) {
        const struct segment_block *block = &segments->block[i];
        if (!block->used && block->small == small && block->bytes >= bytes &&
            (best == segments->n || block->bytes < segments->block[best].bytes))
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

static void *get_segment(struct segments *segments, size_t bytes)
{
    const struct memory *memory = segments->memory;
    if (memory->cap && (bytes > memory->cap || memory->reserved > memory->cap - bytes))
        return NULL;
    return segments->source.get(segments->source.ctx, bytes);
}

/* Adds a new segment as one free block. Returns its index; segments->n: there is no memory. */
static size_t add_segment(struct segments *segments, size_t bytes, int small)
{
    void *room = get_segment(segments, bytes);
    if (!room && segments_cached(segments)) {
        segments_trim(segments);
        room = get_segment(segments, bytes);
    }
    if (!room)
        return segments->n;
    assert((uintptr_t)room % SEGMENT_GRAIN == 0);
    size_t i = place_of(segments, (uintptr_t)room);
    insert(segments, i, (struct segment_block){.at = (uintptr_t)room, .bytes = bytes, .begins = 1,
                                               .small = (unsigned char)small});
    segments->memory->reserved += bytes;
    return i;
}

/* Cuts free block i to `bytes` if the rest is large enough to be a block of its own. */
static void split(struct segments *segments, size_t i, size_t bytes)
{
    struct segment_block rest = segments->block[i];
    rest.at += bytes;
    rest.bytes -= bytes;
    rest.begins = 0;
    if (rest.small ? rest.bytes < SEGMENT_GRAIN : rest.bytes <= SMALL_MOST)
        return;
    segments->block[i].bytes = bytes;
    insert(segments, i + 1, rest);
}

void *segments_alloc(struct segments *segments, size_t bytes, enum memory_kind kind)
{
    if (bytes > SIZE_MAX - LARGE_GRAIN)
        return NULL;
    size_t wanted = rounded_up(bytes ? bytes : 1, SEGMENT_GRAIN);
    int small = wanted <= SMALL_MOST, direct = segments->memory->direct;
    size_t i = direct ? segments->n : best_fit(segments, wanted, small);
    if (i == segments->n)
        i = add_segment(segments, direct ? wanted : segment_bytes(wanted), small);
    if (i == segments->n)
        return NULL;
    split(segments, i, wanted);
    struct segment_block *block = &segments->block[i];
    block->used = 1;
    block->requested = bytes;
    block->kind = kind;
    segments->memory->calls++;
    segments->memory->requested += bytes;
    segments->memory->allocated += block->bytes;
    segments->memory->kind[kind] += block->bytes;
    raise_peaks(segments->memory);
    return (void *)block->at;
}

/* The index of a block in use. */
static size_t find(const struct segments *segments, const void *room)
{
    size_t i = place_of(segments, (uintptr_t)room);
    assert(i < segments->n && segments->block[i].at == (uintptr_t)room && segments->block[i].used);
    return i;
}

size_t segments_size(const struct segments *segments, const void *room)
{
    return segments->block[find(segments, room)].requested;
}

enum memory_kind segments_free(struct segments *segments, void *room)
{
    size_t i = find(segments, room);
    struct segment_block *block = &segments->block[i];
    enum memory_kind kind = block->kind;
    segments->memory->requested -= block->requested;
    segments->memory->allocated -= block->bytes;
    segments->memory->kind[kind] -= block->bytes;
    block->used = 0;
    if (i + 1 < segments->n && !block[1].used && !block[1].begins)
        merge(segments, i);
    if (i > 0 && !block->begins && !block[-1].used)
        merge(segments, i - 1);
    if (segments->memory->direct && is_idle_segment(segments, i))
        give_segment(segments, i);
    return kind;
}

void segments_delete(struct segments *segments)
{
    if (!segments)
        return;
    while (segments->n) {
        size_t last = segments->n - 1;
        while (!segments->block[last].begins)
            merge(segments, --last);
        give_segment(segments, last);
    }
    free(segments->block);
    free(segments);
}
