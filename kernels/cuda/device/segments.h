/* segments.h - a caching allocator. Blocks are cut from segments. A segment stays reserved until
 * the system or the cap refuses another segment. The rules are those of torch
 * (CUDACachingAllocator), so requested, allocated and reserved bytes can be compared with those of
 * torch:
 *
 *   sizes are rounded up to 512 bytes;
 *   requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB,
 *   larger ones are rounded up to 2 MiB and get a segment of their own;
 *   a free block is chosen by best fit, and split if the rest is large enough: 512 bytes in small
 *   segments, more than 1 MiB in the others;
 *   a freed block is merged with its free neighbours.
 *
 * The caller provides segments by two callbacks (on a device: cudaMalloc and cudaFree). The
 * allocator never reads or writes memory of a segment, so addresses may be those of a device. */
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

/* Makes an allocator that counts in *memory; memory->cap limits memory->reserved. *memory belongs
 * to the caller and must outlive the allocator. */
struct segments *segments_new(struct memory *memory, struct segment_source source);
/* Returns NULL if no cached block is large enough and the system or the cap allows no other
 * segment. */
void *segments_alloc(struct segments *segments, size_t bytes, enum memory_kind kind);
/* Frees `room`, a block of segments_alloc. Returns the kind of the block. */
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
