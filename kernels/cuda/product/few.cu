/* few.cu - products for one to eight rows of x (decoding): product and outputs in one kernel, for
 * up to four rows also the norm.
 *
 * Weights are streamed as in skinny.cu. Each block normalizes up to four rows itself, while its
 * first weights are on their way. If a block has all of K, each lane turns its own sums into
 * outputs. Else the last of the blocks that share tiles adds their parts, in order of K, and writes
 * the outputs. The bits are those of norm_rows, skinny.cu and finish.cu. These are three kernels,
 * and a kernel costs about 3 us. A layer of LLaMA 3 8B in bf16 takes 136 us on an H200. */
#include <assert.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/values.cuh"
#include "kernels/cuda/weights/stream.cuh"
#include "kernels/cuda/weights/streamed.cuh"

/* FEW_ROWS: most rows of x. NORMED_ROWS: most rows that a block normalizes itself; more rows are
 * normalized by a kernel before. PARTS_AT_ONCE: parts of sums that a thread loads together. */
enum { FEW_ROWS = 8, NORMED_ROWS = 4, PARTS_AT_ONCE = 8, THREADS = SKINNY_WARPS * WARP };

/* The first FEW_SHARED bytes of a block's shared memory. */
struct few_shared {
    float squares[NORMED_ROWS][SKINNY_WARPS]; /* sums of the warps */
    float scale[NORMED_ROWS];
    int last; /* last_to_arrive() */
};

/* Called by the whole block: sets shared->scale[t] to 1 / sqrt(mean square of row t + eps). It adds
 * in the order of norm_rows (rows.cu). */
DEVICE void find_scales(struct few_shared *shared, const struct product_job &j,
                        const struct bf16_input &in)
{
    uint4 first[NORMED_ROWS]; /* all loads come first, so that they are in flight together */
#pragma unroll
    for (uint32_t t = 0; t < NORMED_ROWS; t++)
        first[t] = t < j.T ? row_unit(in.x + (size_t)t * j.K, threadIdx.x, j.K)
                           : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (uint32_t t = 0; t < NORMED_ROWS; t++) {
        float sum = 0;
        uint4 unit = first[t];
        for (uint32_t u = threadIdx.x; t < j.T && 8 * u < j.K; u += THREADS) {
            if (u != threadIdx.x)
                unit = row_unit(in.x + (size_t)t * j.K, u, j.K);
            const uint32_t pair[4] = {unit.x, unit.y, unit.z, unit.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float low = bf16_low(pair[i]), high = bf16_high(pair[i]);
                sum += low * low;
                sum += high * high;
            }
        }
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            shared->squares[t][threadIdx.x / WARP] = sum;
    }
    __syncthreads();
    if (threadIdx.x < NORMED_ROWS) {
        float sum = 0;
        for (uint32_t w = 0; w < SKINNY_WARPS; w++)
            sum += shared->squares[threadIdx.x][w];
        shared->scale[threadIdx.x] = 1 / sqrtf(sum / (float)j.K + in.eps);
    }
    __syncthreads();
}

/* Called by the whole block: loads words first .. first + n - 1 of the rows, normalized. */
template <enum dtype D>
DEVICE void stage_normed(uint8_t *to, uint32_t stride, const struct few_shared *shared,
                         const struct product_job &j, const struct bf16_input &in, uint32_t first,
                         uint32_t n)
{
#pragma unroll 1 /* the first weights occupy the registers */
    for (uint32_t i = threadIdx.x; i < j.T * n; i += THREADS) {
        uint32_t row = i / n, u = i % n;
        uint4 unit = row_unit(in.x + (size_t)row * j.K, first + u, j.K);
        *reinterpret_cast<uint4 *>(to + row * stride + 16 * x_place(D, u)) =
            unit_normed(unit, shared->scale[row], in.gain, (first + u) * 8, j.K);
    }
    __syncthreads();
}

/* Writes the outputs of a tile whose sums are complete. Lane 4g + q has rows g of both halves, by
 * rows 2q and 2q + 1 of x. */
DEVICE void finish_own(const struct product_job &j, const struct weight_tile &tile,
                       const float sum[4])
{
    const struct coded_rows none = {};
    const uint32_t g = threadIdx.x % WARP / 4, row = threadIdx.x % 4 * 2;
#pragma unroll
    for (uint32_t e = 0; e < 2; e++)
        if (row + e < j.T)
            finish_pair<uint16_t, 1>(j, tile, g, row + e, none, sum[e], sum[2 + e]);
}

/* Called by the whole block: adds the parts of all tiles of this block's column of the grid, and
 * writes the outputs. Eight threads take a tile and a row of x. */
