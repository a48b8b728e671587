/* sanitizers.h - tells AddressSanitizer or ThreadSanitizer what the emulated device does; without a
 * sanitizer it does nothing.
 *
 * For ThreadSanitizer every thread of a block is a thread, and only operations that order threads
 * on a GPU order them here: __syncthreads, __syncwarp, atomics, the start and the end of a kernel.
 * So it finds two threads that use a byte of shared or global memory without order, whichever ran
 * first. */
#pragma once

#include <stddef.h>

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
enum { ADDRESSES_ARE_WATCHED = 1 };
#define sanitizer_leave __sanitizer_start_switch_fiber
#define sanitizer_arrive __sanitizer_finish_switch_fiber
#define sanitizer_close __asan_poison_memory_region
#define sanitizer_open __asan_unpoison_memory_region
#else
enum { ADDRESSES_ARE_WATCHED = 0 };
/* Switches from one stack to the other. */
static inline void sanitizer_leave(void **, const void *, size_t) {}
static inline void sanitizer_arrive(void *, const void **, size_t *) {}
/* Makes p[bytes] inaccessible (close) or accessible again (open). */
static inline void sanitizer_close(void *, size_t) {}
static inline void sanitizer_open(void *, size_t) {}
#endif

#if defined WATCH_THREADS /* SAN=thread */
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void *p, unsigned long bytes);
extern "C" void __tsan_write_range(void *p, unsigned long bytes);
/* A fiber counts as a thread: on one thread, two threads of a block would always be in order. */
enum { FIBERS_ARE_THREADS = 1 };
#define sanitizer_thread_new() __tsan_create_fiber(0)
#define sanitizer_thread_now() __tsan_get_current_fiber()
#define sanitizer_thread_go(t) __tsan_switch_to_fiber(t, __tsan_switch_to_fiber_no_sync)
#define sanitizer_tell __tsan_release
#define sanitizer_learn __tsan_acquire
#define sanitizer_reads(p, bytes) __tsan_read_range(const_cast<void *>(p), bytes)
#define sanitizer_writes __tsan_write_range
/* Marks a function in which one lane does something for other lanes. */
#define UNWATCHED __attribute__((no_sanitize("thread")))
#else
enum { FIBERS_ARE_THREADS = 0 };
#define UNWATCHED
static inline void *sanitizer_thread_new()
{
    return nullptr;
}
static inline void *sanitizer_thread_now()
{
    return nullptr;
}
static inline void sanitizer_thread_go(void *) {}
/* tell: everything that this thread did so far comes before what another thread does after its
 * learn() at the same address. */
static inline void sanitizer_tell(void *) {}
static inline void sanitizer_learn(void *) {}
/* Reports an access that is made by code which is not watched. */
static inline void sanitizer_reads(const void *, size_t) {}
static inline void sanitizer_writes(void *, size_t) {}
#endif

/* A sanitizer must know of every switch. */
enum { STACKS_ARE_WATCHED = ADDRESSES_ARE_WATCHED || FIBERS_ARE_THREADS };
