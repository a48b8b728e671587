/* transfer.cu - write, read, copy, clear, mirror, fetch, and the stream of weights (transfer.h).
 *
 * All data for the device go through a ring of pinned chunks. Small writes fill the current chunk
 * one behind the other. When it is full, an event is recorded behind its last copy, and the chunk
 * is written again only after that event. A large write fills chunk after chunk on all threads
 * while earlier copies are in flight. So the bus is never idle if the threads read faster than the
 * bus transfers.
 *
 * Everything runs on one stream, so the order of calls is the order on the device. */
#include "kernels/cuda/device/transfer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/graph.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

enum {
    CHUNKS = 4,
    CHUNK_MOST = 8 << 20,
    CHUNK_LEAST = 64 << 10,
    PIECE = 256 << 10, /* bytes that a thread fills at a time */
    CHUNK_GRAIN = 256  /* alignment of a write in its chunk */
};

struct staging {
    unsigned char *chunk[CHUNKS];
    cudaEvent_t copied[CHUNKS]; /* recorded behind the last copy out of the chunk */
    size_t bytes;               /* bytes of each chunk */
    size_t current, used;       /* current chunk, and number of its bytes in use */
};

/* Returns pinned memory; NULL: the system pins no more. */
static void *pinned(size_t bytes)
{
    void *p = NULL;
    return CHECK_MEMORY(cudaMallocHost(&p, bytes)) ? p : NULL;
}

static void give_chunks(struct staging *staging)
{
    for (size_t i = 0; i < CHUNKS; i++)
        if (staging->chunk[i])
            CHECK(cudaFreeHost(staging->chunk[i]));
    memset(staging->chunk, 0, sizeof staging->chunk);
}

/* Pins all chunks with `bytes` bytes each, or none. Returns 0 for none. */
static int get_chunks(struct staging *staging, size_t bytes)
{
    staging->bytes = bytes;
    for (size_t i = 0; i < CHUNKS; i++)
        if (!(staging->chunk[i] = (unsigned char *)pinned(bytes))) {
            give_chunks(staging);
            return 0;
        }
    return 1;
}

void transfer_open(struct backend *backend)
{
    struct staging *staging = (struct staging *)mem_zero(1, sizeof *staging);
    size_t bytes = CHUNK_MOST;
    while (!get_chunks(staging, bytes))
        if ((bytes /= 2) < CHUNK_LEAST)
            err_machine(__FILE__, __LINE__, "cannot pin memory of the host (see ulimit -l)");
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK(cudaEventCreateWithFlags(&staging->copied[i], cudaEventDisableTiming));
    device_of(backend)->staging = staging;
}

void transfer_close(struct backend *backend)
{
    struct staging *staging = device_of(backend)->staging;
    give_chunks(staging);
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK(cudaEventDestroy(staging->copied[i]));
    free(staging);
}

/* Goes to the next chunk, and waits until it may be filled. */
static void turn(struct backend *backend)
{
    struct staging *staging = device_of(backend)->staging;
    CHECK(cudaEventRecord(staging->copied[staging->current], device_stream(backend)));
    staging->current = (staging->current + 1) % CHUNKS;
    staging->used = 0;
    runtime_wait_event(backend, staging->copied[staging->current],
                       "write"); /* returns at once if the event was never recorded */
}

/* Returns memory for at least `least` bytes, in the current chunk or in the next one. *room = the
 * free bytes there. */
static unsigned char *place(struct backend *backend, size_t least, size_t *room)
{
    struct staging *staging = device_of(backend)->staging;
    if (staging->bytes - staging->used < least)
        turn(backend);
    *room = staging->bytes - staging->used;
    return staging->chunk[staging->current] + staging->used;
}

/* Sends the bytes that were written at place(). */
static void send(struct backend *backend, void *to, size_t bytes)
{
    struct staging *staging = device_of(backend)->staging;
    CHECK(cudaMemcpyAsync(to, staging->chunk[staging->current] + staging->used, bytes,
                          cudaMemcpyHostToDevice, device_stream(backend)));
    staging->used += (bytes + CHUNK_GRAIN - 1) / CHUNK_GRAIN * CHUNK_GRAIN;
}

struct filling {
    row_maker *make;
    void *ctx;
    unsigned char *chunk;
    size_t first, stride;
};

