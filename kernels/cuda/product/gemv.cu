/* gemv.cu - products for few rows (decoding), in a single kernel at memory speed.
 *
 * A block computes whole tiles, and its warps divide K; the sums of the warps are added in shared
 * memory in a fixed order. The first weights are loaded before wait_for_inputs(), so they arrive
 * while the kernel ahead ends and x is normalized and staged. A warp has 4 KB in flight
 * (stream.cuh), and prefetches 4 KB more into the L2 cache. */
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/weights/streamed.cuh"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/weights/stream.cuh"

/* Stages all rows of x in shared memory in the form that format D needs: bf16, or for INT8 codes,
 * with x, steps and marks. */
template <enum dtype D>
DEVICE struct coded_rows stage_all(uint8_t *shared, const struct gemv_room &room,
                                   const struct product_job &j, const struct bf16_input &in,
                                   uint32_t groups)
{
    uint32_t stride = x_stride(D, groups), bytes = groups * group_x_bytes(D);
    uint32_t ldx = plan_up(j.K, 8) * 8, words = marks_words(j.K);
    uint16_t *coded = reinterpret_cast<uint16_t *>(shared + room.coded);
    float *step = reinterpret_cast<float *>(shared + room.step);
    uint32_t *marks = reinterpret_cast<uint32_t *>(shared + room.marks);
    const uint32_t at = x_coded(D) ? room.coded : room.x;
    const uint32_t row_bytes = x_coded(D) ? ldx * 2 : stride;
    const uint32_t units = x_coded(D) ? ldx / 8 : bytes / 16;
    for (uint32_t row = 0; row < j.T; row++)
        stage_row<D>(shared + at + row * row_bytes, in.x + (size_t)row * j.K, j.K, units);
    copy_async_close();
    copy_async_wait<0>();
    for (uint32_t row = 0; in.gain && row < j.T; row++) {
        float *scratch = reinterpret_cast<float *>(shared + room.scratch) + row % 2 * GEMV_WARPS;
        norm_row<D>(shared + at + row * row_bytes, j.K, units, in, scratch);
    }
    __syncthreads();
    for (uint32_t row = 0; x_coded(D) && row < j.T; row++) {
        float *scratch = reinterpret_cast<float *>(shared + room.scratch) + row % 2 * GEMV_WARPS;
        int8_t *code = reinterpret_cast<int8_t *>(shared + room.x + row * stride);
        encode_row<1>(coded + row * ldx, ldx, quant_outlier(D), code, bytes, step + row,
                      marks + row * words, scratch);
    }
    return {coded, step, marks, ldx, nullptr};
}

/* Writes this warp's sums to to[row of the tile][GEMV_ROWS]. */
template <class Sum> DEVICE void put_sums(Sum *to, const Sum sum[4])
{
    uint32_t g = threadIdx.x % WARP / 4, row = threadIdx.x % 4 * 2;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++)
        to[(g + i / 2 * HALF) * GEMV_ROWS + row + i % 2] = sum[i];
}

/* Called by the whole block: copies the tile's codes at the first NEAR outliers of each row of x to
 * to[t, NEAR, TILE_ROWS]. A barrier must follow. */
DEVICE void near_codes(int8_t *to, const struct product_job &j, const struct weight_tile &tile,
                       const struct coded_rows &rows)
{
    enum { AT_ONCE = 4 };
    uint32_t row = threadIdx.x % TILE_ROWS, i = row % HALF, step = blockDim.x / TILE_ROWS;
    bool second = row >= HALF;
    if (i >= (second ? tile.count[1] : tile.count[0]))
        return;
    const struct operand &operand = j.w[second ? tile.matrix[1] : tile.matrix[0]];
    const uint8_t *code = operand.code +
                          (size_t)(operand.begin + (second ? tile.row[1] : tile.row[0]) + i) *
                              j.stride;
    for (uint32_t token = 0; token < j.T; token++, to += NEAR * TILE_ROWS) {
        const uint32_t *k = rows.marks + token * marks_words(j.K);
        uint32_t n = min(k[MARKS_LISTED], (uint32_t)NEAR);
        for (uint32_t o = threadIdx.x / TILE_ROWS; o < n; o += AT_ONCE * step) {
            uint8_t found[AT_ONCE]; /* all loads come first: in flight together */
#pragma unroll
            for (uint32_t a = 0; a < AT_ONCE; a++)
                found[a] = code[k[min(o + a * step, n - 1)]];
#pragma unroll
            for (uint32_t a = 0; a < AT_ONCE; a++)
                if (o + a * step < n)
                    to[(o + a * step) * TILE_ROWS + row] = (int8_t)found[a];
        }
    }
}

