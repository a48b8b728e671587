/* device.cuh - functions for all kernels: bf16 and fp16 values, reductions over a warp and a block.
 *
 * PLATFORM is kernels/cuda/nvidia.cuh, or tests/emulate/emulate.cuh when the tests compile kernels
 * for the host. All reductions have a fixed order, so that a pass repeats bit for bit. */
#pragma once

#include PLATFORM

#include <math.h>
#include <stddef.h>

#include "kernels/levels.h"

enum { WARP = 32 };
#define EVERY_LANE 0xffffffffu

DEVICE float bf16_float(uint16_t h)
{
    return __uint_as_float((uint32_t)h << 16);
}

/* The two bf16 values in a word, as floats. */
DEVICE float bf16_low(uint32_t pair)
{
    return __uint_as_float(pair << 16);
}

DEVICE float bf16_high(uint32_t pair)
{
    return __uint_as_float(pair & 0xffff0000u);
}

DEVICE uint16_t bf16_of(float x)
{
    return (uint16_t)bf16_pair(x, 0.0f);
}

/* An activation of type A as a float, and stored. Kernels are templates over A = float or uint16_t
 * (bf16). */
DEVICE float act_float(float x)
{
    return x;
}

DEVICE float act_float(uint16_t x)
{
    return bf16_float(x);
}

DEVICE void act_put(float *to, float x)
{
    *to = x;
}

DEVICE void act_put(uint16_t *to, float x)
{
    *to = bf16_of(x);
}

/* A value stored as fp16; a plain uint16_t is bf16. */
struct half16 {
    uint16_t bits;
};

DEVICE void act_put(half16 *to, float x)
{
    to->bits = f16_of(x);
}

/* x as it is after being stored as an A. */
template <class A> DEVICE float act_rounded(float x)
{
    A kept;
    act_put(&kept, x);
    return act_float(kept);
}

DEVICE float warp_sum(float x)
{
    return warp_fold(x, [](float a, float b) { return a + b; });
}

DEVICE float warp_max(float x)
{
    return warp_fold(x, [](float a, float b) { return fmaxf(a, b); });
}

/* Sum over the block, returned to every thread. shared: blockDim.x / 32 floats that no thread uses
 * before the next barrier. blockDim.x is a multiple of 32, at most 1024. */
DEVICE float block_sum(float x, float *shared)
{
    unsigned warps = blockDim.x / WARP;
    x = warp_sum(x);
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < warps; i++)
        sum += shared[i];
    return sum;
}

/* The largest x of the block, returned to every thread. shared: as for block_sum(). */
DEVICE float block_max(float x, float *shared)
{
    x = warp_max(x);
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / WARP; i++)
        x = fmaxf(x, shared[i]);
    return x;
}

/* The sum of x over the lanes below this one in the warp. */
DEVICE uint32_t lanes_below(uint32_t x)
{
    uint32_t lane = threadIdx.x % WARP, sum = x;
    for (uint32_t by = 1; by < WARP; by *= 2) {
        uint32_t other = __shfl_sync(EVERY_LANE, sum, (int)((lane - by) % WARP));
        sum += lane >= by ? other : 0;
    }
    return sum - x;
}

/* The number of threads with yes below this one in the block. *all = their number in the whole
 * block. shared: as for block_sum(). */
DEVICE int block_below(bool yes, int *all, int *shared)
{
    unsigned votes = __ballot_sync(EVERY_LANE, yes), lane = threadIdx.x % WARP;
    __syncthreads();
    if (lane == 0)
        shared[threadIdx.x / WARP] = __popc(votes);
    __syncthreads();
    int below = __popc(votes & ((1u << lane) - 1));
    *all = 0;
    for (unsigned i = 0; i < blockDim.x / WARP; i++) {
        below += i < threadIdx.x / WARP ? shared[i] : 0;
        *all += shared[i];
    }
    return below;
}

/* Returns true for all threads of the block that is the last of `blocks` blocks to arrive at this
 * counter; all that the other blocks wrote before they arrived is then complete. The counter is 0
 * before the first arrival and after the last. */
DEVICE bool last_to_arrive(unsigned *arrived, int blocks, int *shared)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        bool last = atomicAdd(arrived, 1u) + 1 == (unsigned)blocks;
        if (last)
            *arrived = 0;
        *shared = last;
        __threadfence();
    }
    __syncthreads();
    return *shared != 0;
}