DEVICE void finish_shared(const struct product_job &j, const float *sums)
{
    const struct coded_rows none = {};
    const uint32_t i = threadIdx.x % HALF, tiles = job_tiles(&j);
    for (uint32_t item = threadIdx.x / HALF;; item += THREADS / HALF) {
        uint32_t number = blockIdx.x + item / j.T * gridDim.x, row = item % j.T;
        if (number >= tiles)
            return;
        const struct weight_tile tile = tile_at(&j, number);
        float sum[2];
        add_parts<PARTS_AT_ONCE>(sum, j, tile, i, row, sums, gridDim.y);
        finish_pair<uint16_t, 1>(j, tile, i, row, none, sum[0], sum[1]);
    }
}

/* Block (c, s) computes part s of K of tiles c, c + gridDim.x, ... arrived: for each c the blocks
 * that left their parts. */
template <enum dtype D>
__global__ void __launch_bounds__(THREADS, 1)
few_tiles(struct product_job j, struct bf16_input in, float *sums, unsigned *arrived, uint32_t part,
          uint32_t all, typename format<D>::Tables tables)
{
    SHARED(uint8_t, shared);
    struct few_shared *own = reinterpret_cast<struct few_shared *>(shared);
    let_next_start();
    const uint32_t from = blockIdx.y * part, to = min(from + part, all);
    const struct weight_walk walk = {gridDim.x * SKINNY_WARPS, job_tiles(&j), from, 1, to};
    uint32_t tile = blockIdx.x + threadIdx.x / WARP * gridDim.x;
    struct stream<D> stream;
    stream_start<D>(&stream, j, walk, tile);
    gain_prefetch(in.gain, j.K);
    format<D>::prepare(shared + FEW_SHARED, tables);
    wait_for_inputs();
    uint8_t *slab = shared + FEW_SHARED + format_row(D).tables;
    const uint32_t stride = x_stride(D, part), unit = group_x_bytes(D) / 16;
    if (in.gain) {
        find_scales(own, j, in);
        stage_normed<D>(slab, stride, own, j, in, from * unit, (to - from) * unit);
    } else {
        stage_slab<D>(slab, stride, in.x, j.K, j.T, j.K, from * unit, (to - from) * unit);
    }
    typename format<D>::State state = format<D>::start(shared + FEW_SHARED);
    const struct x_view view = x_lane(slab, stride, HALF);
    for (; tile < walk.tiles; tile += walk.tile_step) {
        float sum[1][4] = {};
        /* a counter of its own would cost registers */
#pragma unroll 1
        while (stream.at.tile == tile && stream.at.group < to)
            stream_step<D, 1>(&stream, &state, sum, j, walk, view, from);
        const struct weight_tile done = tile_at(&j, tile);
        if (gridDim.y == 1)
            finish_own(j, done, sum[0]);
        else
            put_tile<1>(j, done, sums + (size_t)blockIdx.y * j.T * j.columns, sum);
    }
    if (gridDim.y > 1 && last_to_arrive(arrived + blockIdx.x, (int)gridDim.y, &own->last))
        finish_shared(j, sums);
}

template <enum dtype D>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct skinny_plan *plan, const struct bf16_input *in, float *sums)
{
    typename format<D>::Tables tables;
    static_assert(sizeof(struct few_shared) <= FEW_SHARED, "see FEW_SHARED");
    tables_fill(&tables);
    launch(backend, few_tiles<D>, dim3(plan->crews, plan->splits), dim3(THREADS),
           FEW_SHARED + plan->shared, *j, *in, sums, device_of(backend)->arrived, plan->groups,
           job_groups(D, j->K), tables);
}

int few(struct backend *backend, const struct product_job *j, struct bf16_input in, void *work)
{
    const struct device *device = device_of(backend);
    if (j->T > FEW_ROWS || x_coded(j->dtype) || !format_row(j->dtype).chunk || !device->arrived ||
        !values_wide(in.x, j->K, j->K, sizeof *in.x) ||
        (in.gain && !values_wide(in.gain, j->K, j->K, sizeof *in.gain)))
        return 0;
    const struct skinny_plan plan = skinny_plan(j, (uint32_t)device->sms, device->shared_max);
    uint8_t *sums = static_cast<uint8_t *>(work);
    if (in.gain && j->T > NORMED_ROWS) {
        cuda_rmsnorm(backend, work, in.x, nullptr, in.gain, j->T, j->K, in.eps);
        in = {static_cast<const uint16_t *>(work), nullptr, 0};
        sums += layout_up((size_t)j->T * j->K * sizeof *in.x, 256);
    }
    switch (j->dtype) {
#define START(id)                                                                                 \
    case DTYPE_##id:                                                                               \
        start<DTYPE_##id>(backend, j, &plan, &in, reinterpret_cast<float *>(sums));                \
        break;
        START(BF16)
        START(FP8)
        START(NF4)
        START(NF4_F32)
        START(FP4)
#undef START
    default: assert(!"a format with sums in fp32");
    }
    return 1;
}
