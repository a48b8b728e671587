/* wide.cu - products of some hundred rows of x with FP8 or 4-bit weights on the matrix units of
 * Hopper (wide_plan.h). These units multiply weights from registers by x from shared memory: a lane
 * loads 16 bytes of a row of weights, widens them to bf16 and multiplies them. So weights are read
 * from the memory of the device once, as codes. The order of k does not matter to a product, if
 * weights and x have one order: the image of x has the order of the bytes that lanes read
 * (image_rows).
 *
 * Widened values are those of widen.cu. Two warpgroups share a tile, with 64 rows of weights each;
 * one thread of a third warpgroup copies stages of x before they are used. */
#include <assert.h>
#include <string.h>

#include "kernels/cuda/cuda.h"
#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/wide_plan.h"
#include "kernels/cuda/weights/format_fp8.cuh"

enum { STEPS = WIDE_STAGE / 16, UNIT_STAGES = WIDE_UNIT / WIDE_STAGE, PIECE = 2 * WIDE_STAGE };
enum { IMAGE_THREADS = 256, GATES_BYTES = 128 };

/* ---- formats: loads and fragments of a piece of K, 128 values of two rows ---- */

/* The two rows of weights of a lane: the addresses of its first bytes. Rows that do not exist are
 * not read. */
struct lane_rows {
    const uint8_t *at[2];
    uint32_t matrix[2], row[2]; /* row: index in the matrix in memory */
    bool is[2];
};

/* The functions of a format: tables in shared memory, loads, and fragments. */
template <enum dtype D> struct wide_format;

template <> struct wide_format<DTYPE_FP8> {
    enum { SHARED_BYTES = 0 };
    struct piece {
        uint4 code[2][2]; /* [row][64 values] */
    };

    DEVICE void prepare(uint8_t *) {}

    DEVICE void load(piece *p, const struct product_job &j, const struct lane_rows &rows,
                     uint32_t k)
    {
#pragma unroll
        for (uint32_t h = 0; h < 2; h++)
#pragma unroll
            for (uint32_t c = 0; c < 2; c++)
                p->code[h][c] = load_once_if(rows.at[h] + k + c * 64, rows.is[h] && k < j.K);
    }

    /* Makes the fragments of stage s of a piece. */
    DEVICE void fragments(uint32_t a[STEPS][4], const piece &p, uint32_t s, const uint8_t *)
    {
        const uint32_t word[2][4] = {
            {p.code[0][s].x, p.code[0][s].y, p.code[0][s].z, p.code[0][s].w},
            {p.code[1][s].x, p.code[1][s].y, p.code[1][s].z, p.code[1][s].w}};
#pragma unroll
        for (uint32_t tile = 0; tile < STEPS; tile++)
#pragma unroll
            for (uint32_t i = 0; i < 4; i++)
                a[tile][i] = format<DTYPE_FP8>::pair(word[i % 2][tile], i < 2 ? 0x1404 : 0x3424);
    }
};

/* A lane reads 32 codes of each row, which belong to one block of 64. Each lane has a copy of the
 * levels of its own, in its own bank of shared memory. */
