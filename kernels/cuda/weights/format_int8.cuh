/* format_int8.cuh - LLM.int8() and int8-vector (kernels/quant.h): codes of W times codes of x, with
 * exact integer sums. encode_row.cuh applies scales and outliers afterwards. */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

template <> struct format<DTYPE_INT8> : plain_format<int32_t> {
    static constexpr float TOP = INT8_TOP;

    DEVICE uint8_t code(float x)
    {
        return (uint8_t)(int8_t)level_round(x);
    }

    DEVICE float element(const unsigned char *data, const struct layout *at, size_t row, size_t k)
    {
        const float *scale = reinterpret_cast<const float *>(data + at->scale);
        return (float)(int8_t)data[row * at->stride + k] * (scale[row] / INT8_TOP);
    }

    template <int NT>
    DEVICE void multiply(const State &, int32_t (*sum)[4], uint4 a, uint4 b, int,
                         const struct x_view &view)
    {
        const uint32_t w[2][4] = {{a.x, b.x, a.y, b.y}, {a.z, b.z, a.w, b.w}};
#pragma unroll
        for (int i = 0; i < NT; i++) {
            uint4 v = x_word(view, i, 0);
            const uint32_t k[2][2] = {{v.x, v.y}, {v.z, v.w}};
            multiply_s8(sum[i], w[0], k[0]);
            multiply_s8(sum[i], w[1], k[1]);
        }
    }
};

template <> struct format<DTYPE_INT8_VECTOR> : format<DTYPE_INT8> {
};
