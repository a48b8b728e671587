/* nvidia.cuh - functions for an NVIDIA GPU: everything in kernels/cuda that is not plain CUDA C++.
 * To compile the kernels for the host, the tests replace this file by tests/emulate/emulate.cuh,
 * which implements the same functions on the CPU (PLATFORM in the Makefile).
 *
 * Rules for all kernels, so that the host can run them:
 *   - shared memory is dynamic and named by SHARED; there are no __shared__ variables;
 *   - threads of a warp do not run in step: a lane sees what another lane wrote to memory only
 *     after __syncwarp() or __syncthreads();
 *   - only launch() of runtime.h starts a kernel. */
#pragma once

#include <cuda_runtime.h>
#include <stdint.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define NAMED_RANGES
#endif

#define DEVICE static __device__ __forceinline__

enum { SHARED_UNASKED = 48 << 10 }; /* bytes of shared memory that any kernel may use; a kernel must
                                     * opt into more */
/* Percent of an SM's memory that kernels ask for as shared memory (allow_shared). SHARED_PART is
 * 132 of 228 KB on Hopper. Loads in flight occupy lines of the rest, which is the L1 cache. With
 * SHARED_ALL these lines are too few (H100, 8B, decoding: 59 % of the memory rate instead of 84
 * %). */
enum { SHARED_PART = 58, SHARED_ALL = 100 };
enum { CLUSTER_MOST = 2 }; /* blocks of a cluster that every Hopper can start */

/* type *name = the dynamic shared memory of the block, 128-byte aligned. Use it once per kernel. */
#define SHARED(type, name)                                                                      \
    extern __shared__ __align__(128) unsigned char shared_bytes[];                              \
    type *name = reinterpret_cast<type *>(shared_bytes)

/* ---- overlap with the next kernel (programmatic dependent launch, sm_90) ---- */

/* Before this call a kernel may read only weights. After it the outputs of earlier kernels are
 * complete, and their inputs may be overwritten. Every thread of every kernel calls it. */
DEVICE void wait_for_inputs(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* From this call on the next kernel may be started, where there is room. */
DEVICE void let_next_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Lets a kernel use `shared` bytes of shared memory. The limit never shrinks, because a recorded
 * graph may hold launches that need more. With `overlap` all kernels use one division of an SM's
 * memory into shared memory and L1 cache. To change the division, an SM must be empty, and then a
 * kernel could not start beside the kernel before. */
template <class... P>
cudaError_t allow_shared(void (*kernel)(P...), size_t shared, bool overlap, int part)
{
    cudaFuncAttributes now;
    cudaError_t status = cudaFuncGetAttributes(&now, kernel);
    if (status == cudaSuccess && overlap &&
        now.preferredShmemCarveout != part)
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      part);
    if (status == cudaSuccess && shared > (size_t)now.maxDynamicSharedSizeBytes)
        status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shared));
    return status;
}

/* kernel<<<grid, block, shared, stream>>>(args...). With `overlap` the kernel starts as soon as the
 * kernel before allows it (sm_90). Graphs support this since CUDA 12.3; a build with an older
 * version runs without. cluster: number of adjacent blocks that share their shared memory
 * (sm_90). */
