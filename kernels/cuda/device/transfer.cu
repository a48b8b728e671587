/* transfer.cu - write, read, copy, clear, mirror, fetch, and the stream of weights (transfer.h).
 *
 * All data for the device go through a ring of pinned chunks. Small writes fill the current chunk
 * one behind the other. When it is full, an event is recorded behind its last copy, and the chunk
 * is written again only after that event. A large write fills chunk after chunk on all threads
 * while earlier copies are in flight, so the bus is never idle while the threads read faster than
 * it transfers.
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
    cudaEvent_t copied[CHUNKS]; /* event: the copies out of the chunk are done */
    size_t bytes;               /* of each chunk */
    size_t current, used;       /* the chunk being filled, and its used bytes */
};

/* Pinned memory; NULL: the system has no more. */
static void *pinned(size_t bytes)
{
    void *p = NULL;
    return CHECK_MEMORY(cudaMallocHost(&p, bytes)) ? p : NULL;
}

static void give_chunks(struct staging *s)
{
    for (size_t i = 0; i < CHUNKS; i++)
        if (s->chunk[i])
            CHECK(cudaFreeHost(s->chunk[i]));
    memset(s->chunk, 0, sizeof s->chunk);
}

/* All chunks of `bytes`, or none. */
static int get_chunks(struct staging *s, size_t bytes)
{
    s->bytes = bytes;
    for (size_t i = 0; i < CHUNKS; i++)
        if (!(s->chunk[i] = (unsigned char *)pinned(bytes))) {
            give_chunks(s);
            return 0;
        }
    return 1;
}

void transfer_open(struct backend *b)
{
    struct staging *s = (struct staging *)mem_zero(1, sizeof *s);
    size_t bytes = CHUNK_MOST;
    while (!get_chunks(s, bytes))
        if ((bytes /= 2) < CHUNK_LEAST)
            err_machine(__FILE__, __LINE__, "cannot pin memory of the host (see ulimit -l)");
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK(cudaEventCreateWithFlags(&s->copied[i], cudaEventDisableTiming));
    device_of(b)->staging = s;
}

void transfer_close(struct backend *b)
{
    struct staging *s = device_of(b)->staging;
    give_chunks(s);
    for (size_t i = 0; i < CHUNKS; i++)
        CHECK(cudaEventDestroy(s->copied[i]));
    free(s);
}

/* Goes to the next chunk, and waits until it may be filled. */
static void turn(struct backend *b)
{
    struct staging *s = device_of(b)->staging;
    CHECK(cudaEventRecord(s->copied[s->current], device_stream(b)));
    s->current = (s->current + 1) % CHUNKS;
    s->used = 0;
    runtime_wait_event(b, s->copied[s->current], "write"); /* returns at once if none was
                                                            * recorded */
}

/* Room for at least `least` bytes in the current chunk, or in a new one; *room: the bytes there. */
static unsigned char *place(struct backend *b, size_t least, size_t *room)
{
    struct staging *s = device_of(b)->staging;
    if (s->bytes - s->used < least)
        turn(b);
    *room = s->bytes - s->used;
    return s->chunk[s->current] + s->used;
}

/* Sends the bytes that were written at place(). */
static void send(struct backend *b, void *to, size_t bytes)
{
    struct staging *s = device_of(b)->staging;
    CHECK(cudaMemcpyAsync(to, s->chunk[s->current] + s->used, bytes, cudaMemcpyHostToDevice,
                          device_stream(b)));
    s->used += (bytes + CHUNK_GRAIN - 1) / CHUNK_GRAIN * CHUNK_GRAIN;
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
    const struct filling *f = (const struct filling *)ctx;
    f->make(f->ctx, f->first + begin, end - begin, f->chunk + begin * f->stride);
}

/* A row larger than a chunk is made in its own memory. */
static void upload_long_rows(struct backend *b, unsigned char *to, size_t stride, size_t rows,
                             row_maker *make, void *ctx)
{
    void *row = mem_alloc(stride);
    for (size_t i = 0; i < rows; i++) {
        make(ctx, i, 1, row);
        transfer_upload(b, to + i * stride, row, stride);
    }
    free(row);
}

void transfer_upload_made(struct backend *b, void *to, size_t stride, size_t rows, row_maker *make,
                        void *ctx)
{
    unsigned char *out = (unsigned char *)to;
    if (!stride || !rows)
        return;
    if (stride > device_of(b)->staging->bytes) {
        upload_long_rows(b, out, stride, rows, make, ctx);
        return;
    }
    size_t grain = stride < PIECE ? PIECE / stride : 1;
    for (size_t first = 0, count; first < rows; first += count) {
        size_t left = rows - first, room;
        size_t least = left < grain ? left : grain;
        struct filling f = {make, ctx, place(b, least * stride, &room), first, stride};
        count = room / stride < left ? room / stride : left;
        pool_run(b->pool, count, grain, fill_part, &f);
        send(b, out + first * stride, count * stride);
    }
}

static void make_bytes(void *ctx, size_t first, size_t count, void *out)
{
    memcpy(out, (const unsigned char *)ctx + first, count);
}

void transfer_upload(struct backend *b, void *to, const void *from, size_t bytes)
{
    transfer_upload_made(b, to, 1, bytes, make_bytes, (void *)from);
}

struct padded {
    const unsigned char *from;
    size_t row_bytes, stride;
    row_looker *look;
    void *ctx;
};

static void make_padded(void *ctx, size_t first, size_t count, void *out)
{
    const struct padded *p = (const struct padded *)ctx;
    unsigned char *row = (unsigned char *)out;
    for (size_t i = 0; i < count; i++, row += p->stride) {
        memcpy(row, p->from + (first + i) * p->row_bytes, p->row_bytes);
        memset(row + p->row_bytes, 0, p->stride - p->row_bytes);
    }
    if (p->look)
        p->look(p->ctx, p->from + first * p->row_bytes, count * p->row_bytes);
}

void transfer_upload_rows(struct backend *b, void *to, size_t stride, const void *from,
                        size_t row_bytes, size_t rows, row_looker *look, void *ctx)
{
    assert(row_bytes <= stride);
    struct padded p = {(const unsigned char *)from, row_bytes, stride, look, ctx};
    if (row_bytes == stride && !look)
        transfer_upload(b, to, from, stride * rows);
    else
        transfer_upload_made(b, to, stride, rows, make_padded, &p);
}

void cuda_write(struct backend *b, void *to, const void *from, size_t bytes)
{
    transfer_upload(b, to, from, bytes);
}

void cuda_read(struct backend *b, void *to, const void *from, size_t bytes)
{
    waiting here(device_of(b), "read"); /* the copy may wait too, because `to` is not pinned */
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device_stream(b)));
    CHECK(cudaStreamSynchronize(device_stream(b)));
}

void cuda_copy(struct backend *b, void *to, const void *from, size_t bytes)
{
    CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device_stream(b)));
}

void cuda_clear(struct backend *b, void *p, size_t bytes)
{
    CHECK(cudaMemsetAsync(p, 0, bytes, device_stream(b)));
}

void *cuda_mirror(struct backend *b, size_t bytes)
{
    (void)b;
    return pinned(bytes ? bytes : 1);
}

void cuda_mirror_free(struct backend *b, void *p)
{
    if (!p)
        return;
    runtime_wait(b, "fetch"); /* a fetch may still be in flight */
    CHECK(cudaFreeHost(p));
}

void cuda_fetch(struct backend *b, void *mirror, const void *from, size_t bytes)
{
    CHECK(cudaMemcpyAsync(mirror, from, bytes, cudaMemcpyDeviceToHost, device_stream(b)));
}
