/* memory.c - byte counters that all back ends share (struct memory in ops.h). Invariant: requested
 * <= allocated <= reserved, for current values and peaks, because each block is counted in all
 * three at once, rounded up each time. */
#include "kernels/ops.h"

size_t memory_rounded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

size_t memory_pages(size_t allocated)
{
    enum { HEADER = 64 }; /* as in kernels/host.c */
    return (allocated + HEADER + 4095) / 4096 * 4096;
}

static void raise_peak(size_t now, size_t *peak)
{
    if (now > *peak)
        *peak = now;
}

int memory_take(struct memory *m, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes), reserved = memory_pages(allocated);
    if (m->cap && (reserved > m->cap || m->reserved > m->cap - reserved))
        return -1;
    m->calls++;
    m->requested += bytes;
    m->allocated += allocated;
    m->reserved += reserved;
    m->kind[kind] += allocated;
    raise_peak(m->requested, &m->requested_peak);
    raise_peak(m->allocated, &m->allocated_peak);
    raise_peak(m->reserved, &m->reserved_peak);
    return 0;
}

void memory_give(struct memory *m, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes);
    m->requested -= bytes;
    m->allocated -= allocated;
    m->reserved -= memory_pages(allocated);
    m->kind[kind] -= allocated;
}

void memory_reset_peak(struct memory *m)
{
    m->calls = 0;
    m->arrive_ns = 0;
    m->requested_peak = m->requested;
    m->allocated_peak = m->allocated;
    m->reserved_peak = m->reserved;
}
