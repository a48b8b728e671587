/* encode_row.cuh - for formats that code x (int8, kernels/quant.h): codes the activations of a
 * product, and computes the outputs from the exact sums. One block codes one row: codes, scale and
 * outliers.
 *
 * k is a column of x. The marks of a row are a list with the k of its first MARKS_LISTED outliers,
 * the number of all its outliers, and a bit for each k. Outputs read the list, several outliers at
 * a time. Outliers beyond the list are found by their bits, so a row may have any number of
 * outliers. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/product/stage_rows.cuh"
#include "kernels/cuda/weights/tiling.h"

/* Rows for int8 products: row t is at x + t ldx (bf16), step[t] is scale / 127, marks holds the
 * marks of the rows. */
struct coded_rows {
    const uint16_t *x;
    const float *step;
    const uint32_t *marks; /* [., marks_words(K)] */
    uint32_t ldx;
    const int8_t *near; /* [rows of x, NEAR, TILE_ROWS] codes of a tile's weights at the first
                         * outliers of each row; NULL: not gathered */
};

/* ---- codes ---- */

/* Values 8u .. 8u+7 of a row; zeros beyond K. If K is a multiple of 8, rows are aligned to 16
 * bytes. */
DEVICE uint4 row_unit(const uint16_t *x, uint32_t u, uint32_t K)
{
    if (K % 8)
        return x_unit(x, u, K);
    return 8 * u < K ? *reinterpret_cast<const uint4 *>(x + 8 * u) : make_uint4(0, 0, 0, 0);
}

/* The largest of `top` and of those |x| of a unit that are below the limit. */
DEVICE float unit_top(float top, uint4 unit, float limit)
{
    const uint32_t pair[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float low = fabsf(bf16_low(pair[i])), high = fabsf(bf16_high(pair[i]));
        top = low < limit ? fmaxf(top, low) : top;
        top = high < limit ? fmaxf(top, high) : top;
    }
    return top;
}

/* Codes of eight values, and a bit for each outlier. */
struct unit_codes {
    uint2 code;
    uint8_t marks;
};

/* The low byte of the result is level_round(x) as an integer, for |x| < 128: adding 1.5 * 2^23
 * rounds x and leaves the integer in the lowest bits of the sum. */
DEVICE uint32_t low_level(float x)
{
    return __float_as_uint(__fadd_rn(x, 12582912.0f));
}

DEVICE struct unit_codes unit_encode(uint4 unit, float limit, float up)
{
    const uint32_t pair[4] = {unit.x, unit.y, unit.z, unit.w};
    uint32_t both[4], marks = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float low = bf16_low(pair[i]), high = bf16_high(pair[i]);
        bool out[2] = {!(fabsf(low) < limit), !(fabsf(high) < limit)};
        marks |= (out[0] ? 1u : 0) << 2 * i | (out[1] ? 2u : 0) << 2 * i;
        both[i] = pick_bytes(low_level(out[0] ? 0 : __fmul_rn(low, up)),
                             low_level(out[1] ? 0 : __fmul_rn(high, up)), 0x40);
    }
    return {make_uint2(pick_bytes(both[0], both[1], 0x5410), pick_bytes(both[2], both[3], 0x5410)),
            (uint8_t)marks};
}

/* Called by the whole block: writes the list and the number of outliers of a row, from its bits.
 * Each thread reads consecutive words of bits. shared: one word a warp. */
DEVICE void marks_list(uint32_t *marks, uint32_t K, uint32_t *shared)
{
    const uint32_t *bits = marks + MARKS_BITS;
    uint32_t words = plan_up(K, 32), each = plan_up(words, blockDim.x), mine = 0;
    uint32_t from = threadIdx.x * each, to = min(from + each, words), lane = threadIdx.x % WARP;
    for (uint32_t i = from; i < to; i++)
        mine += (uint32_t)__popc(bits[i]);
    uint32_t n = lanes_below(mine);
    if (lane == WARP - 1)
        shared[threadIdx.x / WARP] = n + mine;
    __syncthreads();
    for (uint32_t w = 0; w < threadIdx.x / WARP; w++)
        n += shared[w];
    for (uint32_t i = from; i < to; i++)
        for (uint32_t rest = bits[i]; rest; rest &= rest - 1, n++)
            if (n < MARKS_LISTED)
                marks[n] = i * 32 + (uint32_t)__ffs((int)rest) - 1;
    if (threadIdx.x == blockDim.x - 1)
        marks[MARKS_LISTED] = n;
}

/* Called by the whole block: writes code[codes] (zeros from K on), *step and the marks of x[K]. The
 * first KEPT units of a thread stay in registers between the two passes. limit: quant_outlier().
 * codes: a multiple of 16, at least K. shared: one float a warp. A barrier must follow before
 * results are read. */
