/* values.cuh - loads and stores N consecutive values of fp32 or bf16 as floats. N = 8 uses 16-byte
 * accesses, at addresses that are multiples of 16; N = 1 works at any address. */
#pragma once

#include "kernels/cuda/device.cuh"

enum { WIDE = 8 };

/* 1 if rows of n values, `stride` values of `size` bytes apart, can be read WIDE values at a
 * time. */
static inline int values_wide(const void *p, size_t n, size_t stride, size_t size)
{
    return (uintptr_t)p % 16 == 0 && n % WIDE == 0 && stride * size % 16 == 0;
}

template <int N> DEVICE void values_load(float values[N], const float *from)
{
    if constexpr (N == 1) {
        values[0] = *from;
    } else {
        for (int i = 0; i < N; i += 4) {
            float4 part = *reinterpret_cast<const float4 *>(from + i);
            values[i] = part.x;
            values[i + 1] = part.y;
            values[i + 2] = part.z;
            values[i + 3] = part.w;
        }
    }
}

template <int N> DEVICE void values_load(float values[N], const uint16_t *from)
{
    if constexpr (N == 1) {
        values[0] = bf16_float(*from);
    } else {
        uint4 part = *reinterpret_cast<const uint4 *>(from);
        const uint32_t word[4] = {part.x, part.y, part.z, part.w};
        for (int i = 0; i < 4; i++) {
            values[2 * i] = bf16_low(word[i]);
            values[2 * i + 1] = bf16_high(word[i]);
        }
    }
}

template <int N> DEVICE void values_store(float *to, const float value[N])
{
    if constexpr (N == 1) {
        *to = value[0];
    } else {
        for (int i = 0; i < N; i += 4)
            *reinterpret_cast<float4 *>(to + i) = make_float4(value[i], value[i + 1], value[i + 2],
                                                              value[i + 3]);
    }
}

template <int N> DEVICE void values_store(uint16_t *to, const float value[N])
{
    if constexpr (N == 1)
        *to = bf16_of(value[0]);
    else
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(bf16_pair(value[0], value[1]), bf16_pair(value[2], value[3]),
                       bf16_pair(value[4], value[5]), bf16_pair(value[6], value[7]));
}