static void fill_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    const struct filling *filling = (const struct filling *)ctx;
    filling->make(filling->ctx, filling->first + begin, end - begin,
                  filling->chunk + begin * filling->stride);
}

/* Uploads rows that are larger than a chunk: each row is made in temporary memory. */
static void upload_long_rows(struct backend *backend, unsigned char *to, size_t stride, size_t rows,
                             row_maker *make, void *ctx)
{
    void *row = mem_alloc(stride);
    for (size_t i = 0; i < rows; i++) {
        make(ctx, i, 1, row);
        transfer_upload(backend, to + i * stride, row, stride);
    }
    free(row);
}

void transfer_upload_made(struct backend *backend, void *to, size_t stride, size_t rows,
                          row_maker *make, void *ctx)
{
    unsigned char *out = (unsigned char *)to;
    if (!stride || !rows)
        return;
    if (stride > device_of(backend)->staging->bytes) {
        upload_long_rows(backend, out, stride, rows, make, ctx);
        return;
    }
    size_t grain = stride < PIECE ? PIECE / stride : 1;
    for (size_t first = 0, count; first < rows; first += count) {
        size_t left = rows - first, room;
        size_t least = left < grain ? left : grain;
        struct filling filling = {make, ctx, place(backend, least * stride, &room), first, stride};
        count = room / stride < left ? room / stride : left;
        pool_run(backend->pool, count, grain, fill_part, &filling);
        send(backend, out + first * stride, count * stride);
    }
}

static void make_bytes(void *ctx, size_t first, size_t count, void *out)
{
    memcpy(out, (const unsigned char *)ctx + first, count);
}

void transfer_upload(struct backend *backend, void *to, const void *from, size_t bytes)
{
    transfer_upload_made(backend, to, 1, bytes, make_bytes, (void *)from);
}

struct padded {
    const unsigned char *from;
    size_t row_bytes, stride;
    row_looker *look;
    void *ctx;
};

static void make_padded(void *ctx, size_t first, size_t count, void *out)
{
    const struct padded *padded = (const struct padded *)ctx;
    unsigned char *row = (unsigned char *)out;
    for (size_t i = 0; i < count; i++, row += padded->stride) {
        memcpy(row, padded->from + (first + i) * padded->row_bytes, padded->row_bytes);
        memset(row + padded->row_bytes, 0, padded->stride - padded->row_bytes);
    }
    if (padded->look)
        padded->look(padded->ctx, padded->from + first * padded->row_bytes,
                     count * padded->row_bytes);
}

void transfer_upload_rows(struct backend *backend, void *to, size_t stride, const void *from,
                        size_t row_bytes, size_t rows, row_looker *look, void *ctx)
{
    assert(row_bytes <= stride);
    struct padded padded = {(const unsigned char *)from, row_bytes, stride, look, ctx};
    if (row_bytes == stride && !look)
        transfer_upload(backend, to, from, stride * rows);
    else
        transfer_upload_made(backend, to, stride, rows, make_padded, &padded);
}

void cuda_write(struct backend *backend, void *to, const void *from, size_t bytes)
{
    transfer_upload(backend, to, from, bytes);
}

void cuda_read(struct backend *backend, void *to, const void *from, size_t bytes)
{
    waiting here(device_of(backend),
                 "read"); /* from here on, because the copy may wait too if `to` is not pinned */
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device_stream(backend)));
    CHECK(cudaStreamSynchronize(device_stream(backend)));
}

void cuda_copy(struct backend *backend, void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device_stream(backend)));
}

void cuda_clear(struct backend *backend, void *p, size_t bytes)
{
    CHECK(cudaMemsetAsync(p, 0, bytes, device_stream(backend)));
}

void *cuda_mirror(struct backend *backend, size_t bytes)
{
    (void)backend;
    return pinned(bytes ? bytes : 1);
}

void cuda_mirror_free(struct backend *backend, void *p)
{
    if (!p)
        return;
    runtime_wait(backend, "fetch"); /* a fetch may still be in flight */
    CHECK(cudaFreeHost(p));
}

void cuda_fetch(struct backend *backend, void *mirror, const void *from, size_t bytes)
{
    CHECK(cudaMemcpyAsync(mirror, from, bytes, cudaMemcpyDeviceToHost, device_stream(backend)));
}