template <enum dtype D> struct wide_blocks {
    enum { LEVELS = 16 * WARP, SHARED_BYTES = (LEVELS + 256) * 4 };
    struct piece {
        uint4 code[2];
        float scale[2];
        uint32_t absmax[2];
        float offset[2];
    };

    DEVICE void prepare(uint8_t *shared)
    {
        float *to = reinterpret_cast<float *>(shared);
        for (uint32_t i = threadIdx.x; i < LEVELS; i += blockDim.x)
            to[i] = level_of(D, i / WARP);
        for (uint32_t i = threadIdx.x; D == DTYPE_NF4 && i < 256; i += blockDim.x)
            to[LEVELS + i] = dynamic_level_of(i);
    }

    DEVICE void load(piece *p, const struct product_job &j, const struct lane_rows &rows,
                     uint32_t k)
    {
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            bool is = rows.is[h] && k < j.K;
            p->code[h] = load_once_if(rows.at[h] + k / 2, is);
            p->scale[h] = p->offset[h] = 0;
            p->absmax[h] = 0;
            if (!is)
                continue;
            const struct operand &operand = j.w[rows.matrix[h]];
            size_t block = (size_t)rows.row[h] * (j.K / QUANT_BLOCK) + k / QUANT_BLOCK +
                           threadIdx.x % 4 / 2;
            p->scale[h] = operand.scale[D == DTYPE_NF4 ? block / QUANT_SUPER : block];
            if (D == DTYPE_NF4) {
                p->absmax[h] = operand.absmax[block];
                p->offset[h] = *operand.offset;
            }
        }
    }

    DEVICE void fragments(uint32_t a[STEPS][4], const piece &p, uint32_t s, const uint8_t *shared)
    {
        const float *dynamic = reinterpret_cast<const float *>(shared) + LEVELS;
        const float *level = reinterpret_cast<const float *>(shared) + threadIdx.x % WARP;
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            float absmax = p.scale[h];
            if (D == DTYPE_NF4)
                absmax = __fadd_rn(p.offset[h], __fmul_rn(dynamic[p.absmax[h]], absmax));
            const uint32_t word[2] = {s ? p.code[h].z : p.code[h].x, s ? p.code[h].w : p.code[h].y};
#pragma unroll
            for (uint32_t tile = 0; tile < STEPS; tile++)
#pragma unroll
                for (uint32_t i = 0; i < 2; i++) {
                    uint32_t byte = word[tile / 2] >> (tile % 2 * 16 + i * 8);
                    a[tile][2 * i + h] = bf16_pair(level[(byte >> 4 & 15) * WARP] * absmax,
                                                   level[(byte & 15) * WARP] * absmax);
                }
        }
    }
};
template <> struct wide_format<DTYPE_NF4> : wide_blocks<DTYPE_NF4> {
};
template <> struct wide_format<DTYPE_NF4_F32> : wide_blocks<DTYPE_NF4_F32> {
};
template <> struct wide_format<DTYPE_FP4> : wide_blocks<DTYPE_FP4> {
};

/* ---- the image of x ---- */

/* A thread writes 16 bytes of the image (wide_plan.h): values 8 half .. 8 half + 7 of step `step`
 * of a row of x. In chunk c, lane q of a row of weights reads `lane` values from k = 4 lane c +
 * lane q on; a step takes four of these values, two for each half. Neighbouring threads write the
 * steps of one chunk, because their values lie in the same sectors of x. */
static __global__ void __launch_bounds__(IMAGE_THREADS)
image_rows(uint4 *image, const uint16_t *x, uint32_t T, uint32_t K, struct wide_plan plan,
           uint32_t lane)
{
    let_next_start();
    wait_for_inputs();
    uint32_t i = blockIdx.x * IMAGE_THREADS + threadIdx.x, eights = plan.tokens / 8;
    uint32_t in_eight = i % 8, half = i / 8 % 2, in_chunk = i / 16 % (lane / 4);
    uint32_t eight = i / 4 / lane % eights, chunk = i / 4 / lane / eights;
    uint32_t step = chunk * (lane / 4) + in_chunk, row = eight * 8 + in_eight;
    if (step >= plan.units * (WIDE_UNIT / 16))
        return;
    uint32_t k = chunk * 4 * lane + in_chunk * 4 + half * 2, pair[4];
#pragma unroll
    for (uint32_t q = 0; q < 4; q++)
        pair[q] = row < T && k + q * lane < K ? *reinterpret_cast<const uint32_t *>(
                                                  x + (size_t)row * K + k + q * lane)
                                              : 0;
    image[((step * eights + eight) * 2 + half) * 8 + in_eight] =
        make_uint4(pair[0], pair[1], pair[2], pair[3]);
}

/* ---- the kernel ---- */

/* The number (tiling.h) of the tile of 16 rows of weights that this warp has in a wide tile. */
DEVICE uint32_t tile_of_warp(const struct wide_plan &plan, uint32_t tile)
{
    return (tile * plan.cluster + blockIdx.x % plan.cluster) * (WIDE_ROWS / TILE_ROWS) +
           threadIdx.x / WARP;
}

/* The rows of a lane in the tile of a unit. */
DEVICE struct lane_rows rows_at(const struct product_job &j, const struct wide_plan &plan,
                                uint32_t unit)
{
    struct lane_rows rows;
    uint32_t number = tile_of_warp(plan, unit / plan.units);
    uint32_t g = threadIdx.x % WARP / 4, q = threadIdx.x % 4;
    bool is = number < job_tiles(&j);
    const struct weight_tile tile = tile_at(&j, is ? number : 0);
#pragma unroll
    for (uint32_t h = 0; h < 2; h++) {
        const struct operand &operand = j.w[h ? tile.matrix[1] : tile.matrix[0]];
        rows.is[h] = is && g < (h ? tile.count[1] : tile.count[0]);
        rows.matrix[h] = h ? tile.matrix[1] : tile.matrix[0];
        rows.row[h] = operand.begin + (h ? tile.row[1] : tile.row[0]) + g;
        rows.at[h] = operand.code + (rows.is[h] ? (size_t)rows.row[h] * j.stride : 0) + 16 * q;
    }
    return rows;
}

