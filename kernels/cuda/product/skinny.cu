/* skinny.cu - products for some rows (a batch in decoding, a block in denoising), on the matrix
 * units at memory speed.
 *
 * x of all rows does not fit into shared memory. So a block holds a part of K of x (a slab), and
 * its warps multiply it by that part of K of their tiles of weights, which they stream, without a
 * barrier. The sums of the parts go to `work`, and finish.cu adds them in order. These sums are few
 * bytes compared with the weights, and stay in the L2 cache. 16 warps on an SM have 64 KB in flight
 * (stream.cuh). */
#include <assert.h>

#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/weights/streamed.cuh"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/weights/stream.cuh"

/* Block (c, s) computes part s of K. Its warp w computes tile c + w gridDim.x and every further
 * tile in steps of all warps. */
template <enum dtype D, int NT>
__global__ void __launch_bounds__(SKINNY_WARPS *WARP, 1)
skinny_tiles(struct product_job j, const void *rows, uint32_t ldx, typename format<D>::Sum *sums,
             uint32_t part, uint32_t all, typename format<D>::Tables tables)
{
    SHARED(uint8_t, shared);
    typedef typename format<D>::Sum Sum;
    let_next_start();
    const uint32_t from = blockIdx.y * part, to = min(from + part, all);
    const struct weight_walk walk = {gridDim.x * SKINNY_WARPS, job_tiles(&j), from, 1, to};
    uint32_t tile = blockIdx.x + threadIdx.x / WARP * gridDim.x;
    struct stream<D> stream;
    stream_start<D>(&stream, j, walk, tile);
    format<D>::prepare(shared, tables);
    wait_for_inputs();
    uint8_t *slab = shared + format_row(D).tables;
    const uint32_t stride = x_stride(D, part), unit = group_x_bytes(D) / 16;
    stage_slab<D>(slab, stride, rows, ldx, j.T, j.K, from * unit, (to - from) * unit);
    typename format<D>::State state = format<D>::start(shared);
    const struct x_view view = x_lane(slab, stride, HALF);
    sums += (size_t)blockIdx.y * j.T * j.columns;
    for (; tile < walk.tiles; tile += walk.tile_step) {
        Sum sum[NT][4] = {};
        /* a counter of its own would cost registers */
#pragma unroll 1
        while (stream.at.tile == tile && stream.at.group < to)
            stream_step<D, NT>(&stream, &state, sum, j, walk, view, from);
        put_tile<NT>(j, tile_at(&j, tile), sums, sum);
    }
}

template <enum dtype D, int NT>
static void start_rows(const struct backend *backend, const struct product_job *j,
                       const struct skinny_plan *plan, const void *rows, size_t ldx, void *sums)
{
    typename format<D>::Tables tables;
    tables_fill(&tables);
    launch(backend, skinny_tiles<D, NT>, dim3(plan->crews, plan->splits), dim3(SKINNY_WARPS * WARP),
           plan->shared, *j, rows, (uint32_t)ldx, static_cast<typename format<D>::Sum *>(sums),
           plan->groups, job_groups(D, j->K), tables);
}

template <enum dtype D>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct skinny_plan *plan, const void *rows, size_t ldx, void *sums)
{
    switch (plan->rows) {
    case 8: start_rows<D, 1>(backend, j, plan, rows, ldx, sums); break;
    case 16: start_rows<D, 2>(backend, j, plan, rows, ldx, sums); break;
    case 32: start_rows<D, 4>(backend, j, plan, rows, ldx, sums); break;
    default: start_rows<D, 8>(backend, j, plan, rows, ldx, sums); break;
    }
}

void skinny(const struct backend *b, const struct product_job *j, const struct skinny_plan *p,
            const void *rows, size_t ldx, void *sums)
{
    switch (j->dtype) {
#define START(id, ...)                                                                             \
    case DTYPE_##id: start<DTYPE_##id>(b, j, p, rows, ldx, sums); break;
        STREAMED_FORMATS(START)
#undef START
    default: assert(!"streamed");
    }
}
