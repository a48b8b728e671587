/* fragments.cuh - what each format makes of a chunk of weights: 64 bytes of 16 rows become operands
 * of the matrix units, straight from the registers that the loads filled.
 *
 * The matrix units want k in an order that would scatter a row over its four lanes; but a product
 * does not care in which order k is summed, as long as x comes in the same one. So lane q of a row
 * keeps the 16 bytes that it read, and x is laid into shared memory to match (x_place): weights
 * never pass through shared memory. In the comments lane = 4g + q, as the PTX manual numbers
 * fragments.
 */
#ifndef KERNELS_CUDA_WEIGHTS_FRAGMENTS_CUH
#define KERNELS_CUDA_WEIGHTS_FRAGMENTS_CUH

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/weights/tiling.h"

struct no_tables {
    char unused;
};

/* What a launch of a format's kernels needs besides the job. */
static inline void tables_fill(struct no_tables *t)
{
    t->unused = 0;
}

/* Rows of x in shared memory, from where a lane reads: word 0 of row g of this chunk. */
struct x_view {
    const uint8_t *at;
    uint32_t stride;
};

/* 16 bytes of row 8i + g. */
DEVICE uint4 x_word(const struct x_view &x, uint32_t i, uint32_t byte)
{
    return *reinterpret_cast<const uint4 *>(x.at + 8 * i * x.stride + byte);
}

/* Sums over a warp's part of K: sum[i][0, 1] of row g of the tile and rows 8i + 2q, + 1 of x;
 * [2, 3] of row g + 8. A format has
 *     Sum, Tables                  what it adds up, what it needs to know
 *     prepare(), State, start()    tables in shared memory, what a lane keeps
 *     Row, row()                   what a lane knows of a tile, beside where its rows lie
 *     More, more(), begin()        what else it reads for a group, ahead of using it
 *     multiply(s, sum, a, b, u, x) chunk u of a group: a of row g, b of row g + 8
 *     element(data, at, row, k)    one value of a matrix, for embeddings: sums and products are
 *                                  rounded one by one, as kernels/quant.h has it for the host
 *     TOP, code(x)                 codes of a byte with one scale a row: the largest, and that of
 *                                  x in -TOP..TOP; TOP 0: they are made otherwise (encode.cu). */
template <enum dtype D> struct format;

/* A format that has nothing beside its codes. */
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
    DEVICE Row row(const struct product_job &, const struct tile &)
    {
        return Row();
    }
    DEVICE More more(const struct product_job &, const Row &, uint32_t)
    {
        return More();
    }
    DEVICE void begin(State &, const More &) {}
};

/* d += 16 rows of 16 values a lane (8 pairs a row, in order of k) times the words v, u of x. */
DEVICE void multiply_pairs(float d[4], const uint32_t *a, const uint32_t *b, uint4 v, uint4 u)
{
    const uint32_t x[8] = {v.x, v.y, v.z, v.w, u.x, u.y, u.z, u.w};
#pragma unroll
    for (int s = 0; s < 8; s += 2) {
        const uint32_t w[4] = {a[s], b[s], a[s + 1], b[s + 1]}, k[2] = {x[s], x[s + 1]};
        multiply_bf16(d, w, k);
    }
}

#endif