/* Writes the sums of a tile to memory, as the part of this cluster, for finish.cu. */
template <int N>
DEVICE void leave_sums(const struct product_job &j, const struct wide_plan &plan,
                       const struct lane_rows &rows, uint32_t tile, const float *sum, float *sums)
{
    const uint32_t part = blockIdx.x / plan.cluster - wide_owner(&plan, tile * plan.units);
    const uint32_t first = threadIdx.x % 4 * 2;
    float *to = sums + ((size_t)part * j.T + first) * j.columns;
    size_t at[2];
    for (uint32_t h = 0; h < 2; h++)
        at[h] = j.w[rows.matrix[h]].column + rows.row[h] - j.w[rows.matrix[h]].begin;
#pragma unroll
    for (uint32_t i = 0; i < N / 8; i++)
#pragma unroll
        for (uint32_t e = 0; e < 2; e++)
#pragma unroll
            for (uint32_t h = 0; h < 2; h++)
                if (first + 8 * i + e < j.T && rows.is[h])
                    to[(size_t)(8 * i + e) * j.columns + at[h]] = sum[4 * i + 2 * h + e];
}

/* The gates of a block for each stage in the ring: full opens when the stage of x has arrived,
 * empty when the stage may be overwritten. */
struct wide_gates {
    uint64_t full[WIDE_RING], empty[WIDE_RING];
};

/* Called by one thread: copies this block's part of each stage of x to all blocks of the
 * cluster. */
DEVICE void bring(const struct wide_plan &plan, const uint8_t *image, uint8_t *ring,
                  struct wide_gates *gates, uint32_t first, uint32_t end)
{
    const uint32_t bytes = plan.tokens * WIDE_STAGE * 2, part = bytes / plan.cluster;
    const uint32_t from = blockIdx.x % plan.cluster * part;
    uint32_t slot = 0, turn = 1; /* in the first round nothing is overwritten, so no wait is
                                  * needed */
    for (uint32_t unit = first; unit < end; unit++) {
        size_t at = unit % plan.units;
        for (uint32_t n = 0; n < UNIT_STAGES; n++) {
            gate_wait(&gates->empty[slot], turn);
            gate_expect(&gates->full[slot], bytes);
            copy_bulk(ring + slot * bytes + from, image + (at * UNIT_STAGES + n) * bytes + from,
                      part, &gates->full[slot], plan.cluster);
            slot = slot + 1 == WIDE_RING ? 0 : slot + 1;
            turn ^= slot == 0;
        }
    }
}

/* Called by the two warpgroups that multiply: computes the sums over the units of this cluster, and
 * writes them. */
template <enum dtype D, int N>
DEVICE void multiply_units(const struct product_job &j, const struct wide_plan &plan,
                           const uint8_t *ring, struct wide_gates *gates, const uint8_t *tables,
                           uint32_t first, uint32_t end, float *sums)
{
    enum { STAGE_BYTES = N * WIDE_STAGE * 2 };
    typedef wide_format<D> F;
    struct lane_rows rows = rows_at(j, plan, first);
    typename F::piece piece[2];
    F::load(&piece[0], j, rows, first % plan.units * WIDE_UNIT);
    F::load(&piece[1], j, rows, first % plan.units * WIDE_UNIT + PIECE);
    wait_for_inputs();
    float sum[N / 2] = {};
    uint32_t a[2][STEPS][4], slot = 0, turn = 0;
    for (uint32_t unit = first, stop; unit < end; unit = stop) { /* one tile a turn */
        const uint32_t tile = unit / plan.units;
        bool add = false;
        stop = min(end, (tile + 1) * plan.units);
        for (; unit < stop; unit++) {
            uint32_t k = (unit + 1) % plan.units * WIDE_UNIT; /* k of the next unit */
            if (k == 0 && unit + 1 < end)
                rows = rows_at(j, plan, unit + 1);
#pragma unroll
            for (uint32_t n = 0; n < UNIT_STAGES; n++) {
                F::fragments(a[n % 2], piece[n / 2], n % 2, tables);
                if (n % 2 && unit + 1 < end)
                    F::load(&piece[n / 2], j, rows, k + n / 2 * PIECE);
                gate_wait(&gates->full[slot], turn);
                group_begin();
#pragma unroll
                for (uint32_t at_tile = 0; at_tile < STEPS; at_tile++) {
                    group_multiply<N>(sum, a[n % 2][at_tile],
                                      ring + slot * STAGE_BYTES + at_tile * N * 32, add);
                    add = true;
                }
                group_close();
                group_wait<1>(); /* the products of the stage before this one are done */
                if ((unit != first || n) && threadIdx.x % WARP < plan.cluster)
                    gate_arrive(&gates->empty[slot ? slot - 1 : WIDE_RING - 1],
                                threadIdx.x % WARP);
                slot = slot + 1 == WIDE_RING ? 0 : slot + 1;
                turn ^= slot == 0;
            }
        }
        group_wait<0>();
        group_end<N>(sum);
        leave_sums<N>(j, plan, rows_at(j, plan, tile * plan.units), tile, sum, sums);
    }
}

