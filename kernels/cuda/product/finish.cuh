/* finish.cuh - turns the two sums of a tile's halves (tiling.h) into outputs: rounds the products
 * to `act`, then stores or adds them, gates them, or rotates them and puts them into the cache. */
#pragma once

#include "kernels/cuda/product/encode_row.cuh"

/* Writes the sums of a tile to sums[t][columns]. The sums of eight rows of W lie side by side. */
template <int NT, class Sum> DEVICE void put_tile(const struct product_job &j,
                                                  const struct weight_tile &tile, Sum *sums,
                                                  const Sum (*sum)[4])
{
    uint32_t g = threadIdx.x % WARP / 4, q = threadIdx.x % 4;
#pragma unroll
    for (uint32_t h = 0; h < 2; h++) {
        if (g >= tile.count[h])
            continue;
        Sum *to = sums + j.w[tile.matrix[h]].column + tile.row[h] + g;
#pragma unroll
        for (uint32_t i = 0; i < NT; i++)
#pragma unroll
            for (uint32_t e = 0; e < 2; e++) {
                uint32_t row = 8 * i + 2 * q + e;
                if (row < j.T)
                    to[(size_t)row * j.columns] = sum[i][2 * h + e];
            }
    }
}

/* sum[2] = rows i of both halves of a tile, by row `row` of x: the parts sums[part][t][columns],
 * added in order, AT_ONCE loads in flight together. Parts are not read through the L1 cache,
 * because other multiprocessors may have written them during this kernel (few.cu). */
template <int AT_ONCE, class Sum>
DEVICE void add_parts(Sum sum[2], const struct product_job &j, const struct weight_tile &tile,
                      uint32_t i, uint32_t row, const Sum *sums, uint32_t parts)
{
    sum[0] = sum[1] = 0;
    for (uint32_t s = 0; s < parts; s += AT_ONCE) {
        Sum part[AT_ONCE][2];
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                part[k][h] = s + k < parts && i < tile.count[h]
                                 ? __ldcg(sums + ((size_t)(s + k) * j.T + row) * j.columns +
                                          j.w[tile.matrix[h]].column + tile.row[h] + i)
                                 : 0;
#pragma unroll
        for (uint32_t k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                sum[h] += part[k][h];
    }
}

/* value[2] = the products from the sums of rows i of a tile's halves: sums of an FP8 or INT8 job
 * are scaled by the scales of their rows of W. The values are unspecified for rows that the tile
 * lacks. MANY: see int8_values() in encode_row.cuh. */
template <int MANY>
DEVICE void sum_values(float value[2], const struct product_job &j, const struct weight_tile &tile,
                       uint32_t i, const struct coded_rows &, uint32_t, const float sum[2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const struct operand &operand = j.w[tile.matrix[h]];
        bool scaled = j.dtype == DTYPE_FP8 && i < tile.count[h];
        value[h] = scaled
                       ? __fmul_rn(sum[h], operand.scale[operand.begin + tile.row[h] + i] / FP8_TOP)
                       : sum[h];
    }
}

template <int MANY>
DEVICE void sum_values(float value[2], const struct product_job &j, const struct weight_tile &tile,
                       uint32_t i, const struct coded_rows &rows, uint32_t token,
                       const int32_t sum[2])
{
    if (i >= tile.count[0])
        return;
    const bool both = i < tile.count[1]; /* the second row of a last tile may be missing */
    struct coded_pair pair;
    pair.near = rows.near ? rows.near + (size_t)token * NEAR * TILE_ROWS + i : nullptr;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const struct operand &operand = j.w[both && h ? tile.matrix[1] : tile.matrix[0]];
        size_t row = operand.begin + (both && h ? tile.row[1] : tile.row[0]) + i;
        pair.code[h] = reinterpret_cast<const int8_t *>(operand.code) + row * j.stride;
        pair.step[h] = operand.scale[row] / INT8_TOP;
    }
    int8_values<MANY>(value, pair, sum, rows, token, j.K);
}

template <class A> DEVICE A *row_of(const struct product_job &j, uint32_t i, uint32_t row)
{
    return static_cast<A *>(j.y[i]) + (size_t)row * j.ldy[i];
}

DEVICE void cache_put(const struct product_job &j, uint32_t i, uint32_t row, uint32_t at,
                      float value)
{
    uint32_t slot = j.slot ? (uint32_t)j.slot[row] : row;
    if (j.cache_f32)
        row_of<float>(j, i, slot)[at] = value;
    else
        row_of<uint16_t>(j, i, slot)[at] = bf16_of(value);
}

template <class A> DEVICE void finish_one(const struct product_job &j, uint32_t i, uint32_t token,
                                          uint32_t row, float value)
{
    if (j.kind == JOB_FLOATS) {
        row_of<float>(j, i, token)[row] = value;
        return;
    }
    value = act_rounded<A>(value);
    if (j.kind == JOB_QKV) {
        cache_put(j, i, token, row, value);
        return;
    }
    A *y = row_of<A>(j, i, token) + row;
    act_put(y, j.add[i] ? act_float(*y) + value : value);
}

template <class A> DEVICE float gated_value(float gate, float up)
{
    gate = act_rounded<A>(gate);
    return act_rounded<A>(gate / (1 + expf(-gate))) * act_rounded<A>(up);
}

/* Rotates a pair of products, rounded before and after. */
template <class A>
DEVICE void turn_pair(float turned[2], float u, float value, float c, float s)
{
    u = act_rounded<A>(u);
    value = act_rounded<A>(value);
    turned[0] = act_rounded<A>(u * c - value * s);
    turned[1] = act_rounded<A>(value * c + u * s);
}

template <class A>
DEVICE void finish_rotated(const struct product_job &j, const struct weight_tile &tile, uint32_t i,
                           uint32_t row, float u, float value)
{
    uint32_t half = j.head_dim / 2, at = (tile.row[0] + i) % j.head_dim;
    const float *table = j.table + (size_t)row * j.head_dim;
    float turned[2];
    turn_pair<A>(turned, u, value, table[at], table[half + at]);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (tile.section == 0)
            act_put(row_of<A>(j, 0, row) + tile.row[h] + i, turned[h]);
        else
            cache_put(j, 1, row, tile.row[h] + i, turned[h]);
}

/* Writes the outputs for the products of rows i of both halves and row `row` of x. */
template <class A>
DEVICE void finish_values(const struct product_job &j, const struct weight_tile &tile, uint32_t i,
                          uint32_t row, const float value[2])
{
    if (j.kind == JOB_GATED) {
        if (i < tile.count[0])
            act_put(row_of<A>(j, 0, row) + tile.row[0] + i, gated_value<A>(value[0], value[1]));
    } else if (j.kind == JOB_QKV && tile.section < 2) {
        if (i < tile.count[0])
            finish_rotated<A>(j, tile, i, row, value[0], value[1]);
    } else {
        if (i < tile.count[0])
            finish_one<A>(j, tile.section, row, tile.row[0] + i, value[0]);
        if (i < tile.count[1])
            finish_one<A>(j, tile.section, row, tile.row[1] + i, value[1]);
    }
}

/* finish_values() from sums instead of products. MANY: see int8_values(). */
template <class A, int MANY, class Sum>
DEVICE void finish_pair(const struct product_job &j, const struct weight_tile &tile, uint32_t i,
                        uint32_t row, const struct coded_rows &rows, Sum first, Sum second)
{
    float value[2] = {0, 0};
    const Sum sum[2] = {first, second};
    sum_values<MANY>(value, j, tile, i, rows, row, sum);
    finish_values<A>(j, tile, i, row, value);
}
