/* encode_row.cuh - rows of activations for formats that code x (kernels/quant.h): one block
 * computes codes, scale and outliers of a row; and the value of an output from its exact sum.
 *
 * Outliers are marked by bits, one for each k, and above these one for each word of bits. So any
 * number of outliers is found in ascending order, and a row without outliers needs only one look.
 */
#ifndef KERNELS_CUDA_PRODUCT_ENCODE_ROW_CUH
#define KERNELS_CUDA_PRODUCT_ENCODE_ROW_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/tiling.h"

/* Rows that int8 products read: row t at x + t ldx (bf16), its step (scale / 127) and its marks. */
struct coded_rows {
    const uint16_t *x;
    const float *step;
    const uint32_t *marks; /* [., marks_words(K)] */
    uint32_t ldx;
};

/* As block_sum of device.cuh, for the largest value. */
DEVICE float block_greatest(float x, float *shared)
{
    x = warp_max(x);
    if (threadIdx.x % WARP == 0)
        shared[threadIdx.x / WARP] = x;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / WARP; i++)
        x = fmaxf(x, shared[i]);
    return x;
}

/* Called by the whole block: writes code[codes] (zeros from K on), *step and the marks of x[K].
 * limit: quant_outlier(). shared: one float a warp. A barrier must follow before results are
 * read. */
DEVICE void encode_row(const uint16_t *x, uint32_t K, float limit, int8_t *code,
                       uint32_t codes, float *step, uint32_t *marks, float *shared)
{
    float top = 0;
    for (uint32_t k = threadIdx.x; k < K; k += blockDim.x) {
        float a = fabsf(bf16_float(x[k]));
        if (a < limit && a > top)
            top = a;
    }
    top = block_greatest(top, shared);
    float up = quant_up(top, INT8_TOP);
    for (uint32_t base = 0; base < codes || base < K; base += blockDim.x) {
        uint32_t k = base + threadIdx.x;
        float v = k < K ? bf16_float(x[k]) : 0;
        bool out = !(fabsf(v) < limit);
        if (k < codes)
            code[k] = out ? (int8_t)0 : (int8_t)level_round(__fmul_rn(v, up));
        uint32_t bits = __ballot_sync(EVERY_LANE, out);
        if (k % WARP == 0 && k < K)
            marks[k / WARP] = bits;
    }
    __syncthreads();
    uint32_t words = plan_up(K, 32);
    for (uint32_t base = 0; base < words; base += blockDim.x) {
        uint32_t i = base + threadIdx.x;
        uint32_t bits = __ballot_sync(EVERY_LANE, i < words && marks[i] != 0);
        if (i % WARP == 0 && i < words)
            marks[words + i / WARP] = bits;
    }
    if (threadIdx.x == 0)
        *step = quant_scale(top) / INT8_TOP;
}

/* The output of one row of weights for row t: the scaled sum, plus its outliers one by one, k
 * ascending, each operation rounded. */
DEVICE float int8_value(const struct product_job &j, const struct operand &w, uint32_t row,
                        const struct coded_rows &r, uint32_t t, int32_t sum)
{
    uint32_t words = plan_up(j.K, 32), tops = plan_up(j.K, 1024);
    const uint32_t *marks = r.marks + (size_t)t * (words + tops);
    const uint16_t *x = r.x + (size_t)t * r.ldx;
    size_t at = (size_t)(w.begin + row) * j.stride;
    const int8_t *code = reinterpret_cast<const int8_t *>(w.code) + at;
    float step = w.scale[w.begin + row] / INT8_TOP;
    float y = __fmul_rn((float)sum, __fmul_rn(r.step[t], step));
    for (uint32_t i = 0; i < tops; i++)
        for (uint32_t top = marks[words + i]; top; top &= top - 1) {
            uint32_t word = i * 32 + (uint32_t)__ffs((int)top) - 1;
            for (uint32_t bits = marks[word]; bits; bits &= bits - 1) {
                uint32_t k = word * 32 + (uint32_t)__ffs((int)bits) - 1;
                y = __fadd_rn(y, __fmul_rn(bf16_float(x[k]), __fmul_rn((float)code[k], step)));
            }
        }
    return y;
}

#endif