template <enum dtype D, int N>
__global__ void __launch_bounds__(WIDE_THREADS, 1)
wide_rows(struct product_job j, struct wide_plan plan, const uint8_t *image, float *sums)
{
    SHARED(uint8_t, ring);
    struct wide_gates *gates =
        reinterpret_cast<struct wide_gates *>(ring + WIDE_RING * N * WIDE_STAGE * 2);
    uint8_t *tables = reinterpret_cast<uint8_t *>(gates) + GATES_BYTES;
    const uint32_t first = wide_first(&plan, blockIdx.x / plan.cluster);
    const uint32_t end = wide_first(&plan, blockIdx.x / plan.cluster + 1);
    let_next_start();
    if (threadIdx.x == 0)
        for (uint32_t i = 0; i < WIDE_RING; i++) {
            gate_make(&gates->full[i], 1);
            gate_make(&gates->empty[i], plan.cluster * WIDE_WARPS);
        }
    wide_format<D>::prepare(tables);
    gates_made();
    __syncthreads();
    cluster_meet();
    if (threadIdx.x < WIDE_WARPS * WARP) {
        registers_more<232>();
        multiply_units<D, N>(j, plan, ring, gates, tables, first, end, sums);
    } else {
        registers_less<40>();
        wait_for_inputs();
        if (threadIdx.x == WIDE_WARPS * WARP)
            bring(plan, image, ring, gates, first, end);
        __syncwarp();
    }
    cluster_meet();
}

/* ---- launches ---- */

template <enum dtype D, int N>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct wide_plan *plan, const uint8_t *image, float *sums)
{
    size_t shared = WIDE_RING * N * WIDE_STAGE * 2 + GATES_BYTES + wide_format<D>::SHARED_BYTES;
    launch_clusters(backend, SHARED_ALL, plan->cluster, wide_rows<D, N>,
                    dim3(plan->clusters * plan->cluster), dim3(WIDE_THREADS), shared, *j, *plan,
                    image, sums);
}

template <enum dtype D>
static void start_some(const struct backend *backend, const struct product_job *j,
                       const struct wide_plan *plan, const uint8_t *image, float *sums)
{
    switch (plan->tokens) {
    case 128: start<D, 128>(backend, j, plan, image, sums); break;
    case 192: start<D, 192>(backend, j, plan, image, sums); break;
    case 256: start<D, 256>(backend, j, plan, image, sums); break;
    default: assert(0);
    }
}

int wide(const struct backend *backend, const struct product_job *j, const void *x, void *work)
{
    const struct device *device = device_of(backend);
    if (!device->wide || !wide_takes(j->dtype, j->T, j->K))
        return 0;
    const struct wide_plan plan = wide_plan(j, (uint32_t)device->sms, device->wide);
    uint8_t *image = static_cast<uint8_t *>(work);
    float *sums = reinterpret_cast<float *>(image + layout_up(wide_image_bytes(&plan), 256));
    launch(backend, image_rows, dim3(blocks_of(wide_image_bytes(&plan) / 16, IMAGE_THREADS)),
           dim3(IMAGE_THREADS), 0, reinterpret_cast<uint4 *>(image),
           static_cast<const uint16_t *>(x), j->T, j->K, plan, format_row(j->dtype).lane);
    switch (j->dtype) {
    case DTYPE_FP8: start_some<DTYPE_FP8>(backend, j, &plan, image, sums); break;
    case DTYPE_NF4: start_some<DTYPE_NF4>(backend, j, &plan, image, sums); break;
    case DTYPE_NF4_F32: start_some<DTYPE_NF4_F32>(backend, j, &plan, image, sums); break;
    case DTYPE_FP4: start_some<DTYPE_FP4>(backend, j, &plan, image, sums); break;
    default: assert(0);
    }
    finish_parts(backend, j, sums, &plan);
    return 1;
}