template <uint32_t KEPT>
DEVICE void encode_row(const uint16_t *x, uint32_t K, float limit, int8_t *code, uint32_t codes,
                       float *step, uint32_t *marks, float *shared)
{
    uint8_t *bits = reinterpret_cast<uint8_t *>(marks + MARKS_BITS);
    const uint32_t marked = plan_up(K, 32) * 4, units = max(codes / 8, marked);
    uint4 kept[KEPT];
    float top = 0;
#pragma unroll
    for (uint32_t i = 0; i < KEPT; i++)
        kept[i] = row_unit(x, threadIdx.x + i * blockDim.x, K);
#pragma unroll
    for (uint32_t i = 0; i < KEPT; i++)
        top = unit_top(top, kept[i], limit);
    for (uint32_t u = threadIdx.x + KEPT * blockDim.x; 8 * u < K; u += blockDim.x)
        top = unit_top(top, row_unit(x, u, K), limit);
    top = block_max(top, shared);
    float up = quant_up(top, INT8_TOP);
    auto put = [&](uint32_t u, uint4 unit) {
        struct unit_codes unit_codes = unit_encode(unit, limit, up);
        if (8 * u < codes)
            *reinterpret_cast<uint2 *>(code + 8 * u) = unit_codes.code;
        if (u < marked)
            bits[u] = unit_codes.marks;
    };
#pragma unroll
    for (uint32_t i = 0; i < KEPT; i++)
        put(threadIdx.x + i * blockDim.x, kept[i]);
    for (uint32_t u = threadIdx.x + KEPT * blockDim.x; u < units; u += blockDim.x)
        put(u, row_unit(x, u, K));
    __syncthreads();
    marks_list(marks, K, reinterpret_cast<uint32_t *>(shared));
    if (threadIdx.x == 0)
        *step = quant_scale(top) / INT8_TOP;
}

/* ---- outputs ---- */

/* The two rows of weights of a lane: codes and steps. near: a copy in shared memory of the codes of
 * row 0 at the first NEAR outliers, TILE_ROWS bytes apart; the codes of row 1 are HALF bytes behind
 * those of row 0. NULL: there is no copy. */
struct coded_pair {
    const int8_t *code[2];
    float step[2];
    const int8_t *near;
};

DEVICE void outlier_add(float value[2], const float step[2], float x, float first, float second)
{
    value[0] = __fadd_rn(value[0], __fmul_rn(x, __fmul_rn(first, step[0])));
    value[1] = __fadd_rn(value[1], __fmul_rn(x, __fmul_rn(second, step[1])));
}

/* Adds the products of the outliers k[0..n) to both values, in order, each operation rounded; 0 <
 * n. All loads come first and without a condition, so that they are in flight together. */
template <int MANY>
DEVICE void outliers_add(float value[2], const struct coded_pair &pair, const uint16_t *x,
                         const uint32_t k[MANY], uint32_t n)
{
    float at[MANY], code[MANY][2];
#pragma unroll
    for (uint32_t i = 0; i < MANY; i++) {
        at[i] = bf16_float(x[k[i]]);
        code[i][0] = pair.code[0][k[i]];
        code[i][1] = pair.code[1][k[i]];
    }
#pragma unroll
    for (uint32_t i = 0; i < MANY; i++)
        if (i == 0 || i < n)
            outlier_add(value, pair.step, at[i], code[i][0], code[i][1]);
}

/* outliers_add() for the first n outliers, whose codes are in pair.near. */
DEVICE void outliers_near(float value[2], const struct coded_pair &pair, const uint16_t *x,
                          const uint32_t *k, uint32_t n)
{
#pragma unroll 4
    for (uint32_t o = 0; o < n; o++)
        outlier_add(value, pair.step, bf16_float(x[k[o]]), pair.near[o * TILE_ROWS],
                    pair.near[o * TILE_ROWS + HALF]);
}

/* Adds the products of the outliers behind the list, which are found by their bits. */
DEVICE void outliers_beyond(float value[2], const struct coded_pair &pair, const uint16_t *x,
                            const uint32_t *marks, uint32_t words)
{
    uint32_t last = marks[MARKS_LISTED - 1], word = last / 32;
    uint32_t bits = marks[MARKS_BITS + word] & ~((2u << last % 32) - 1);
    for (;; bits = marks[MARKS_BITS + word]) {
        for (; bits; bits &= bits - 1) {
            const uint32_t k[1] = {word * 32 + (uint32_t)__ffs((int)bits) - 1};
            outliers_add<1>(value, pair, x, k, 1);
        }
        if (++word == words)
            return;
    }
}

/* value[2] = the outputs of two rows of weights for one row of x: the scaled sums, plus the
 * products of the outliers one by one, k ascending. MANY: number of outliers that are loaded at a
 * time. */
template <int MANY>
DEVICE void int8_values(float value[2], const struct coded_pair &pair, const int32_t sum[2],
                        const struct coded_rows &rows, uint32_t row, uint32_t K)
{
    const uint32_t *marks = rows.marks + (size_t)row * marks_words(K);
    const uint16_t *x = rows.x + (size_t)row * rows.ldx;
    for (int h = 0; h < 2; h++)
        value[h] = __fmul_rn((float)sum[h], __fmul_rn(rows.step[row], pair.step[h]));
    uint32_t n = marks[MARKS_LISTED], listed = min(n, (uint32_t)MARKS_LISTED);
    uint32_t near = pair.near ? min(n, (uint32_t)NEAR) : 0;
    outliers_near(value, pair, x, marks, near);
#pragma unroll 1
    for (uint32_t o = near; o < listed; o += MANY) {
        uint32_t k[MANY];
#pragma unroll
        for (uint32_t i = 0; i < MANY; i++)
            k[i] = marks[min(o + i, listed - 1)];
        outliers_add<MANY>(value, pair, x, k, listed - o);
    }
    if (n > listed)
        outliers_beyond(value, pair, x, marks, plan_up(K, 32));
}
