/* emulate.cuh - implements the functions of kernels/cuda/nvidia.cuh, and the functions of CUDA C++
 * that kernels use, on the CPU. So the tests run every kernel, under sanitizers, without a GPU.
 *
 * The emulated device is stricter than a GPU. Lanes are never in step, and kernels do overlap
 * (block.h). Memory that was not written is NaN. A copy into shared memory happens only when it is
 * waited for. These are errors: a barrier that one thread does not reach, an unaligned address, a
 * race (sanitizers.h). */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>

#include "tests/emulate/block.h"
#include "tests/emulate/cuda_api.h"
#include "tests/emulate/sanitizers.h"
#include "tests/emulate/stream.h"

#define DEVICE [[maybe_unused]] static inline
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define SHARED(type, name) type *name = reinterpret_cast<type *>(emulate::self->block->shared)

#define threadIdx (emulate::self->index)
#define blockIdx (emulate::self->block->index)
#define blockDim (emulate::self->block->kernel->block)
#define gridDim (emulate::self->block->kernel->grid)
enum { warpSize = 32 };

/* ---- values ---- */

#define VECTORS(of, value)                                                                      \
    struct alignas(2 * sizeof(value)) of##2 {                                                   \
        value x, y;                                                                             \
    };                                                                                          \
    struct alignas(4 * sizeof(value)) of##4 {                                                   \
        value x, y, z, w;                                                                       \
    };                                                                                          \
    DEVICE of##2 make_##of##2(value x, value y)                                                 \
    {                                                                                           \
        return {x, y};                                                                          \
    }                                                                                           \
    DEVICE of##4 make_##of##4(value x, value y, value z, value w)                               \
    {                                                                                           \
        return {x, y, z, w};                                                                    \
    }
VECTORS(int, int)
VECTORS(uint, unsigned)
VECTORS(float, float)
#undef VECTORS

#define LESSER_AND_GREATER(A, B, R)                                                             \
    DEVICE R min(A a, B b)                                                                      \
    {                                                                                           \
        return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b);   \
    }                                                                                           \
    DEVICE R max(A a, B b)                                                                      \
    {                                                                                           \
        return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a);   \
    }
LESSER_AND_GREATER(int, int, int)
LESSER_AND_GREATER(unsigned, unsigned, unsigned)
LESSER_AND_GREATER(int, unsigned, unsigned)
LESSER_AND_GREATER(unsigned, int, unsigned)
LESSER_AND_GREATER(long, long, long)
LESSER_AND_GREATER(unsigned long, unsigned long, unsigned long)
LESSER_AND_GREATER(long long, long long, long long)
LESSER_AND_GREATER(unsigned long long, unsigned long long, unsigned long long)
#undef LESSER_AND_GREATER
DEVICE float min(float a, float b)
{
    return fminf(a, b);
}
DEVICE float max(float a, float b)
{
    return fmaxf(a, b);
}
DEVICE double min(double a, double b)
{
    return fmin(a, b);
}
DEVICE double max(double a, double b)
{
    return fmax(a, b);
}

namespace emulate {
/* Returns the bits of a value as another type. If the sizes differ, only the first bytes are
 * copied, and the rest is 0. */
template <class To, class From> To bits_as(From from)
{
    To to = {};
    memcpy(&to, &from, sizeof to < sizeof from ? sizeof to : sizeof from);
    return to;
}
} // namespace emulate

DEVICE uint32_t __float_as_uint(float x)
{
    return emulate::bits_as<uint32_t>(x);
}
DEVICE int __float_as_int(float x)
{
    return emulate::bits_as<int>(x);
}
DEVICE float __uint_as_float(uint32_t x)
{
    return emulate::bits_as<float>(x);
}
DEVICE float __int_as_float(int x)
{
    return emulate::bits_as<float>(x);
}
DEVICE int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
DEVICE int __ffs(int x)
{
    return __builtin_ffs(x);
}
DEVICE int __clz(int x)
{
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
DEVICE float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
/* These products and sums are never contracted: the host build has -ffp-contract=off. */
DEVICE float __fmul_rn(float a, float b)
{
    return a * b;
}
DEVICE float __fadd_rn(float a, float b)
{
    return a + b;
}
DEVICE double __dmul_rn(double a, double b)
{
    return a * b;
}
DEVICE double __dadd_rn(double a, double b)
{
    return a + b;
}
#define rsqrtf(x) (1.0f / sqrtf(x)) /* a macro, because newer C libraries have a function of that
                                     * name */

DEVICE uint32_t bf16_bits(float x)
{
    uint32_t bits = __float_as_uint(x);
    return x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

DEVICE uint32_t bf16_pair(float low, float high)
{
    return bf16_bits(high) << 16 | bf16_bits(low);
}

DEVICE uint32_t bf16_times(uint32_t pair, uint32_t by)
{
    return bf16_pair(__uint_as_float(pair << 16) * __uint_as_float(by << 16),
                     __uint_as_float(pair & 0xffff0000u) * __uint_as_float(by & 0xffff0000u));
}

DEVICE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t which)
{
    uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t byte = static_cast<uint32_t>(bytes >> (which >> 4 * i & 7) * 8 & 0xff);
        byte = which >> 4 * i & 8 ? (byte >> 7) * 0xff : byte;
        r |= byte << 8 * i;
    }
    return r;
}

