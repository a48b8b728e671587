/* alloc.cu - device memory: segments (segments.h) from cudaMalloc, counted, cleared in the order of
 * the stream. Invariant: a freed block may be handed out again without waiting, because its next
 * user comes later on the same stream. All recorded passes are dropped when a block is freed,
 * because they may use it (graph.h). */
#include "kernels/cuda/device/alloc.h"

#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/graph.h"
#include "kernels/cuda/device/segments.h"
#include "kernels/cuda/device/runtime.h"

static void *get_segment(void *ctx, size_t bytes)
{
    const struct device *device = (const struct device *)ctx;
    void *p = NULL;
    waiting here(device, "alloc");
    if (!CHECK_MEMORY(cudaMalloc(&p, bytes)))
        return NULL;
    block_given(device->stream, p, bytes);
    return p;
}

static void give_segment(void *ctx, void *p, size_t bytes)
{
    (void)bytes;
    waiting here((const struct device *)ctx, "free"); /* cudaFree waits for work in flight */
    CHECK(cudaFree(p));
}

struct segments *alloc_open(struct backend *backend)
{
    struct segment_source source = {get_segment, give_segment, backend->device};
    return segments_new(&backend->memory, source);
}

void *cuda_alloc(struct backend *backend, size_t bytes, enum memory_kind kind)
{
    struct device *device = device_of(backend);
    assert(!graph_recording(backend));
    void *p = segments_alloc(device->segments, bytes, kind);
    if (!p)
        return NULL;
    block_taken(device_stream(backend), p, bytes);
    CHECK(cudaMemsetAsync(p, 0, bytes, device_stream(backend)));
    return p;
}

/* Frees a block while work in flight may still use it: its next user comes later on the same
 * stream. */
static void give_block(struct backend *backend, void *p)
{
    struct device *device = device_of(backend);
    assert(!graph_recording(backend));
    block_given(device_stream(backend), p, segments_size(device->segments, p));
    segments_free(device->segments, p);
}

void cuda_free(struct backend *backend, void *p)
{
    if (!p)
        return;
    give_block(backend, p);
    graph_drop(backend);
}

/* Waits for work in flight, as cudaFree does. */
void cuda_trim(struct backend *backend)
{
    assert(!graph_recording(backend));
    segments_trim(device_of(backend)->segments);
}

void alloc_return(struct backend *backend, void *p)
{
    give_block(backend, p);
    cuda_trim(backend);
}

void cuda_room(struct backend *backend, size_t *available, size_t *total)
{
    const struct memory *memory = &backend->memory;
    size_t cached = segments_cached(device_of(backend)->segments);
    CHECK(cudaMemGetInfo(available, total));
    *available += cached;
    if (memory->cap && *available > memory->cap - (memory->reserved - cached))
        *available = memory->cap - (memory->reserved - cached);
}
