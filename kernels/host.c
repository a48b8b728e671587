/* host.c - blocks of host memory, each with a 64-byte header that stores size and kind. Copies,
 * order and time are also here; they are simple, because operations on a host are complete when
 * they return.
 *
 * A large block has its own mapping, begins at a huge page and asks for huge pages. NUMA: a page
 * lies on the node that touches it first, so the threads that will use a part should touch that
 * part first. Weights are touched when they are packed (pool_run gives a thread the same panels
 * there and in products). Other blocks are touched here, so that no page fault falls into a timed
 * pass. */
#include "kernels/host.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/resident.h"

struct header {
    size_t bytes;
    enum memory_kind kind;
};
enum { HEADER = 64, PAGE = 4096, LARGE = 1 << 20, HUGE_PAGE = 2 << 20 };

/* Bytes of the mapping for a large block of `bytes`. */
static size_t mapped(size_t bytes)
{
    return memory_pages(memory_rounded(bytes)); /* includes the header */
}

/* Zero pages from a multiple of HUGE_PAGE on. NULL: the system has no more. */
static unsigned char *map_large(size_t bytes)
{
    size_t n = mapped(bytes), wide = n + HUGE_PAGE;
    if (wide < n)
        return NULL;
    unsigned char *at = mmap(NULL, wide, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                             0);
    if (at == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)at % HUGE_PAGE;
    if (before)
        munmap(at, before);
    munmap(at + before + n, HUGE_PAGE - before);
    madvise(at + before, n, MADV_HUGEPAGE); /* a failure only means that there are no huge pages */
    return at + before;
}

static void touch(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++)
        ((volatile unsigned char *)ctx)[i * PAGE] = 0;
}

static unsigned char *take_block(struct backend *backend, size_t bytes, enum memory_kind kind)
{
    size_t room = memory_rounded(bytes) + HEADER;
    unsigned char *at;
    if (bytes < LARGE) {
        at = aligned_alloc(HEADER, room);
        return at ? memset(at, 0, room) : NULL;
    }
    at = map_large(bytes);
    if (at && kind != MEMORY_WEIGHTS)
        pool_run(backend->pool, mapped(bytes) / PAGE, HUGE_PAGE / PAGE, touch, at);
    return at;
}

void *host_alloc(struct backend *backend, size_t bytes, enum memory_kind kind)
{
    if (memory_rounded(bytes) < bytes || mapped(bytes) < bytes ||
        memory_take(&backend->memory, bytes, kind))
        return NULL;
    unsigned char *at = take_block(backend, bytes, kind);
    if (!at) {
        memory_give(&backend->memory, bytes, kind);
        return NULL;
    }
    struct header header = {bytes, kind};
    memcpy(at, &header, sizeof header);
    return at + HEADER;
}

void host_free(struct backend *backend, void *p)
{
    if (!p)
        return;
    unsigned char *start = (unsigned char *)p - HEADER;
    struct header header;
    memcpy(&header, start, sizeof header);
    memory_give(&backend->memory, header.bytes, header.kind);
    if (header.bytes < LARGE)
        free(start);
    else
        munmap(start, mapped(header.bytes));
}

static size_t pages_of(int name)
{
    long pages = sysconf(name), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
}

void host_room(struct backend *backend, size_t *available, size_t *total)
{
    const struct memory *memory = &backend->memory;
    int64_t left, all;
    if (resident_room("", &left, &all)) {
        *available = pages_of(_SC_AVPHYS_PAGES);
        *total = pages_of(_SC_PHYS_PAGES);
    } else {
        *available = (size_t)left;
        *total = (size_t)all;
    }
    if (memory->cap && *available > memory->cap - memory->reserved)
        *available = memory->cap - memory->reserved;
}

void host_copy(struct backend *backend, void *to, const void *from, size_t bytes)
{
    (void)backend;
    if (bytes)
        memcpy(to, from, bytes);
}

void host_clear(struct backend *backend, void *p, size_t bytes)
{
    (void)backend;
    if (bytes)
        memset(p, 0, bytes);
}

void *host_mirror(struct backend *backend, size_t bytes)
{
    (void)backend;
    return calloc(bytes ? bytes : 1, 1);
}

void host_mirror_free(struct backend *backend, void *p)
{
    (void)backend;
    free(p);
}

void host_run(struct backend *backend, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx)
{
    (void)backend, (void)key, (void)key_bytes;
    step(ctx);
}

int64_t host_event_record(struct backend *backend)
{
    (void)backend;
    return clock_ns();
}

int64_t host_event_wait(struct backend *backend, int64_t event)
{
    (void)backend;
    return event;
}

enum dtype host_act_dtype(enum dtype dtype)
{
    (void)dtype;
    return DTYPE_F32;
}
