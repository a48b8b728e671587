/* memory.c - byte counters that all back ends share (struct memory in ops.h). Invariant: requested
 * <= allocated <= reserved, for current values and peaks, because each block is counted in all
 * three counters at once, with bytes rounded up from one counter to the next. */
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

int memory_take(struct memory *memory, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes), reserved = memory_pages(allocated);
    if (memory->cap && (reserved > memory->cap || memory->reserved > memory->cap - reserved))
        return -1;
    memory->calls++;
    memory->requested += bytes;
    memory->allocated += allocated;
    memory->reserved += reserved;
    memory->kind[kind] += allocated;
    raise_peak(memory->requested, &memory->requested_peak);
    raise_peak(memory->allocated, &memory->allocated_peak);
    raise_peak(memory->reserved, &memory->reserved_peak);
    return 0;
}

void memory_give(struct memory *memory, size_t bytes, enum memory_kind kind)
{
    size_t allocated = memory_rounded(bytes);
    memory->requested -= bytes;
    memory->allocated -= allocated;
    memory->reserved -= memory_pages(allocated);
    memory->kind[kind] -= allocated;
}

void memory_reset_peak(struct memory *memory)
{
    memory->calls = 0;
    memory->arrive_ns = 0;
    memory->requested_peak = memory->requested;
    memory->allocated_peak = memory->allocated;
    memory->reserved_peak = memory->reserved;
}
