/* stage_rows.cuh - loads rows of x into shared memory, in the order in which the lanes of a product
 * read them (x_place), and normalizes them if the product has a gain. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/tiling.h"

/* struct input (kernels/ops.h) for bf16 rows, as an argument of kernels. */
struct bf16_input {
    const uint16_t *x; /* [T, K] */
    const float *gain;
    float eps;
};

/* Values 8u .. 8u+7 of a row at any address; zeros beyond K. */
DEVICE uint4 x_unit(const uint16_t *row, uint32_t u, uint32_t K)
{
    uint32_t k = u * 8, pair[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t low = k + 2 * i < K ? row[k + 2 * i] : 0;
        pair[i] = low | (k + 2 * i + 1 < K ? (uint32_t)row[k + 2 * i + 1] << 16 : 0);
    }
    return make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

DEVICE float pair_squares(uint32_t pair)
{
    return bf16_low(pair) * bf16_low(pair) + bf16_high(pair) * bf16_high(pair);
}

/* Prefetches the gain. The gain is a weight, so this may be called before wait_for_inputs(). */
DEVICE void gain_prefetch(const float *gain, uint32_t K)
{
    for (uint32_t k = threadIdx.x * WARP; gain && k < K; k += blockDim.x * WARP)
        prefetch(gain + k); /* a line */
}

/* Gains k .. k+3; unspecified beyond K, where x is zero. */
DEVICE float4 gain_four(const float *gain, uint32_t k, uint32_t K)
{
    if (K % 4 == 0 && reinterpret_cast<uintptr_t>(gain) % 16 == 0)
        return k < K ? *reinterpret_cast<const float4 *>(gain + k) : make_float4(0, 0, 0, 0);
    return make_float4(k < K ? gain[k] : 0, k + 1 < K ? gain[k + 1] : 0,
                       k + 2 < K ? gain[k + 2] : 0, k + 3 < K ? gain[k + 3] : 0);
}

/* Normalizes a pair of bf16. The quotient is rounded before it is multiplied by the gain, and the
 * product is rounded too. */
DEVICE uint32_t pair_normed(uint32_t pair, float scale, float low_gain, float high_gain)
{
    float low = act_rounded<uint16_t>(bf16_low(pair) * scale);
    float high = act_rounded<uint16_t>(bf16_high(pair) * scale);
    return bf16_pair(low * low_gain, high * high_gain);
}

/* Normalizes values k .. k+7 of a row. */
DEVICE uint4 unit_normed(uint4 v, float scale, const float *gain, uint32_t k, uint32_t K)
{
    float4 g = gain_four(gain, k, K), h = gain_four(gain, k + 4, K);
    return make_uint4(pair_normed(v.x, scale, g.x, g.y), pair_normed(v.y, scale, g.z, g.w),
                      pair_normed(v.z, scale, h.x, h.y), pair_normed(v.w, scale, h.z, h.w));
}

/* Called by the whole block: starts the copies of the `units` words of 16 bytes of one row; word u
 * goes to to + 16 x_place(D, u). The copies do not pass through registers, which hold weights, and
 * all words of a thread are in flight at once. The thread that copied a word sees it after
 * copy_async_wait(), other threads after a barrier. */
template <enum dtype D>
DEVICE void stage_row(uint8_t *to, const uint16_t *row, uint32_t K, uint32_t units)
{
#pragma unroll 1
    for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
        uint8_t *at = to + 16 * x_place(D, u);
        if (K % 8 == 0) /* then every row starts at a multiple of 16 bytes */
            copy_async(at, row + 8 * u, 8 * u < K);
        else
            *reinterpret_cast<uint4 *>(at) = x_unit(row, u, K);
    }
}

/* Normalizes a row that stage_row() copied; a thread takes the words that it copied. shared: one
 * float a warp. A barrier must follow before other threads read the row. */
template <enum dtype D>
DEVICE void norm_row(uint8_t *to, uint32_t K, uint32_t units, const struct bf16_input &in,
                     float *shared)
{
    float sum = 0;
    for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
        uint4 v = *reinterpret_cast<const uint4 *>(to + 16 * x_place(D, u));
        sum += pair_squares(v.x) + pair_squares(v.y) + pair_squares(v.z) + pair_squares(v.w);
    }
    float scale = 1 / sqrtf(block_sum(sum, shared) / (float)K + in.eps);
#pragma unroll 1
    for (uint32_t u = threadIdx.x; u < units; u += blockDim.x) {
        uint4 *at = reinterpret_cast<uint4 *>(to + 16 * x_place(D, u));
        *at = unit_normed(*at, scale, in.gain, 8 * u, K);
    }
}

/* Called by the whole block: loads a slab, that is words first .. first + n - 1 of each of T rows
 * of x (for INT8 of the codes), with zeros beyond K. */
template <enum dtype D>
DEVICE void stage_slab(uint8_t *to, uint32_t stride, const void *rows, uint32_t ldx, uint32_t T,
                       uint32_t K, uint32_t first, uint32_t n)
{
#pragma unroll 1 /* the first weights occupy the registers */
    for (uint32_t i = threadIdx.x; i < T * n; i += blockDim.x) {
        uint32_t row = i / n, u = i % n, word = first + u;
        uint8_t *at = to + row * stride + 16 * x_place(D, u);
        if (x_coded(D))
            copy_async(at, static_cast<const int8_t *>(rows) + (size_t)row * ldx + 16 * word,
                       16 * word < ldx);
        else if (K % 8 == 0)
            copy_async(at, static_cast<const uint16_t *>(rows) + (size_t)row * ldx + 8 * word,
                       8 * word < K);
        else
            *reinterpret_cast<uint4 *>(at) =
                x_unit(static_cast<const uint16_t *>(rows) + (size_t)row * ldx, word, K);
    }
    copy_async_close();
    copy_async_wait<0>();
    __syncthreads();
}
