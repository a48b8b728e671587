/* format_fp8.cuh - e4m3 weights (kernels/quant.h), converted to bf16 in registers. The whole sum is
 * multiplied by the scale of its row.
 */
#ifndef KERNELS_CUDA_WEIGHTS_FORMAT_FP8_CUH
#define KERNELS_CUDA_WEIGHTS_FORMAT_FP8_CUH

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

    /* e4m3 to bf16, exactly: moving exponent and mantissa into place gives value * 2^-120, for
     * subnormal numbers too. `which`: bytes 0, 1 or 2, 3 of four go to bytes 1 and 3. */
    DEVICE uint32_t pair(uint32_t four, uint32_t which)
    {
        uint32_t w = pick_bytes(four, 0, which);
        return bf16_times((w & 0x80008000u) | (w >> 4 & 0x07f007f0u), 0x7b807b80u);
    }

    DEVICE void pairs(uint32_t p[8], uint4 codes)
    {
        const uint32_t four[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[2 * i] = pair(four[i], 0x1404);
            p[2 * i + 1] = pair(four[i], 0x3424);
        }
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
                         const struct x_view &x)
    {
        uint32_t pa[8], pb[8];
        pairs(pa, a);
        pairs(pb, b);
#pragma unroll
        for (int i = 0; i < NT; i++)
            multiply_pairs(sum[i], pa, pb, x_word(x, i, 0), x_word(x, i, CHUNK));
    }
};

#endif
