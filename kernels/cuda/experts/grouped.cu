/* grouped.cu - products of rows in groups, each group with matrices of its own, in one launch. Only
 * the device knows the sizes of groups, so the grid has blocks for the largest possible group;
 * blocks without rows end at once and read no weights.
 *
 * A warp streams its tiles of weights (stream.cuh) past the rows of its block in shared memory: all
 * of K if it fits, else one slab after another. The sums of a tile stay in registers until the tile
 * is complete. */
#include <assert.h>

#include "kernels/cuda/experts/mixture.h"
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/weights/stream.cuh"
#include "kernels/cuda/weights/streamed.cuh"

enum { GROUPED_WARPS = 16, FEW_WARPS = 8, TURN = 8 };

/* Moves x and *coded on to row `first`. x is bf16, or for INT8 the codes. */
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

/* Writes the outputs of a tile. The sums pass through this warp's part of shared memory, so that
 * one loop can finish all pairs; from registers each pair would need a copy of the code. */
template <int NT, class Sum>
DEVICE void finish_sums(const struct product_job &j, const struct weight_tile &tile,
                        const struct coded_rows &coded, const Sum (*sum)[4], Sum *mine)
{
    const uint32_t lane = threadIdx.x % WARP, g = lane / 4, q = lane % 4;
#pragma unroll
    for (uint32_t i = 0; i < NT; i++)
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            mine[(TURN * i + 2 * q + e % 2) * TILE_ROWS + e / 2 * HALF + g] = sum[i][e];
    __syncwarp();
#pragma unroll 1
    for (uint32_t n = lane; n < j.T * HALF; n += WARP) {
        const Sum *pair = mine + n / HALF * TILE_ROWS + n % HALF;
        finish_pair<uint16_t, 4>(j, tile, n % HALF, n / HALF, coded, pair[0], pair[HALF]);
    }
    __syncwarp();
}

/* Bytes of shared memory before the slab: the job of the group, and the sums of the warps. */
enum { JOB_ROOM = 1024 };
static_assert(sizeof(struct product_job) <= JOB_ROOM, "JOB_ROOM holds a job");
HOST_DEVICE uint32_t room_before(uint32_t rows, uint32_t warps)
{
    return JOB_ROOM + warps * rows * TILE_ROWS * (uint32_t)sizeof(float);
}

/* Block (z, c, g) has the rows of group g from 8 NT z on. Its warp w computes tile c + w gridDim.y
 * and every further tile in steps of all warps. Blocks with equal weights start together and share
 * them in the L2 cache. part: groups of K in a slab. */
template <enum dtype D, int NT>
__global__ void __launch_bounds__(GROUPED_WARPS *WARP)
grouped_tiles(struct product_job all, struct group groups, const void *x, uint32_t ldx,
              struct coded_rows coded, uint32_t part, typename format<D>::Tables tables)
{
    SHARED(uint8_t, shared);
    typedef typename format<D>::Sum Sum;
    const uint32_t at = blockIdx.x * TURN * NT, step = gridDim.y * (blockDim.x / WARP);
    struct product_job &j = *reinterpret_cast<struct product_job *>(shared);
    uint32_t staged = 0;
    let_next_start();
    wait_for_inputs();
    const uint32_t first = (uint32_t)groups.begin[blockIdx.z];
    if (first + at >= (uint32_t)groups.begin[blockIdx.z + 1])
        return;
    if (threadIdx.x == 0) {
        uint32_t begin;
        j = group_job(all, groups, blockIdx.z, &begin);
        j = job_rows(&j, at, min(j.T - at, TURN * (uint32_t)NT));
    }
    __syncthreads();
    shift_rows<D>(&x, ldx, &coded, first + at, j.K);
    const uint32_t K = job_groups(D, j.K), stride = x_stride(D, part);
    const uint32_t unit = group_x_bytes(D) / 16, tiles = job_tiles(&j);
    const struct weight_walk walk = {step, tiles, 0, 1, K};
    uint32_t tile = blockIdx.y + threadIdx.x / WARP * gridDim.y;
    struct stream<D> stream;
    stream_start<D>(&stream, j, walk, tile);
    Sum *sums = reinterpret_cast<Sum *>(shared + JOB_ROOM) +
                threadIdx.x / WARP * TURN * NT * TILE_ROWS;
    uint8_t *room = shared + room_before(TURN * NT, blockDim.x / WARP);
    format<D>::prepare(room, tables);
    uint8_t *slab = room + format_row(D).tables;
    stage_slab<D>(slab, stride, x, ldx, j.T, j.K, 0, min(part, K) * unit);
    typename format<D>::State state = format<D>::start(room);
    const struct x_view view = x_lane(slab, stride, HALF);
    for (uint32_t round = blockIdx.y; round < tiles; round += step, tile += step) {
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
                stream_step<D, NT>(&stream, &state, sum, j, walk, view, from);
        }
        if (tile < tiles)
            finish_sums<NT>(j, tile_at(&j, tile), coded, sum, sums);
    }
}