template <class... P, class... A>
cudaError_t start_kernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream, bool overlap, int part, unsigned cluster, A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    cudaLaunchAttribute how[2] = {};
    config.attrs = how;
    if (cluster > 1) {
        how[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        how[config.numAttrs++].val.clusterDim = {cluster, 1, 1};
    }
#if CUDART_VERSION >= 12030
    if (overlap) {
        how[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        how[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
#endif
    cudaError_t status = cudaSuccess;
    if (shared > SHARED_UNASKED || overlap)
        status = allow_shared(kernel, shared, overlap, part);
    return status != cudaSuccess ? status : cudaLaunchKernelEx(&config, kernel, args...);
}

/* While this object lives, a profiler shows the host at `name` (NVTX; without a profiler it does
 * nothing). */
struct range {
#ifdef NAMED_RANGES
    explicit range(const char *name)
    {
        nvtxRangePushA(name);
    }
    ~range()
    {
        nvtxRangePop();
    }
#else
    explicit range(const char *) {}
#endif
    range(const range &) = delete;
    range &operator=(const range &) = delete;
};

/* ---- memory ---- */

/* Host functions: mark p[bytes] of a segment as in use, or as free, for later work on the stream.
 * They do nothing for a GPU; in the tests' host build they let the memory accesses of kernels be
 * checked. */
static inline void block_taken(cudaStream_t, void *, size_t) {}
static inline void block_given(cudaStream_t, void *, size_t) {}

DEVICE uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Loads 16 bytes that this pass reads only once, so they are not kept in the L1 cache. The L2 cache
 * fetches the whole 256 bytes around them, because the rest is needed next. */
DEVICE uint4 load_once(const void *p)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

/* load_once() if `valid`; else zeros, and p is not read. It has no branch, so that a lane can have
 * many loads in flight. */
DEVICE uint4 load_once_if(const void *p, bool valid)
{
    uint4 v = {0, 0, 0, 0};
    asm volatile("{ .reg .pred yes; setp.ne.u32 yes, %5, 0;\n"
                 "@yes ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(p), "r"((uint32_t)valid));
    return v;
}

/* Returns x in a way that the compiler cannot see through: so it cannot move computations with x to
 * a place before this call. */
DEVICE uint32_t here_only(uint32_t x)
{
    asm volatile("" : "+r"(x));
    return x;
}

/* Prefetches the line at p (any address) into the L2 cache. */
DEVICE void prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* Copies 4 bytes from global to shared memory asynchronously. Both addresses are multiples of 4. */
DEVICE void copy_async_word(void *to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
                 : "memory");
}

/* Copies 16 bytes from global to shared memory asynchronously. If not `valid`, it writes zeros and
 * does not read `from`. Both addresses are multiples of 16. */
DEVICE void copy_async(void *to, const void *from, bool valid)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0)
                 : "memory");
}

/* Closes a group of this thread's copies. */
DEVICE void copy_async_close(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most N of this thread's groups are in flight. Other threads see the data after a
 * barrier. */
template <int N> DEVICE void copy_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- matrix units: fragments in the lane order of the PTX manual ---- */

/* Loads four 8x8 matrices of 16-bit values. Lane i gives the address of row i % 8 of matrix i / 8,
 * a multiple of 16. load_matrices_turned() transposes each matrix. */
DEVICE void load_matrices(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

DEVICE void load_matrices_turned(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* d[16, 8] += a[16, 16] b[16, 8], bf16 with fp32 sums (m16n8k16, row.col). */
DEVICE void multiply_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* d[16, 8] += a[16, 32] b[32, 8], int8 with exact int32 sums (m16n8k32, row.col). */
DEVICE void multiply_s8(int32_t d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* ---- Hopper: bulk copies, and products of a warpgroup (sm_90a) ----
 *
 * A warpgroup is four warps whose first is a multiple of four. In code for other architectures
 * these functions do nothing; wide.cu tries a copy and a product before it uses them. */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define HOPPER(...) __VA_ARGS__
#else
#define HOPPER(...)
#endif

/* A gate (mbarrier) is 8 bytes of shared memory. Its turns are numbered 0, 1, 0, 1, ... A turn ends
 * when `count` threads have arrived and all bytes that they expect have been copied. */
DEVICE void gate_make(uint64_t *gate, uint32_t count)
{
    HOPPER(asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(gate)),
                        "r"(count)
                        : "memory"));
}

/* Called by the thread that made gates, before the barrier behind which other threads use them. */
DEVICE void gates_made(void)
{
    HOPPER(asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"));
    HOPPER(asm volatile("fence.proxy.async;" ::: "memory"));
}

/* Arrives at this gate in block `rank` of the cluster. The arrival has the default scope, the
 * block, because a release for the cluster would wait for all loads in flight. A release is not
 * needed: before a warp arrives, it has ended its products (group_wait()), and it wrote nothing
 * that the other block reads. */
DEVICE void gate_arrive(uint64_t *gate, uint32_t rank)
{
    HOPPER(asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
                        "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(
                            shared_address(gate)),
                        "r"(rank)
                        : "memory"));
}

/* Arrives, and makes the turn wait also for `bytes` bytes of bulk copies. */
DEVICE void gate_expect(uint64_t *gate, uint32_t bytes)
{
    HOPPER(asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                            shared_address(gate)),
                        "r"(bytes)
                        : "memory"));
}

