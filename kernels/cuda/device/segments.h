/* segments.h - a caching allocator: blocks are cut from segments, and a segment stays reserved
 * until the system or the cap says no to another one. It has torch's meaning of requested,
 * allocated and reserved (CUDACachingAllocator), so the figures can be compared:
 *
 *   sizes are rounded up to 512 bytes;
 *   requests up to 1 MiB come from segments of 2 MiB, those below 10 MiB from segments of 20 MiB,
 *   larger ones are rounded up to 2 MiB and get a segment of their own;
 *   a free block is taken by best fit, and split when what is left is worth it: 512 bytes in small
 *   segments, more than 1 MiB in the others;
 *   on free a block is merged with its free neighbours.
 *
 * Where segments come from is the caller's: two callbacks, cudaMalloc and cudaFree on a device.
 * Memory of a segment is never touched here, so an address may be a device's.
 */
#ifndef KERNELS_CUDA_DEVICE_SEGMENTS_H
#define KERNELS_CUDA_DEVICE_SEGMENTS_H

#include "kernels/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SEGMENT_GRAIN = 512 };

struct segment_source {
    void *(*get)(void *ctx, size_t bytes); /* 512-byte aligned; NULL: there is no more */
    void (*give)(void *ctx, void *p, size_t bytes);
    void *ctx;
};

/* Counts in *m, whose cap bounds m->reserved; m stays the caller's and must outlive the result. */
struct segments *segments_new(struct memory *m, struct segment_source source);
/* NULL: neither what is cached nor the system nor the cap has room for it. */
void *segments_alloc(struct segments *s, size_t bytes, enum memory_kind kind);
/* p came from segments_alloc and was not freed; returns what it was for. */
enum memory_kind segments_free(struct segments *s, void *p);
/* Bytes that p was asked for with. */
size_t segments_size(const struct segments *s, const void *p);
/* Gives segments without a block in use back to the source. */
void segments_trim(struct segments *s);
/* Bytes that segments_trim would give back. */
size_t segments_cached(const struct segments *s);
/* Gives everything back, blocks in use too. */
void segments_delete(struct segments *s);

#ifdef __cplusplus
}
#endif

#endif