/* Thread (i, t) finishes rows i of both halves for row t of x. */
template <class Sum>
DEVICE void finish_tile(const struct product_job &j, const struct weight_tile &tile,
                        const struct coded_rows &rows, const Sum *sums, uint32_t warps)
{
    uint32_t i = threadIdx.x % HALF, row = threadIdx.x / HALF;
    if (row >= j.T)
        return;
    Sum first = 0, second = 0;
    for (uint32_t w = 0; w < warps; w++) {
        const Sum *from = sums + w * TILE_ROWS * GEMV_ROWS + row;
        first += from[i * GEMV_ROWS];
        second += from[(i + HALF) * GEMV_ROWS];
    }
    finish_pair<uint16_t, 1>(j, tile, i, row, rows, first, second);
}

/* Prefetches the scales of a tile's rows, if the format has one scale a row. */
template <enum dtype D> DEVICE void scale_prefetch(const struct product_job &j, uint32_t tile)
{
    if (format<D>::TOP == 0 || threadIdx.x > 1 || tile >= job_tiles(&j))
        return;
    struct weight_tile weight_tile = tile_at(&j, tile);
    const struct operand &operand =
        j.w[threadIdx.x ? weight_tile.matrix[1] : weight_tile.matrix[0]];
    if (threadIdx.x ? weight_tile.count[1] : weight_tile.count[0])
        prefetch(operand.scale + operand.begin +
                 (threadIdx.x ? weight_tile.row[1] : weight_tile.row[0]));
}

/* Block i computes tiles i, i + gridDim.x, ... Its warp w computes groups w, w + warps, ... of
 * K. */
template <enum dtype D>
__global__ void __launch_bounds__(GEMV_WARPS *WARP, format_row(D).resident)
gemv_tiles(struct product_job j, struct bf16_input in, struct gemv_room room, uint32_t groups,
           typename format<D>::Tables tables)
{
    SHARED(uint8_t, shared);
    typedef typename format<D>::Sum Sum;
    let_next_start();
    const uint32_t warps = blockDim.x / WARP, warp = threadIdx.x / WARP;
    const struct weight_walk walk = {gridDim.x, job_tiles(&j), warp, warps, groups};
    struct stream<D> stream;
    stream_start<D>(&stream, j, walk, blockIdx.x);
    scale_prefetch<D>(j, blockIdx.x);
    gain_prefetch(in.gain, j.K);
    format<D>::prepare(shared + room.table, tables);
    wait_for_inputs();
    struct coded_rows rows = stage_all<D>(shared, room, j, in, groups);
    __syncthreads();
    typename format<D>::State state = format<D>::start(shared + room.table);
    const struct x_view view = x_lane(shared + room.x, x_stride(D, groups), j.T);
    Sum *sums = reinterpret_cast<Sum *>(shared + room.sums);
    uint32_t turn = 0;
    for (uint32_t tile = blockIdx.x; tile < walk.tiles; tile += gridDim.x) {
        Sum sum[1][4] = {{0, 0, 0, 0}};
        scale_prefetch<D>(j, tile + gridDim.x);
        /* a counter of its own would cost registers */
#pragma unroll 1
        while (stream.at.tile == tile && stream.at.group < groups)
            stream_step<D, 1>(&stream, &state, sum, j, walk, view, 0);
        Sum *here = sums + turn * warps * TILE_ROWS * GEMV_ROWS;
        put_sums(here + warp * TILE_ROWS * GEMV_ROWS, sum[0]);
        struct weight_tile done = tile_at(&j, tile);
        if (x_coded(D)) {
            int8_t *near = reinterpret_cast<int8_t *>(shared + room.near);
            near += turn * j.T * NEAR * TILE_ROWS;
            near_codes(near, j, done, rows);
            rows.near = near;
        }
        __syncthreads();
        finish_tile(j, done, rows, here, warps);
        turn ^= 1; /* a slow warp may still read this half; it is free behind the next barrier */
    }
}

template <enum dtype D>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct bf16_input *in, const struct gemv_plan *plan)
{
    if constexpr (format_row(D).few > 0) { /* else gemv_plan() never fits, so no kernel is
                                            * compiled */
        struct gemv_room room = gemv_room(D, j->T, j->K, plan->warps);
        typename format<D>::Tables tables;
        tables_fill(&tables);
        launch(backend, gemv_tiles<D>, dim3(plan->blocks), dim3(plan->warps * WARP), room.bytes, *j,
               *in, room, plan->groups, tables);
    }
}

int gemv(const struct backend *b, const struct product_job *j, const struct bf16_input *in)
{
    const struct device *device = device_of(b);
    struct gemv_plan p = gemv_plan(j, (uint32_t)device->sms, device->shared_max);
    if (!p.fits)
        return 0;
    switch (j->dtype) {
#define START(id, ...)                                                                             \
    case DTYPE_##id: start<DTYPE_##id>(b, j, in, &p); break;
        STREAMED_FORMATS(START)
#undef START
    default: return 0;
    }
    return 1;
}
