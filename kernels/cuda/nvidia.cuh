/* nvidia.cuh - the words of the machine: everything that kernels/cuda says to a GPU beyond plain
 * CUDA C++. The tests compile the same kernels for the host with another file in its place, which
 * gives the same words a meaning on the CPU (tests/emulate/emulate.cuh; the Makefile's PLATFORM).
 *
 * Rules that this needs:
 *   - shared memory is dynamic and named by SHARED; there are no __shared__ variables;
 *   - threads of a warp do not run in step: what one lane writes to memory another sees only after
 *     __syncwarp() or __syncthreads();
 *   - a kernel is started by launch() of runtime.h alone.
 */
#ifndef KERNELS_CUDA_NVIDIA_CUH
#define KERNELS_CUDA_NVIDIA_CUH

#include <cuda_runtime.h>
#include <stdint.h>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define NAMED_RANGES
#endif

#define DEVICE static __device__ __forceinline__

enum { SHARED_UNASKED = 48 << 10 }; /* bytes that any kernel may have; more it must opt into */
/* Percent of an SM's memory that kernels want as shared memory, all the same (allow_shared): 132 of
 * 228 KB on Hopper. Loads on their way hold lines of what remains, the first cache, and with all of
 * it as shared memory those are too few (H100, 8B, decoding: 59 % of the memory's rate in place of
 * 84 %). */
enum { SHARED_PART = 58, SHARED_ALL = 100 };

/* type *name = the dynamic shared memory of the block, 128-byte aligned. Once in a kernel. */
#define SHARED(type, name)                                                                      \
    extern __shared__ __align__(128) unsigned char shared_bytes[];                              \
    type *name = reinterpret_cast<type *>(shared_bytes)

/* ---- one kernel after the other (programmatic dependent launch, sm_90) ---- */

/* Until here a kernel may touch nothing but weights: what earlier kernels wrote is there, and what
 * they read may be overwritten, only after it. Every thread of every kernel calls it. */
DEVICE void wait_for_inputs(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* From here on the next kernel may be brought up, as far as there is room. */
DEVICE void let_next_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/* Lets a kernel have so much shared memory. Never less than before: a record may hold launches of
 * it that want more than this one. With `overlap` all kernels want the same division of an SM
 * between shared memory and first cache: to change it an SM must run empty, and then no kernel is
 * brought up beside the one ahead. */
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

/* kernel<<<grid, block, shared, stream>>>(args...). With `overlap` it is brought up as soon as the
 * kernel ahead lets it (sm_90). Graphs can hold that since CUDA 12.3; a build with an older one
 * goes without. */
template <class... P, class... A>
cudaError_t start_kernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared,
                         cudaStream_t stream, bool overlap, int part, A... args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
#if CUDART_VERSION >= 12030
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = overlap ? 1 : 0;
#else
    (void)overlap;
#endif
    cudaError_t status = cudaSuccess;
    if (shared > SHARED_UNASKED || overlap)
        status = allow_shared(kernel, shared, overlap, part);
    return status != cudaSuccess ? status : cudaLaunchKernelEx(&config, kernel, args...);
}

/* While one of these lives the host is at `name`: a profiler shows that (NVTX, which does nothing
 * without one). */
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

/* Of the host: p[bytes] of a segment are somebody's, or nobody's, for what comes later on the
 * stream. A GPU does not want to know; the tests' host build then knows what a kernel may touch. */
static inline void block_taken(cudaStream_t, void *, size_t) {}
static inline void block_given(cudaStream_t, void *, size_t) {}

DEVICE uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* 16 bytes that this pass reads once: they shall not push others out of the first cache. The rest
 * of their 256 is wanted next, and the second cache asks for it at once. */
DEVICE uint4 load_once(const void *p)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

/* The same where `valid`; else zeros, and p is not read. No branch: the loads of a lane can be many
 * in a row. */
DEVICE uint4 load_once_if(const void *p, bool valid)
{
    uint4 v = {0, 0, 0, 0};
    asm volatile("{ .reg .pred yes; setp.ne.u32 yes, %5, 0;\n"
                 "@yes ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(p), "r"((uint32_t)valid));
    return v;
}

/* Asks for the line at p (any address) to be brought into the second cache. */
DEVICE void prefetch(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

/* 16 bytes from global to shared memory on their own time; zeros unless `valid`, and then `from`
 * is not read. Both addresses are multiples of 16. */
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

/* Until at most N of this thread's groups are under way. Others see the data after a barrier. */
template <int N> DEVICE void copy_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* ---- matrix units: fragments as the PTX manual lays them over the lanes of a warp ---- */

/* Four 8x8 matrices of 16-bit values; lane i gives the address of row i % 8 of matrix i / 8, a
 * multiple of 16. `_turned` transposes each. */
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

/* ---- lanes together ---- */

/* x and that of all other lanes of each WIDTH neighbours under `op`, in every lane: lanes that are
 * WIDTH / 2 apart, then WIDTH / 4 ..., op(own, other). */
template <int WIDTH = 32, class T, class Op> DEVICE T warp_fold(T x, Op op)
{
    for (int step = WIDTH / 2; step > 0; step /= 2)
        x = op(x, __shfl_xor_sync(0xffffffffu, x, step));
    return x;
}

/* ---- numbers ---- */

/* Two floats to bf16, to nearest, ties to even: `low` in the lower half. NaN stays NaN. */
DEVICE uint32_t bf16_pair(float low, float high)
{
    uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/* Each half of `pair` times that of `by`, rounded to bf16; numbers below the normal ones count. */
DEVICE uint32_t bf16_times(uint32_t pair, uint32_t by)
{
    uint32_t r;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(pair), "r"(by), "r"(0x80008000u));
    return r;
}

/* Four of the eight bytes low0..low3, high0..high3, each named by a digit of `which`; with 8 more,
 * eight times the upper bit of that byte. */
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

/* log2 x, right to 2^-22 for x in (1/2, 2) and to 2^-22 |log2 x| elsewhere; -inf for 0. */
DEVICE float log2_near(float x)
{
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
