/* fragments.cuh - turns a chunk of weights, 64 bytes of 16 rows, into operands of the matrix units,
 * directly from the registers that the loads filled.
 *
 * The matrix units expect an order of k in which each of the four lanes of a row has values from
 * all over the chunk. But a product does not depend on the order of k, if weights and x have the
 * same order. So lane q of a row keeps the 16 bytes that it read, and x is put into shared memory
 * in the matching order (x_place). Weights never pass through shared memory. In comments lane = 4g
 * + q, as the PTX manual numbers fragments. */
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/tiling.h"

struct no_tables {
    char unused;
};

/* Fills the tables of a format, an argument of its kernels besides the job. */
static inline void tables_fill(struct no_tables *tables)
{
    tables->unused = 0;
}

/* Rows of x in shared memory as a lane reads them. at: word 0 of row g in this chunk; stride: bytes
 * between rows. */
struct x_view {
    const uint8_t *at;
    uint32_t stride;
};

/* 16 bytes of row 8i + g, from `byte` on. */
DEVICE uint4 x_word(const struct x_view &view, uint32_t i, uint32_t byte)
{
    return *reinterpret_cast<const uint4 *>(view.at + 8 * i * view.stride + byte);
}

/* Sums over a warp's part of K: sum[i][0, 1] are row g of the tile by rows 8i + 2q, 8i + 2q + 1 of
 * x; [2, 3] row g + 8. A format has
 *     Sum, Tables                  the type of its sums; constants of a launch
 *     prepare(), State, start()    tables in shared memory; a lane's state
 *     Row, row()                   a lane's data about a tile, beside the addresses of its rows
 *     More, more(), begin()        other loads for a group, ahead of their use
 *     multiply(s, sum, a, b, u, x) chunk u of a group: a of row g, b of row g + 8
 *     element(data, at, row, k)    one value of a matrix, for embeddings: sums and products are
 *                                  rounded one by one, as kernels/quant.h does on the host
 *     TOP, code(x)                 one-byte codes with one scale a row: the largest, and the code
 *                                  of x in -TOP..TOP; TOP 0: other codes (encode.cu). */
template <enum dtype D> struct format;

/* A format without data besides its codes. */
template <class S> struct plain_format {
    static constexpr float TOP = 0;
    typedef S Sum;
    typedef no_tables Tables;
    struct State {
    };
    struct Row {
    };
    struct More {
    };
    DEVICE void prepare(uint8_t *, const Tables &) {}
    DEVICE State start(const uint8_t *)
    {
        return State();
    }
    DEVICE Row row(const struct product_job &, const struct weight_tile &)
    {
        return Row();
    }
    DEVICE More more(const struct product_job &, const Row &, uint32_t)
    {
        return More();
    }
    DEVICE void begin(State &, const More &) {}
};

/* d += 16 rows of weights times the word v of x. A lane has 8 values (4 pairs, in order of k) of
 * row g in a and of row g + 8 in b. */
DEVICE void multiply_pairs(float d[4], const uint32_t *a, const uint32_t *b, uint4 v)
{
    const uint32_t low[4] = {a[0], b[0], a[1], b[1]}, high[4] = {a[2], b[2], a[3], b[3]};
    const uint32_t x[2][2] = {{v.x, v.y}, {v.z, v.w}};
    multiply_bf16(d, low, x[0]);
    multiply_bf16(d, high, x[1]);
}