/* Waits until turn `turn` has ended. On a new gate turn 1 counts as ended. Only copy_bulk() may
 * fill the memory behind a gate of another block (gate_arrive()). */
DEVICE void gate_wait(uint64_t *gate, uint32_t turn)
{
    HOPPER(asm volatile("{ .reg .pred open;\n"
                        "again: mbarrier.try_wait.parity.shared::cta.b64 "
                        "open, [%0], %1;\n"
                        "@!open bra again; }" ::"r"(shared_address(gate)),
                        "r"(turn)
                        : "memory"));
}

/* Copies bytes (a multiple of 16, as are the addresses) to the shared memory of all `cluster`
 * blocks. In each block the bytes count at the gate of this address. */
DEVICE void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *gate, uint32_t cluster)
{
    HOPPER(asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                        ".multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
                        "l"(from), "r"(bytes), "r"(shared_address(gate)),
                        "h"((uint16_t)((1u << cluster) - 1))
                        : "memory"));
}

/* All threads of the cluster wait for each other: before the first use of each other's memory, and
 * before the first block ends. */
DEVICE void cluster_meet(void)
{
    HOPPER(asm volatile("barrier.cluster.arrive.aligned;\n"
                        "barrier.cluster.wait.aligned;" ::: "memory"));
}

/* Called by all warps of a warpgroup: from here on each thread has N registers, a multiple of 8. In
 * a kernel one branch takes more registers, the other gives registers back. */
template <int N> DEVICE void registers_more(void)
{
    HOPPER(asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N)));
}

template <int N> DEVICE void registers_less(void)
{
    HOPPER(asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N)));
}

