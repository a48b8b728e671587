/* host.c - blocks of host memory, each with a 64-byte header that stores size and kind; and copies,
 * order and time, which are simple where operations are complete when they return.
 *
 * A large block has its own mapping, begins at a huge page and asks for huge pages. NUMA: a page
 * lies on the node that touches it first, so the threads that will use a part touch it: weights
 * when they are packed (pool_run gives a thread the same panels there and in products), other
 * blocks here, so that no page fault falls into a timed pass. */
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

/* Bytes that the system gives for a large block of `bytes`. */
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
    unsigned char *p = mmap(NULL, wide, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)p % HUGE_PAGE;
    if (before)
        munmap(p, before);
    munmap(p + before + n, HUGE_PAGE - before);
    madvise(p + before, n, MADV_HUGEPAGE); /* fails where there are no huge pages; that is fine */
    return p + before;
}

static void touch(void *ctx, size_t begin, size_t end, size_t worker)
{
    (void)worker;
    for (size_t i = begin; i < end; i++)
        ((volatile unsigned char *)ctx)[i * PAGE] = 0;
}

static unsigned char *take_block(struct backend *b, size_t bytes, enum memory_kind kind)
{
    size_t room = memory_rounded(bytes) + HEADER;
    unsigned char *p;
    if (bytes < LARGE) {
        p = aligned_alloc(HEADER, room);
        return p ? memset(p, 0, room) : NULL;
    }
    p = map_large(bytes);
    if (p && kind != MEMORY_WEIGHTS)
        pool_run(b->pool, mapped(bytes) / PAGE, HUGE_PAGE / PAGE, touch, p);
    return p;
}

void *host_alloc(struct backend *b, size_t bytes, enum memory_kind kind)
{
    if (memory_rounded(bytes) < bytes || mapped(bytes) < bytes ||
        memory_take(&b->memory, bytes, kind))
        return NULL;
    unsigned char *p = take_block(b, bytes, kind);
    if (!p) {
        memory_give(&b->memory, bytes, kind);
        return NULL;
    }
    struct header h = {bytes, kind};
    memcpy(p, &h, sizeof h);
    return p + HEADER;
}

void host_free(struct backend *b, void *p)
{
    if (!p)
        return;
    unsigned char *start = (unsigned char *)p - HEADER;
    struct header h;
    memcpy(&h, start, sizeof h);
    memory_give(&b->memory, h.bytes, h.kind);
    if (h.bytes < LARGE)
        free(start);
    else
        munmap(start, mapped(h.bytes));
}

static size_t pages_of(int name)
{
    long pages = sysconf(name), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
}

void host_room(struct backend *b, size_t *available, size_t *total)
{
    const struct memory *m = &b->memory;
    int64_t left, all;
    if (resident_room("", &left, &all)) {
        *available = pages_of(_SC_AVPHYS_PAGES);
        *total = pages_of(_SC_PHYS_PAGES);
    } else {
        *available = (size_t)left;
        *total = (size_t)all;
    }
    if (m->cap && *available > m->cap - m->reserved)
        *available = m->cap - m->reserved;
}

void host_copy(struct backend *b, void *to, const void *from, size_t bytes)
{
    (void)b;
    if (bytes)
        memcpy(to, from, bytes);
}

void host_clear(struct backend *b, void *p, size_t bytes)
{
    (void)b;
    if (bytes)
        memset(p, 0, bytes);
}

void *host_mirror(struct backend *b, size_t bytes)
{
    (void)b;
    return calloc(bytes ? bytes : 1, 1);
}

void host_mirror_free(struct backend *b, void *p)
{
    (void)b;
    free(p);
}

void host_run(struct backend *b, const void *key, size_t key_bytes, void (*step)(void *ctx),
              void *ctx)
{
    (void)b, (void)key, (void)key_bytes;
    step(ctx);
}

int64_t host_event_record(struct backend *b)
{
    (void)b;
    return clock_ns();
}

int64_t host_event_wait(struct backend *b, int64_t event)
{
    (void)b;
    return event;
}

enum dtype host_act_dtype(enum dtype dtype)
{
    (void)dtype;
    return DTYPE_F32;
}
