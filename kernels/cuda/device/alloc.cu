/* alloc.cu - device memory: segments (segments.h) from cudaMalloc, counted, cleared in the order of
 * the stream. Invariant: a freed block may be handed out again without waiting, because its next
 * user comes later on the same stream. Recorded passes that used it are dropped (graph.h). */
#include "kernels/cuda/device/alloc.h"

#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/segments.h"
#include "kernels/cuda/device/runtime.h"

static void *get_segment(void *ctx, size_t bytes)
{
    const struct device *d = (const struct device *)ctx;
    void *p = NULL;
    waiting here(d, "alloc");
    if (!CHECK_MEMORY(cudaMalloc(&p, bytes)))
        return NULL;
    block_given(d->stream, p, bytes);
    return p;
}

static void give_segment(void *ctx, void *p, size_t bytes)
{
    (void)bytes;
    waiting here((const struct device *)ctx, "free"); /* for work in flight */
    CHECK(cudaFree(p));
}

struct segments *alloc_open(struct backend *b)
{
    struct segment_source source = {get_segment, give_segment, b->device};
    return segments_new(&b->memory, source);
}

void *cuda_alloc(struct backend *b, size_t bytes, enum memory_kind kind)
{
    struct device *d = device_of(b);
    assert(!graph_recording(b));
    void *p = segments_alloc(d->segments, bytes, kind);
    if (!p)
        return NULL;
    block_taken(device_stream(b), p, bytes);
    CHECK(cudaMemsetAsync(p, 0, bytes, device_stream(b)));
    return p;
}

/* Work in flight may still use the block: its next user comes later on the same stream. */
static void give_block(struct backend *b, void *p)
{
    struct device *d = device_of(b);
    assert(!graph_recording(b));
    block_given(device_stream(b), p, segments_size(d->segments, p));
    segments_free(d->segments, p);
}

void cuda_free(struct backend *b, void *p)
{
    if (!p)
        return;
    give_block(b, p);
    graph_drop(b);
}

/* Waits for work in flight, as cudaFree does. */
void cuda_trim(struct backend *b)
{
    assert(!graph_recording(b));
    segments_trim(device_of(b)->segments);
}

void alloc_return(struct backend *b, void *p)
{
    give_block(b, p);
    cuda_trim(b);
}

void cuda_room(struct backend *b, size_t *available, size_t *total)
{
    const struct memory *m = &b->memory;
    size_t cached = segments_cached(device_of(b)->segments);
    CHECK(cudaMemGetInfo(available, total));
    *available += cached;
    if (m->cap && *available > m->cap - (m->reserved - cached))
        *available = m->cap - (m->reserved - cached);
}