/* Must stand between other uses of the registers of d and a and group_multiply(). */
DEVICE void group_begin(void)
{
    HOPPER(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}

/* Closes a set of products. */
DEVICE void group_close(void)
{
    HOPPER(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}

/* Waits until at most N sets are unfinished. */
template <int N> DEVICE void group_wait(void)
{
    HOPPER(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"));
}

/* Must stand behind group_wait<0>(), before the sums dy are read: it tells the compiler that they
 * have changed. */
template <int N> DEVICE void group_end(float *dy)
{
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        asm volatile("" : "+f"(dy[i])::"memory");
}

#define SUMS_1(d, i) "+f"((d)[i])
#define SUMS_4(d, i) SUMS_1(d, i), SUMS_1(d, i + 1), SUMS_1(d, i + 2), SUMS_1(d, i + 3)
#define SUMS_16(d, i) SUMS_4(d, i), SUMS_4(d, i + 4), SUMS_4(d, i + 8), SUMS_4(d, i + 12)
#define SUMS_64(d, i) SUMS_16(d, i), SUMS_16(d, i + 16), SUMS_16(d, i + 32), SUMS_16(d, i + 48)
#define SUMS_96(d, i) SUMS_64(d, i), SUMS_16(d, i + 64), SUMS_16(d, i + 80)
#define SUMS_128(d, i) SUMS_64(d, i), SUMS_64(d, i + 64)
#define NAMES_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, " \
    "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, " \
    "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, " \
    "%60, %61, %62, %63"
#define NAMES_96 NAMES_64 \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, " \
    "%76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, " \
    "%88, %89, %90, %91, %92, %93, %94, %95"
#define NAMES_128 NAMES_96 \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, " \
    "%108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
    "%120, %121, %122, %123, %124, %125, %126, %127"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Defines group_multiply_N for N columns. SUMS: number of sums of a thread; then the names of the
 * operands behind them. */
#define GROUP_MULTIPLY(N, SUMS, A0, A1, A2, A3, B, ADD)                                          \
    DEVICE void group_multiply_##N(float *d, const uint32_t a[4], uint64_t b, bool add)          \
    {                                                                                            \
        asm volatile("{ .reg .pred add; setp.ne.b32 add, " ADD ", 0;\n"                          \
                     "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" NAMES_##SUMS   \
                     "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B ", add, 1, 1, 0; }"               \
                     : SUMS_##SUMS(d, 0)                                                         \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((uint32_t)add));  \
    }
GROUP_MULTIPLY(128, 64, "%64", "%65", "%66", "%67", "%68", "%69")
GROUP_MULTIPLY(192, 96, "%96", "%97", "%98", "%99", "%100", "%101")
GROUP_MULTIPLY(256, 128, "%128", "%129", "%130", "%131", "%132", "%133")
#endif

/* dy[64, N] += a[64, 16] b[16, N] by a warpgroup, or dy = if not `add`; N is 128, 192 or 256; bf16
 * with fp32 sums. Each warp has 16 rows, in the lane order of m16n8k16: elements 4 i .. 4 i + 3 of
 * dy belong to columns 8 i .. 8 i + 7. b lies in shared memory as N / 8 times 2 squares of 8
 * columns by 8 values of k. The product is asynchronous: dy and a must not be used until
 * group_wait(). */
template <int N> DEVICE void group_multiply(float *dy, const uint32_t a[4], const void *b, bool add)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    /* Squares are 128 bytes apart along k, 256 along columns; no swizzle (PTX, matrix descriptor
     * of wgmma). */
    uint64_t at = (uint64_t)(shared_address(b) >> 4 & 0x3fff) | (uint64_t)(128 >> 4) << 16 |
                  (uint64_t)(256 >> 4) << 32;
    if (N == 128)
        group_multiply_128(dy, a, at, add);
    else if (N == 192)
        group_multiply_192(dy, a, at, add);
    else
        group_multiply_256(dy, a, at, add);
#endif
}

/* ---- operations across lanes ---- */

/* Combines x of each group of WIDTH neighbouring lanes with `op`; every lane gets the result.
 * Steps: lanes WIDTH / 2 apart, then WIDTH / 4 ..., each op(own, other). */
template <int WIDTH = 32, class T, class Op> DEVICE T warp_fold(T x, Op op)
{
    for (int step = WIDTH / 2; step > 0; step /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* ---- numbers ---- */

/* Converts two floats to bf16, to nearest, ties to even; `low` goes to the lower half. NaN stays
 * NaN. */
DEVICE uint32_t bf16_pair(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* The two products of the halves of `pair` and `by`, each rounded to bf16; subnormal numbers are
 * not flushed to zero. */
DEVICE uint32_t bf16_times(uint32_t pair, uint32_t by)
{
    uint32_t r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(pair), "r"(by), "r"(0x80008000u));
    return r;
}

/* Picks four of the eight bytes low0..low3, high0..high3. Each hexadecimal digit of `which` names
 * one byte; a digit plus 8 gives eight copies of the top bit of that byte. */
DEVICE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t which)
{
    uint32_t r;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(which));
    return r;
}

/* 2^x, within two units in the last place; 0 for x = -inf. */
DEVICE float exp2_near(float x)
{
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* exp2_near() in one instruction; results below 2^-126 are 0. */
DEVICE float exp2_flush(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* log2 x, right to 2^-22 for x in (1/2, 2) and to 2^-22 |log2 x| elsewhere; -inf for 0. */
DEVICE float log2_near(float x)
{
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