/* How the tiles of a group are spread: `crews` blocks of `warps` warps. The blocks of all groups
 * that can have rows fill the device only twice, so that a block stages its rows once for many
 * tiles. */
struct spread {
    uint32_t crews, warps;
};
static struct spread spread_tiles(const struct backend *backend, const struct product_job *j,
                                  const struct group *group)
{
    const uint32_t sms = (uint32_t)device_of(backend)->sms, tiles = job_tiles(j);
    const uint32_t busy = plan_least(group->n, j->T);
    const uint32_t warps = tiles * busy < sms * GROUPED_WARPS ? FEW_WARPS : GROUPED_WARPS;
    return {plan_least(plan_up(2 * sms, busy), plan_up(tiles, warps)), warps};
}

/* The number of groups of K for which `rows` rows fit into shared memory. */
static uint32_t slab_groups(const struct backend *backend, enum dtype dtype, uint32_t rows)
{
    return skinny_slab(dtype, rows,
                       device_of(backend)->shared_max - room_before(rows, GROUPED_WARPS));
}

template <enum dtype D, int NT>
static void start_rows(const struct backend *backend, const struct product_job *j,
                       const struct group *group, const void *x, uint32_t ldx,
                       const struct coded_rows *coded)
{
    typename format<D>::Tables tables;
    const uint32_t rows = TURN * NT;
    const uint32_t part = plan_least(slab_groups(backend, D, rows), job_groups(D, j->K));
    const struct spread spread = spread_tiles(backend, j, group);
    tables_fill(&tables);
    launch(backend, grouped_tiles<D, NT>, dim3(plan_up(group->most, rows), spread.crews, group->n),
           dim3(spread.warps * WARP),
           room_before(rows, spread.warps) + format_row(D).tables + rows * x_stride(D, part), *j,
           *group, x, ldx, *coded, part, tables);
}

/* The number of rows of a block: about twice the mean of a group, so that most groups are one
 * block, but not so many that K does not fit into shared memory, because rows would then be staged
 * for every tile. Block formats have at most 32 rows, because with their tables the sums of 64 rows
 * do not fit into registers. */
static uint32_t rows_of_block(const struct backend *backend, const struct product_job *j,
                              const struct group *group)
{
    static const uint32_t sizes[] = {8, 32, 64};
    uint32_t most = format_row(j->dtype).tables ? 1 : 2, i = 0;
    uint32_t wanted = plan_least(2 * plan_up(j->T, group->n), group->most);
    while (i < most && sizes[i] < wanted &&
           slab_groups(backend, j->dtype, sizes[i + 1]) >= job_groups(j->dtype, j->K))
        i++;
    return sizes[i];
}

template <enum dtype D>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct group *group, const void *x, uint32_t ldx,
                  const struct coded_rows *coded)
{
    uint32_t rows = rows_of_block(backend, j, group);
    if (rows == 8)
        start_rows<D, 1>(backend, j, group, x, ldx, coded);
    else if (rows == 32)
        start_rows<D, 4>(backend, j, group, x, ldx, coded);
    else if constexpr (format_row(D).tables == 0)
        start_rows<D, 8>(backend, j, group, x, ldx, coded);
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
        struct coding coding = coding_at(work, j->T, j->K);
        coded = coding_make(b, &coding, j->dtype, x, j->T, j->K);
        x = coding.code;
        ldx = coding.codes;
    }
    switch (j->dtype) {
#define START(id, ...)                                                                             \
    case DTYPE_##id: start<DTYPE_##id>(b, j, g, x, ldx, &coded); break;
        STREAMED_FORMATS(START)
#undef START
    default: assert(!"streamed");
    }
}