DEVICE float exp2_near(float x)
{
    return exp2f(x);
}

DEVICE float exp2_flush(float x)
{
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

DEVICE float log2_near(float x)
{
    return log2f(x);
}

/* ---- operations across threads ---- */

#define WHERE emulate::place at = emulate::place::here()

DEVICE void __syncthreads(WHERE)
{
    emulate::barrier(at);
}
DEVICE void __syncwarp(uint32_t mask = 0xffffffffu, WHERE)
{
    emulate::meet(mask, "__syncwarp", at, nullptr, nullptr);
}
DEVICE void __threadfence()
{
    emulate::pause();
}
DEVICE uint32_t __ballot_sync(uint32_t mask, int yes, WHERE)
{
    return emulate::ballot(mask, yes, "__ballot_sync", at);
}
DEVICE int __any_sync(uint32_t mask, int yes, WHERE)
{
    return emulate::ballot(mask, yes, "__any_sync", at) != 0;
}
DEVICE int __all_sync(uint32_t mask, int yes, WHERE)
{
    return emulate::ballot(mask, yes, "__all_sync", at) == mask;
}

/* A shuffle reads lane `from`, within segments of `width` lanes. `lane` is the lane that reads, and
 * `end` is the end of its segment. */
#define SHUFFLE(word, by, from)                                                                 \
    template <class T> DEVICE T word(uint32_t mask, T x, by, unsigned width = 32, WHERE)        \
    {                                                                                           \
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "as on the device");                    \
        [[maybe_unused]] unsigned lane = emulate::self->rank % 32;                              \
        [[maybe_unused]] unsigned end = lane / width * width + width;                           \
        return emulate::bits_as<T>(                                                             \
            emulate::shuffle(mask, emulate::bits_as<uint64_t>(x), from, #word, at));            \
    }
SHUFFLE(__shfl_sync, int source, end - width + static_cast<unsigned>(source) % width)
SHUFFLE(__shfl_xor_sync, int bits, (lane ^ bits) < end ? lane ^ bits : lane)
SHUFFLE(__shfl_down_sync, unsigned by, lane + by < end ? lane + by : lane)
#undef SHUFFLE

namespace emulate {
template <class T, class Op> struct folded {
    T x;
    const Op *op;
};

/* This does the work of warp_fold of kernels/cuda/nvidia.cuh. The lanes meet once, where the GPU
 * has five shuffles. */
template <int WIDTH, class T, class Op> UNWATCHED void do_fold(void *brought[LANES], uint32_t)
{
    T now[LANES], next[LANES];
    auto lane = [brought](int i) { return static_cast<struct folded<T, Op> *>(brought[i]); };
    const Op &op = *lane(0)->op;
    for (int i = 0; i < LANES; i++)
        now[i] = lane(i)->x;
    for (int step = WIDTH / 2; step > 0; step /= 2) {
        for (int i = 0; i < LANES; i++)
            next[i] = op(now[i], now[i ^ step]);
        memcpy(now, next, sizeof now);
    }
    for (int i = 0; i < LANES; i++)
        lane(i)->x = now[i];
}
} // namespace emulate

template <int WIDTH = 32, class T, class Op> DEVICE T warp_fold(T x, Op op, WHERE)
{
    struct emulate::folded<T, Op> mine = {x, &op};
    emulate::meet(0xffffffffu, "warp_fold", at, &mine, emulate::do_fold<WIDTH, T, Op>);
    return mine.x;
}

/* Another thread may run before and after an atomic operation. */
template <class T> DEVICE T atomicAdd(T *p, std::common_type_t<T> x)
{
    static_assert(std::is_integral<T>::value, "sums of floats have a fixed order here");
    emulate::pause();
    return __atomic_fetch_add(p, x, __ATOMIC_ACQ_REL);
}
template <class T> DEVICE T atomicCAS(T *p, std::common_type_t<T> old, std::common_type_t<T> x)
{
    emulate::pause();
    __atomic_compare_exchange_n(p, &old, x, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return old;
}
template <class T> DEVICE T atomicMax(T *p, std::common_type_t<T> x)
{
    T old = __atomic_load_n(p, __ATOMIC_ACQUIRE);
    for (T seen = old; (seen = atomicCAS(p, old, old < x ? x : old)) != old;)
        old = seen;
    return old;
}

/* ---- overlap of kernels ---- */

DEVICE void wait_for_inputs()
{
    emulate::wait_for_inputs();
}
DEVICE void let_next_start()
{
    emulate::let_next_start();
}

/* A pointer argument must be memory that the device can reach. */
template <class T> inline void check_argument(const T &) {}
template <class T> inline void check_argument(T *const &p)
{
    emulate::check_reach(p);
}

/* A kernel gets as much shared memory as it asks for. */
enum { SHARED_PART, SHARED_ALL };
enum { CLUSTER_MOST = 1 };

template <class... P, class... A>
cudaError_t start_kernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream, bool overlap, int, unsigned cluster, A... given)
{
    if (cluster > CLUSTER_MOST)
        emulate::fail("clusters of %u blocks are not emulated", cluster);
    static_assert(sizeof...(P) == sizeof...(A), "as many arguments as the kernel has");
    static_assert(sizeof(std::tuple<P...>) <= 4096, "the arguments of a kernel fit 4 KB");
    std::tuple<P...> args = [](P... p) { return std::tuple<P...>(p...); }(given...);
    std::apply([](const P &...p) { (check_argument(p), ...); }, args);
    return emulate::start(
        stream, {grid, block, shared, overlap, [kernel, args] { std::apply(kernel, args); }});
}

struct range {
    explicit range(const char *) {}
};

/* ---- memory ---- */

using emulate::block_given; /* AddressSanitizer reports an access to memory that is not in use */
using emulate::block_taken;

template <class T> DEVICE T __ldg(const T *p)
{
    return *p;
}
template <class T> DEVICE T __ldcg(const T *p)
{
    return *p;
}
DEVICE uint32_t shared_address(const void *p)
{
    emulate::check_shared(p, 0, 1, "shared_address");
    return static_cast<uint32_t>(static_cast<const unsigned char *>(p) -
                                 emulate::self->block->shared);
}
DEVICE uint4 load_once(const void *p)
{
    emulate::check_aligned(p, 16, "load_once");
    return *static_cast<const uint4 *>(p);
}
DEVICE uint4 load_once_if(const void *p, bool valid)
{
    return valid ? load_once(p) : uint4{0, 0, 0, 0};
}
DEVICE uint32_t here_only(uint32_t x)
{
    return x;
}
DEVICE void prefetch(const void *) {}
DEVICE void copy_async(void *to, const void *from, bool valid)
{
    emulate::check_shared(to, 16, 16, "copy_async");
    emulate::check_aligned(from, 16, "copy_async");
    emulate::copy_later(to, valid ? from : nullptr, 16);
}
DEVICE void copy_async_word(void *to, const void *from)
{
    emulate::check_shared(to, 4, 4, "copy_async_word");
    emulate::check_aligned(from, 4, "copy_async_word");
    emulate::copy_later(to, from, 4);
}
DEVICE void copy_async_close()
{
    emulate::self->groups++;
}
template <int N> DEVICE void copy_async_wait()
{
    emulate::copies_finish(N);
}

/* ---- matrix units ---- */

DEVICE void load_matrices(uint32_t r[4], const void *row, WHERE)
{
    emulate::load_matrices(r, row, false, at);
}
DEVICE void load_matrices_turned(uint32_t r[4], const void *row, WHERE)
{
    emulate::load_matrices(r, row, true, at);
}
DEVICE void multiply_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], WHERE)
{
    emulate::multiply_bf16(d, a, b, at);
}
DEVICE void multiply_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2], WHERE)
{
    emulate::multiply_s8(d, a, b, at);
}
/* ---- Hopper ---- */

