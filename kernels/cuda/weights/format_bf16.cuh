/* format_bf16.cuh - weights in bf16: the matrix units take the loaded words as they are. */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

template <> struct format<DTYPE_BF16> : plain_format<float> {
    DEVICE float element(const unsigned char *data, const struct layout *at, size_t row, size_t k)
    {
        return bf16_float(reinterpret_cast<const uint16_t *>(data)[row * at->stride + k]);
    }

    template <int NT>
    DEVICE void multiply(const State &, float (*sum)[4], uint4 a, uint4 b, int,
                         const struct x_view &view)
    {
        const uint32_t w[2][4] = {{a.x, b.x, a.y, b.y}, {a.z, b.z, a.w, b.w}};
#pragma unroll
        for (int i = 0; i < NT; i++) {
            uint4 v = x_word(view, i, 0);
            const uint32_t k[2][2] = {{v.x, v.y}, {v.z, v.w}};
            multiply_bf16(sum[i], w[0], k[0]);
            multiply_bf16(sum[i], w[1], k[1]);
        }
    }
};
