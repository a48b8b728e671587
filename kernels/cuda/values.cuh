/* values.cuh - N consecutive values of fp32 or bf16 as floats: 8 by 16-byte accesses, at addresses
 * that are multiples of 16, or 1 at any address. */
#pragma once

#include "kernels/cuda/device.cuh"

enum { WIDE = 8 };

/* 1 if rows of n values, `stride` values of `size` bytes apart, can be read WIDE values at a
 * time. */
static inline int values_wide(const void *p, size_t n, size_t stride, size_t size)
{
    return (uintptr_t)p % 16 == 0 && n % WIDE == 0 && stride * size % 16 == 0;
}

template <int N> DEVICE void values_load(float v[N], const float *from)
{
    if constexpr (N == 1) {
        v[0] = *from;
    } else {
        for (int i = 0; i < N; i += 4) {
            float4 part = *reinterpret_cast<const float4 *>(from + i);
            v[i] = part.x;
            v[i + 1] = part.y;
            v[i + 2] = part.z;
            v[i + 3] = part.w;
        }
    }
}

template <int N> DEVICE void values_load(float v[N], const uint16_t *from)
{
    if constexpr (N == 1) {
        v[0] = bf16_float(*from);
    } else {
        uint4 part = *reinterpret_cast<const uint4 *>(from);
        const uint32_t word[4] = {part.x, part.y, part.z, part.w};
        for (int i = 0; i < 4; i++) {
            v[2 * i] = bf16_low(word[i]);
            v[2 * i + 1] = bf16_high(word[i]);
        }
    }
}

template <int N> DEVICE void values_store(float *to, const float v[N])
{
    if constexpr (N == 1) {
        *to = v[0];
    } else {
        for (int i = 0; i < N; i += 4)
            *reinterpret_cast<float4 *>(to + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
}

template <int N> DEVICE void values_store(uint16_t *to, const float v[N])
{
    if constexpr (N == 1)
        *to = bf16_of(v[0]);
    else
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(bf16_pair(v[0], v[1]), bf16_pair(v[2], v[3]), bf16_pair(v[4], v[5]),
                       bf16_pair(v[6], v[7]));
}
