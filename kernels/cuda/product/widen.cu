/* widen.cu - converts rows of weights to values that the library reads (slices.h), at the speed of
 * memory: a thread makes eight values at a time, and the 16-byte stores of a warp lie side by
 * side. */
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/slices.h"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/weights/format_fp8.cuh"

enum { THREADS = 256, UNITS_AHEAD = 4, BLOCKS_PER_SM = 6 };

/* Widens eight values: BF16_F32 to floats, FP8 to bf16, both exactly. */
DEVICE void widen_eight(float *to, const uint8_t *from)
{
    float values[WIDE];
    values_load<WIDE>(values, reinterpret_cast<const uint16_t *>(from));
    values_store<WIDE>(to, values);
}

DEVICE void widen_eight(uint16_t *to, const uint8_t *from)
{
    format<DTYPE_FP8>::widen(to, from);
}

/* Thread (r, k) widens values k .. k + 7 of row r. Rows of `to` have K values, a multiple of 8. */
template <class To>
__global__ void __launch_bounds__(THREADS)
widen_rows(To *to, const uint8_t *from, uint32_t stride, uint32_t K, uint32_t value_bytes)
{
    let_next_start();
    wait_for_inputs();
    uint32_t k = (blockIdx.y * THREADS + threadIdx.x) * WIDE;
    size_t row = blockIdx.x;
    if (k < K)
        widen_eight(to + row * K + k, from + row * stride + k * value_bytes);
}

/* The data that a thread reads for a unit of a block format. */
struct block_read {
    uint32_t codes;
    float scale;
    uint8_t absmax;
};

template <enum dtype D>
DEVICE struct block_read block_load(const struct operand &operand, size_t first, size_t u)
{
    const struct blocks_place at = blocks_place(first, u);
    const uint32_t codes = *reinterpret_cast<const uint32_t *>(operand.code + at.code);
    if (D != DTYPE_NF4)
        return {codes, operand.scale[at.block], 0};
    return {codes, operand.scale[at.super], operand.absmax[at.block]};
}

/* Thread i makes units i, i + (number of threads), ... of n units; a value is bf16(level *
 * absmax). */
template <enum dtype D>
static __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
widen_blocks(uint4 *to, struct operand operand, size_t first, size_t n)
{
    SHARED(float, level); /* 16 levels, and 256 of the dynamic map */
    float *dynamic = level + 16;
    let_next_start();
    for (uint32_t i = threadIdx.x; i < 256; i += THREADS)
        dynamic[i] = dynamic_level_of(i);
    if (threadIdx.x < 16)
        level[threadIdx.x] = level_of(D, threadIdx.x);
    __syncthreads();
    wait_for_inputs();
    const size_t all = (size_t)gridDim.x * THREADS;
    const float offset = D == DTYPE_NF4 ? *operand.offset : 0;
    for (size_t u = (size_t)blockIdx.x * THREADS + threadIdx.x; u < n; u += UNITS_AHEAD * all) {
        struct block_read read[UNITS_AHEAD]; /* all loads come first, so that they are in flight
                                              * together */
#pragma unroll
        for (uint32_t i = 0; i < UNITS_AHEAD; i++)
            if (u + i * all < n)
                read[i] = block_load<D>(operand, first, u + i * all);
#pragma unroll
        for (uint32_t i = 0; i < UNITS_AHEAD; i++) {
            if (u + i * all >= n)
                break;
            float a = read[i].scale;
            if (D == DTYPE_NF4)
                a = __fadd_rn(offset, __fmul_rn(dynamic[read[i].absmax], a));
            float values[BLOCKS_UNIT];
#pragma unroll
            for (uint32_t k = 0; k < BLOCKS_UNIT; k++)
                values[k] = level[blocks_code(read[i].codes, k)] * a;
            values_store<BLOCKS_UNIT>(reinterpret_cast<uint16_t *>(to + u + i * all), values);
        }
    }
}

template <enum dtype D>
static void start_blocks(const struct backend *backend, void *to, const struct product_job *j,
                      const struct operand *operand)
{
    size_t first = (size_t)operand->begin * j->K, n = (size_t)operand->rows * j->K / BLOCKS_UNIT;
    unsigned most = (unsigned)device_of(backend)->sms * BLOCKS_PER_SM;
    unsigned blocks = blocks_of(n, THREADS * UNITS_AHEAD);
    launch(backend, widen_blocks<D>, dim3(blocks < most ? blocks : most), dim3(THREADS),
           (16 + 256) * sizeof(float), static_cast<uint4 *>(to), *operand, first, n);
}

void widen(const struct backend *backend, void *to, const struct product_job *j,
           const struct operand *operand)
{
    const uint8_t *from = operand->code + (size_t)operand->begin * j->stride;
    dim3 grid(operand->rows, plan_up(j->K, WIDE * THREADS));
    if (j->dtype == DTYPE_NF4)
        start_blocks<DTYPE_NF4>(backend, to, j, operand);
    else if (j->dtype == DTYPE_NF4_F32)
        start_blocks<DTYPE_NF4_F32>(backend, to, j, operand);
    else if (j->dtype == DTYPE_FP4)
        start_blocks<DTYPE_FP4>(backend, to, j, operand);
    else if (j->dtype == DTYPE_FP8)
        launch(backend, widen_rows<uint16_t>, grid, dim3(THREADS), 0, static_cast<uint16_t *>(to),
               from, j->stride, j->K, 1u);
    else
        launch(backend, widen_rows<float>, grid, dim3(THREADS), 0, static_cast<float *>(to), from,
               j->stride, j->K, 2u);
}