/* ---- the test at open ---- */

enum { TRIAL_ROWS = 64, TRIAL_K = 16, TRIAL_TOKENS = 128 };

/* Small numbers, so that sums are exact. */
DEVICE float trial_value(uint32_t row, uint32_t k, uint32_t odd)
{
    return (float)(int)((row * odd + k * 5) % 7) - 3;
}

/* Compares one product of a warpgroup, of a tile that a bulk copy brought, with plain sums. *right
 * += the warps whose sums are correct. */
static __global__ void __launch_bounds__(4 * WARP)
try_group(const uint8_t *image, int *right)
{
    SHARED(uint8_t, shared);
    uint64_t *gate = reinterpret_cast<uint64_t *>(shared + TRIAL_TOKENS * TRIAL_K * 2);
    let_next_start();
    wait_for_inputs();
    if (threadIdx.x == 0)
        gate_make(gate, 1);
    gates_made();
    __syncthreads();
    if (threadIdx.x == 0) {
        gate_expect(gate, TRIAL_TOKENS * TRIAL_K * 2);
        copy_bulk(shared, image, TRIAL_TOKENS * TRIAL_K * 2, gate, 1);
    }
    __syncwarp();
    gate_wait(gate, 0);
    float sum[TRIAL_TOKENS / 2] = {};
    uint32_t a[4], row = threadIdx.x / WARP * 16 + threadIdx.x % WARP / 4, q = threadIdx.x % 4;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t at = row + i % 2 * 8, k = 2 * q + i / 2 * 8;
        a[i] = bf16_pair(trial_value(at, k, 3), trial_value(at, k + 1, 3));
    }
    group_begin();
    group_multiply<TRIAL_TOKENS>(sum, a, shared, false);
    group_close();
    group_wait<0>();
    group_end<TRIAL_TOKENS>(sum);
    bool same = true;
#pragma unroll
    for (uint32_t i = 0; i < TRIAL_TOKENS / 2; i++) {
        uint32_t at = row + i % 4 / 2 * 8, token = i / 4 * 8 + 2 * q + i % 2;
        float want = 0;
        for (uint32_t k = 0; k < TRIAL_K; k++)
            want += trial_value(at, k, 3) * trial_value(token, k, 2);
        same &= sum[i] == want;
    }
    if (__all_sync(EVERY_LANE, same) && threadIdx.x % WARP == 0)
        atomicAdd(right, 1);
}

/* try_group() counts warps with correct sums. Without code for sm_90a in this object the bulk copy
 * and the product do nothing, so the count is not 4. */
void wide_open(struct backend *backend)
{
    struct device *device = device_of(backend);
    uint16_t x[TRIAL_TOKENS * TRIAL_K];
    int right = 0;
    uint8_t *here;
    if (device->major != 9 || !CHECK_MEMORY(cudaMalloc((void **)&here, sizeof x + sizeof right)))
        return;
    for (uint32_t i = 0; i < TRIAL_TOKENS * TRIAL_K; i++) {
        uint32_t row = i / 128 * 8 + i % 64 / 8, k = i / 64 % 2 * 8 + i % 8;
        const float value = (float)(int)((row * 2 + k * 5) % 7) - 3;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        x[i] = (uint16_t)(bits >> 16);
    }
    CHECK(cudaMemcpyAsync(here, x, sizeof x, cudaMemcpyHostToDevice, device->stream));
    CHECK(cudaMemsetAsync(here + sizeof x, 0, sizeof right, device->stream));
    launch(backend, try_group, dim3(1), dim3(4 * WARP), sizeof x + 128, here,
           reinterpret_cast<int *>(here + sizeof x));
    CHECK(cudaMemcpyAsync(&right, here + sizeof x, sizeof right, cudaMemcpyDeviceToHost,
                          device->stream));
    runtime_wait(backend, "open");
    CHECK(cudaFree(here));
    device->wide = right == 4 ? CLUSTER_MOST : 0;
}
