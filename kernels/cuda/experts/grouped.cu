/* grouped.cu - products of rows in groups, each with matrices of its own, in one launch. Groups are
 * counted on the device, so the grid has blocks for the largest possible group; those without rows
 * end at once, and read no weights.
 *
 * A warp streams its tiles of weights (stream.cuh) past the rows of its block in shared memory: all
 * of K if it fits, else one slab after another. Sums of a tile stay in registers to the end.
 */
#include <assert.h>

#include "kernels/cuda/experts/mixture.h"
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/weights/stream.cuh"
#include "kernels/cuda/weights/streamed.cuh"

enum { GROUPED_WARPS = 8, TURN = 8 };

/* Rows of a block from `first` on; x is bf16, or the codes of INT8. */
template <enum dtype D>
DEVICE void shift_rows(const void **x, uint32_t ldx, struct coded_rows *coded, uint32_t first,
                       uint32_t K)
{
    *x = static_cast<const uint8_t *>(*x) + (size_t)first * ldx * (x_coded(D) ? 1 : 2);
    if (!x_coded(D))
        return;
    coded->x += (size_t)first * coded->ldx;
    coded->step += first;
    coded->marks += (size_t)first * marks_words(K);
}

/* Writes the outputs of a tile. */
template <int NT, class Sum>
DEVICE void finish_sums(const struct product_job &j, const struct weight_tile &tile,
                        const struct coded_rows &coded, const Sum (*sum)[4])
{
    uint32_t g = threadIdx.x % WARP / 4, q = threadIdx.x % 4;
#pragma unroll
    for (uint32_t i = 0; i < NT; i++)
#pragma unroll
        for (uint32_t e = 0; e < 2; e++) {
            uint32_t t = TURN * i + 2 * q + e;
            if (t < j.T)
                finish_pair<uint16_t>(j, tile, g, t, coded, sum[i][e], sum[i][2 + e]);
        }
}

/* Block (c, g, z) has rows 8 NT z .. of group g; its warp w computes tiles c + w gridDim.x, then on
 * in steps of all warps. part: groups of K in a slab. */
template <enum dtype D, int NT>
__global__ void __launch_bounds__(GROUPED_WARPS *WARP)
grouped_tiles(struct product_job all, struct group groups, const void *x, uint32_t ldx,
              struct coded_rows coded, uint32_t part, typename format<D>::Tables tables)
{
    SHARED(uint8_t, shared);
    typedef typename format<D>::Sum Sum;
    const uint32_t at = blockIdx.z * TURN * NT, step = gridDim.x * GROUPED_WARPS;
    uint32_t first, staged = 0;
    let_next_start();
    wait_for_inputs();
    struct product_job j = group_job(all, groups, blockIdx.y, &first);
    if (at >= j.T)
        return;
    j = job_rows(&j, at, min(j.T - at, TURN * (uint32_t)NT));
    shift_rows<D>(&x, ldx, &coded, first + at, j.K);
    const uint32_t K = job_groups(D, j.K), stride = x_stride(D, part);
    const uint32_t unit = group_x_bytes(D) / 16, tiles = job_tiles(&j);
    const struct weight_walk walk = {step, tiles, 0, 1, K};
    uint32_t tile = blockIdx.x + threadIdx.x / WARP * gridDim.x;
    struct stream<D> s;
    stream_start<D>(&s, j, walk, tile);
    format<D>::prepare(shared, tables);
    uint8_t *slab = shared + format_row(D).tables;
    stage_slab<D>(slab, stride, x, ldx, j.T, j.K, 0, min(part, K) * unit);
    typename format<D>::State state = format<D>::start(shared);
    const struct x_view view = x_lane(slab, stride, HALF);
    for (uint32_t round = blockIdx.x; round < tiles; round += step, tile += step) {
        Sum sum[NT][4] = {};
        for (uint32_t from = 0; from < K; from += part) {
            uint32_t to = min(from + part, K);
            if (from != staged) {
                __syncthreads();
                stage_slab<D>(slab, stride, x, ldx, j.T, j.K, from * unit, (to - from) * unit);
                staged = from;
            }
#pragma unroll 1
            for (uint32_t group = from; group < to; group++)
                stream_step<D, NT>(&s, &state, sum, j, walk, view, from);
        }
        if (tile < tiles)
            finish_sums<NT>(j, tile_at(&j, tile), coded, sum);
    }
}

template <enum dtype D, int NT>
static void start_rows(const struct backend *b, const struct product_job *j, const struct group *g,
                       const void *x, uint32_t ldx, const struct coded_rows *coded)
{
    typename format<D>::Tables tables;
    uint32_t slab = skinny_slab(D, TURN * NT, device_of(b)->shared_max);
    uint32_t part = plan_least(slab, job_groups(D, j->K));
    tables_fill(&tables);
    launch(b, grouped_tiles<D, NT>,
           dim3(plan_up(job_tiles(j), GROUPED_WARPS), g->n, plan_up(g->most, TURN * NT)),
           dim3(GROUPED_WARPS * WARP), format_row(D).tables + TURN * NT * x_stride(D, part), *j, *g,
           x, ldx, *coded, part, tables);
}

/* Rows of a block: about twice as many as a group has in the mean, so that most groups are one
 * block. The sums of 64 rows and the tables of block formats do not fit into registers together. */
static uint32_t rows_of_block(const struct backend *b, const struct product_job *j,
                              const struct group *g)
{
    static const uint32_t sizes[] = {8, 32, 64};
    uint32_t most = format_row(j->dtype).tables ? 1 : 2, i = 0;
    uint32_t wanted = plan_least(2 * plan_up(j->T, g->n), g->most);
    while (i < most && sizes[i] < wanted)
        i++;
    while (i > 0 && !skinny_slab(j->dtype, sizes[i], device_of(b)->shared_max))
        i--;
    return sizes[i];
}

template <enum dtype D>
static void start(const struct backend *b, const struct product_job *j, const struct group *g,
                  const void *x, uint32_t ldx, const struct coded_rows *coded)
{
    uint32_t rows = rows_of_block(b, j, g);
    if (rows == 8)
        start_rows<D, 1>(b, j, g, x, ldx, coded);
    else if (rows == 32)
        start_rows<D, 4>(b, j, g, x, ldx, coded);
    else if constexpr (format_row(D).tables == 0)
        start_rows<D, 8>(b, j, g, x, ldx, coded);
}

void grouped(const struct backend *b, const struct product_job *j, const struct group *g,
             const void *x, void *work)
{
    struct coded_rows coded = {};
    uint32_t ldx = j->K;
    if (exact_rows(j->dtype)) {
        f32_product_grouped(b, j, static_cast<const float *>(x), g);
        return;
    }
    if (x_coded(j->dtype)) {
        struct coding c = coding_at(work, j->T, j->K);
        coded = coding_make(b, &c, j->dtype, x, j->T, j->K);
        x = c.code;
        ldx = c.codes;
    }
    switch (j->dtype) {
#define START(id, ...)                                                                             \
    case DTYPE_##id: start<DTYPE_##id>(b, j, g, x, ldx, &coded); break;
        STREAMED_FORMATS(START)
#undef START
    default: assert(!"streamed");
    }
}
