/* sanitizers.h - what the emulated device tells AddressSanitizer and ThreadSanitizer, or nobody.
 *
 * To ThreadSanitizer every thread of a block is a thread, and only what orders them on a GPU orders
 * them here: __syncthreads, __syncwarp, atomics, the beginning and the end of a kernel. So it finds
 * two threads that use a byte of shared or global memory without order, whatever their turns were.
 */
#ifndef TESTS_EMULATE_SANITIZERS_H
#define TESTS_EMULATE_SANITIZERS_H

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
/* From one stack to the other. */
static inline void sanitizer_leave(void **, const void *, size_t) {}
static inline void sanitizer_arrive(void *, const void **, size_t *) {}
/* Nobody may touch p[bytes], or whoever wants. */
static inline void sanitizer_close(void *, size_t) {}
static inline void sanitizer_open(void *, size_t) {}
#endif

#if defined WATCH_THREADS /* SAN=thread */
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void *p, unsigned long bytes);
extern "C" void __tsan_write_range(void *p, unsigned long bytes);
/* A fiber is a thread to it: what two threads of a block did on one would be in order. */
enum { FIBERS_ARE_THREADS = 1 };
#define sanitizer_thread_new() __tsan_create_fiber(0)
#define sanitizer_thread_now() __tsan_get_current_fiber()
#define sanitizer_thread_go(t) __tsan_switch_to_fiber(t, __tsan_switch_to_fiber_no_sync)
#define sanitizer_tell __tsan_release
#define sanitizer_learn __tsan_acquire
#define sanitizer_reads(p, bytes) __tsan_read_range(const_cast<void *>(p), bytes)
#define sanitizer_writes __tsan_write_range
/* Before a function among kernels by which one lane does something for others. */
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
/* What this thread has done so far comes before what others do once they learn of it there. */
static inline void sanitizer_tell(void *) {}
static inline void sanitizer_learn(void *) {}
/* This thread does so, in code that is not watched. */
static inline void sanitizer_reads(const void *, size_t) {}
static inline void sanitizer_writes(void *, size_t) {}
#endif

/* Somebody wants to know of every switch. */
enum { STACKS_ARE_WATCHED = ADDRESSES_ARE_WATCHED || FIBERS_ARE_THREADS };

#endif
