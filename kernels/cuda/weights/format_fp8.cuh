/* format_fp8.cuh - e4m3 weights (kernels/quant.h), converted to bf16 in registers. finish.cuh
 * multiplies the whole sum by the scale of its row. */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

template <> struct format<DTYPE_FP8> : plain_format<float> {
    static constexpr float TOP = FP8_TOP;

    DEVICE uint8_t code(float x)
    {
        return e4m3_of(x);
    }

    DEVICE float element(const unsigned char *data, const struct layout *at, size_t row, size_t k)
    {
        const float *scale = reinterpret_cast<const float *>(data + at->scale);
        return e4m3_value(data[row * at->stride + k]) * (scale[row] / FP8_TOP);
    }

    /* Converts two e4m3 codes to bf16, exactly: exponent and fraction moved to their place in bf16
     * give value * 2^-120, for subnormal numbers too. which: the bytes (0 and 1, or 2 and 3) of
     * `four` that go to bytes 1 and 3. */
    DEVICE uint32_t pair(uint32_t four, uint32_t which)
    {
        uint32_t w = pick_bytes(four, 0, which);
        return bf16_times((w & 0x80008000u) | (w >> 4 & 0x07f007f0u), 0x7b807b80u);
    }

    /* The pairs of eight codes, in order of k. */
    DEVICE void pairs(uint32_t p[4], uint32_t first, uint32_t second)
    {
        p[0] = pair(first, 0x1404);
        p[1] = pair(first, 0x3424);
        p[2] = pair(second, 0x1404);
        p[3] = pair(second, 0x3424);
    }

    /* Eight codes to eight bf16, exactly. */
    DEVICE void widen(uint16_t *to, const uint8_t *from)
    {
        uint2 codes = *reinterpret_cast<const uint2 *>(from);
        *reinterpret_cast<uint4 *>(to) = make_uint4(pair(codes.x, 0x1404), pair(codes.x, 0x3424),
                                                    pair(codes.y, 0x1404), pair(codes.y, 0x3424));
    }

    template <int NT>
    DEVICE void multiply(const State &, float (*sum)[4], uint4 a, uint4 b, int,
                         const struct x_view &view)
    {
        const uint32_t codes[2][4] = {{a.x, a.y, b.x, b.y}, {a.z, a.w, b.z, b.w}};
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) { /* in turn: fewer registers */
            uint32_t pa[4], pb[4];
            pairs(pa, codes[half][0], codes[half][1]);
            pairs(pb, codes[half][2], codes[half][3]);
#pragma unroll
            for (int i = 0; i < NT; i++)
                multiply_pairs(sum[i], pa, pb, x_word(view, i, half * CHUNK));
        }
    }
};
