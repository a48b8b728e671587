/* memory.cc - memory of the device and pinned memory of the host.
 *
 * A block of device memory ends where a page without access begins, so an access behind it (rounded
 * up to 512) fails; under AddressSanitizer an access to the rounding fails too. While the device
 * does not work, all of it is inaccessible: a host that follows its pointers fails at once. */
#include <map>
#include <memory>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/emulate/sanitizers.h"
#include "tests/emulate/stream.h"

namespace emulate {

struct area {
    size_t bytes;
    unsigned char *pages; /* device memory: with a page without access before and behind */
    size_t pages_bytes;
    int device;
};
typedef std::map<const unsigned char *, struct area> areas; /* by address */
static areas on_device, pinned;
static int being_awake;

static size_t rounded_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Size of a huge page. Larger areas use huge pages, because the first access to each small page is
 * slow, and so is protect(). The system may refuse them. */
static const size_t HUGE_PAGE = 2 << 20;

static size_t page()
{
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

static void protect(const struct area &a, int how)
{
    if (mprotect(a.pages + page(), a.pages_bytes - 2 * page(), how))
        fail("mprotect has failed");
}

awake::awake()
{
    if (!being_awake++)
        for (const auto &a : on_device)
            protect(a.second, PROT_READ | PROT_WRITE);
}

awake::~awake()
{
    if (!--being_awake)
        for (const auto &a : on_device)
            protect(a.second, PROT_NONE);
}

/* 1 if p[bytes] lies in one area. */
static bool holds(const areas &all, const void *p, size_t bytes)
{
    const unsigned char *first = static_cast<const unsigned char *>(p);
    auto next = all.upper_bound(first);
    if (next == all.begin())
        return false;
    const auto &found = *--next;
    return first + bytes <= found.first + found.second.bytes;
}

void check_reach(const void *p)
{
    std::lock_guard<std::recursive_mutex> one_at_a_time(lock());
    if (p && !holds(on_device, p, 0) && !holds(pinned, p, 0))
        fail("a kernel is given %p, which is no memory of the device", p);
}

/* ---- memory of the device ---- */

static size_t capacity()
{
    return static_cast<size_t>(setting("EMULATE_MEMORY", 0x1p32));
}

static size_t taken()
{
    size_t sum = static_cast<size_t>(setting("EMULATE_TAKEN", 0));
    for (const auto &a : on_device)
        if (a.second.device == device_index())
            sum += rounded_up(a.second.bytes, 512);
    return sum;
}

/* An inaccessible area for a block of `bytes` bytes; a large one ends at the end of a huge page. */
static bool map_area(struct area *a, size_t bytes)
{
    const size_t inner = rounded_up(bytes, page());
    size_t spare = inner < HUGE_PAGE ? 0 : HUGE_PAGE;
    a->bytes = bytes;
    a->pages_bytes = inner + 2 * page();
    a->device = device_index();
    void *all = mmap(nullptr, a->pages_bytes + spare, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return false;
    a->pages = static_cast<unsigned char *>(all);
    if (spare) {
        size_t end = reinterpret_cast<uintptr_t>(a->pages) + page() + inner;
        size_t before = rounded_up(end, HUGE_PAGE) - end, behind = HUGE_PAGE - before;
        if (before)
            munmap(a->pages, before);
        a->pages += before;
        munmap(a->pages + a->pages_bytes, behind);
        madvise(a->pages, a->pages_bytes, MADV_HUGEPAGE);
    }
    return true;
}

static cudaError_t device_alloc(void **p, size_t bytes)
{
    *p = nullptr;
    if (spoils_capture())
        return cudaErrorStreamCaptureUnsupported;
    if (!bytes)
        return cudaSuccess;
    if (bytes > capacity() || rounded_up(bytes, 512) > capacity() - taken())
        return cudaErrorMemoryAllocation;
    struct area a;
    if (!map_area(&a, bytes))
        return cudaErrorMemoryAllocation;
    protect(a, PROT_READ | PROT_WRITE);
    size_t inner = a.pages_bytes - 2 * page(), room = rounded_up(bytes, 512);
    unsigned char *first = a.pages + page();
    unsigned char *block = first + inner - room;
    memset(block, 0xff, room); /* a NaN in every format, -1 as an index */
    sanitizer_close(first, inner);
    sanitizer_open(block, bytes);
    if (!being_awake)
        protect(a, PROT_NONE);
    on_device[block] = a;
    *p = block;
    return cudaSuccess;
}

cudaError_t block_taken(cudaStream_t s, void *p, size_t bytes)
{
    return enqueue(s, [=] { sanitizer_open(p, bytes); });
}

cudaError_t block_given(cudaStream_t s, void *p, size_t bytes)
{
    return enqueue(s, [=] { sanitizer_close(p, bytes); });
}

/* The bytes behind the block must not have changed. A build without AddressSanitizer checks it
 * here. */
static void check_tail(unsigned char *block, const struct area &a)
{
    sanitizer_open(block, rounded_up(a.bytes, 512));
    protect(a, PROT_READ | PROT_WRITE);
    for (size_t i = a.bytes; i < rounded_up(a.bytes, 512); i++)
        if (block[i] != 0xff)
            fail("a kernel has written behind the %zu bytes of a block", a.bytes);
}

static cudaError_t device_free(void *p)
{
    if (spoils_capture())
        return cudaErrorStreamCaptureUnsupported;
    drain_all();
    auto found = on_device.find(static_cast<unsigned char *>(p));
    if (p && found == on_device.end())
        return cudaErrorInvalidValue;
    if (!p)
        return cudaSuccess;
    struct area a = found->second;
    check_tail(static_cast<unsigned char *>(p), a);
    on_device.erase(found);
    sanitizer_open(a.pages, a.pages_bytes);
    munmap(a.pages, a.pages_bytes);
    return cudaSuccess;
}

/* ---- copies ---- */

static bool kind_fits(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    bool to_device = holds(on_device, to, bytes), from_device = holds(on_device, from, bytes);
    switch (kind) {
    case cudaMemcpyHostToHost: return !to_device && !from_device;
    case cudaMemcpyHostToDevice: return to_device && !from_device;
    case cudaMemcpyDeviceToHost: return !to_device && from_device;
    case cudaMemcpyDeviceToDevice: return to_device && from_device;
    default: return true;
    }
}

/* A copy from pageable memory reads it at the call; a copy to pageable memory is complete when the
 * call returns. With pinned memory the copy happens when the stream reaches it. */
static cudaError_t copy_async(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                              cudaStream_t s)
{
    if (!bytes)
        return cudaSuccess;
    if (!kind_fits(to, from, bytes, kind))
        return cudaErrorInvalidValue;
    bool from_pageable = !holds(on_device, from, 1) && !holds(pinned, from, bytes);
    bool to_pageable = !holds(on_device, to, 1) && !holds(pinned, to, bytes);
    if ((from_pageable || to_pageable) && stream_of(s)->capture)
        return spoils_capture(), cudaErrorStreamCaptureUnsupported;
    if (from_pageable) {
        auto kept = std::make_shared<std::vector<unsigned char>>(bytes);
        memcpy(kept->data(), from, bytes);
        enqueue(s, [=] { memcpy(to, kept->data(), bytes); });
    } else {
        enqueue(s, [=] { memmove(to, from, bytes); });
    }
    if (to_pageable)
        drain(stream_of(s));
    return cudaSuccess;
}

static cudaError_t set_async(void *p, int value, size_t bytes, cudaStream_t s)
{
    if (bytes && !holds(on_device, p, bytes))
        return cudaErrorInvalidValue;
    return enqueue(s, [=] { memset(p, value, bytes); });
}

/* ---- pinned memory ---- */

static cudaError_t host_alloc(void **p, size_t bytes)
{
    if (spoils_capture())
        return cudaErrorStreamCaptureUnsupported;
    bool large = bytes >= HUGE_PAGE;
    if (posix_memalign(p, large ? HUGE_PAGE : 512, bytes))
        return cudaErrorMemoryAllocation;
    if (large)
        madvise(*p, bytes, MADV_HUGEPAGE);
    memset(*p, 0xff, bytes);
    pinned[static_cast<unsigned char *>(*p)] = {bytes, nullptr, 0, device_index()};
    return cudaSuccess;
}

static cudaError_t host_free(void *p)
{
    drain_all();
    if (p && !pinned.erase(static_cast<unsigned char *>(p)))
        return cudaErrorInvalidValue;
    free(p);
    return cudaSuccess;
}

} // namespace emulate

using namespace emulate;

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    return call([=] { return device_alloc(p, bytes); });
}

cudaError_t cudaFree(void *p)
{
    return call([=] { return device_free(p); });
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return call([=] { return host_alloc(p, bytes); });
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
    return cudaMallocHost(p, bytes);
}

cudaError_t cudaFreeHost(void *p)
{
    return call([=] { return host_free(p); });
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    return call([=] {
        *total = capacity();
        *available = *total - taken();
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    return call([=] { return copy_async(to, from, bytes, kind, s); });
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    return call([=] { return set_async(p, value, bytes, s); });
}

/* These two wait for the default stream and the streams that block it, not for the others. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return call([=] {
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        cudaError_t status = copy_async(to, from, bytes, kind, nullptr);
        drain(stream_of(nullptr));
        return status;
    });
}

cudaError_t cudaMemset(void *p, int value, size_t bytes)
{
    return call([=] {
        if (spoils_capture())
            return cudaErrorStreamCaptureUnsupported;
        return set_async(p, value, bytes, nullptr);
    });
}