DEVICE void gate_make(uint64_t *gate, uint32_t count)
{
    emulate::check_shared(gate, 8, 8, "gate_make");
    emulate::gate_make(gate, count);
}
DEVICE void gates_made() {}
DEVICE void gate_arrive(uint64_t *gate, uint32_t rank)
{
    if (rank)
        emulate::fail("gate_arrive: block %u of a cluster of one", rank);
    emulate::gate_arrive(gate, 0);
}
DEVICE void cluster_meet(WHERE)
{
    emulate::barrier(at);
}
DEVICE void gate_expect(uint64_t *gate, uint32_t bytes)
{
    emulate::gate_arrive(gate, bytes);
}
DEVICE void gate_wait(uint64_t *gate, uint32_t turn)
{
    emulate::gate_wait(gate, turn);
}
DEVICE void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *gate, uint32_t)
{
    emulate::check_shared(to, bytes, 16, "copy_bulk");
    emulate::check_aligned(from, 16, "copy_bulk");
    emulate::copy_bulk(to, from, bytes, gate);
}
template <int N> DEVICE void registers_more() {}
template <int N> DEVICE void registers_less() {}
DEVICE void group_begin() {}
DEVICE void group_close() {}
template <int N> DEVICE void group_wait() {}
template <int N> DEVICE void group_end(float *) {}
template <int N>
DEVICE void group_multiply(float *d, const uint32_t a[4], const void *b, bool add, WHERE)
{
    emulate::check_shared(b, N * 32, 128, "group_multiply");
    emulate::group_multiply(N, d, a, b, add, at);
}
#undef WHERE
