/* segments.h - a caching allocator. Blocks are cut from segments; a segment stays reserved until
 * the system or the cap refuses another one. requested, allocated and reserved mean the same as in
 * torch (CUDACachingAllocator), so the figures can be compared:
 *
 *   sizes are rounded up to 512 bytes;
 *   requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB,
 *   larger ones are rounded up to 2 MiB and get a segment of their own;
 *   a free block is chosen by best fit, and split if the rest is large enough: 512 bytes in small
 *   segments, more than 1 MiB in the others;
 *   a freed block is merged with its free neighbours.
 *
 * The caller provides segments by two callbacks, on a device cudaMalloc and cudaFree. The allocator
 * never touches memory of a segment, so addresses may be a device's. */
#pragma once

#include "kernels/ops.h"
#include "lib/base/linkage.h"

C_BEGIN

enum { SEGMENT_GRAIN = 512 };

struct segment_source {
    void *(*get)(void *ctx, size_t bytes); /* 512-byte aligned; NULL: no more memory */
    void (*give)(void *ctx, void *p, size_t bytes);
    void *ctx;
};

/* Counts in *memory, whose cap limits memory->reserved. It stays the caller's and must outlive the
 * result. */
struct segments *segments_new(struct memory *memory, struct segment_source source);
/* NULL: neither the cache nor the system nor the cap has room. */
void *segments_alloc(struct segments *segments, size_t bytes, enum memory_kind kind);
/* Frees `room`, which came from segments_alloc; returns its kind. */
enum memory_kind segments_free(struct segments *segments, void *room);
/* Bytes that were requested for `room`. */
size_t segments_size(const struct segments *segments, const void *room);
/* Returns segments without a used block to the source. */
void segments_trim(struct segments *segments);
/* Bytes that segments_trim would return. */
size_t segments_cached(const struct segments *segments);
/* Returns everything, used blocks included. */
void segments_delete(struct segments *segments);

C_END
