/* finish_int8.cu - finish.cu for INT8 and many rows of x. An outlier needs the codes of one k in
 * every row of W. In memory these codes lie a row apart, and each costs a sector of 32 bytes. So a
 * block copies 32 rows of W into shared memory, a slab of K at a time, and its warps go over the
 * rows of x with one row of W in each lane. The operations and their order are those of
 * int8_values().
 *
 * First the outliers of each row of x are listed. The list overwrites the codes of x, which the
 * sums no longer need. */
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/product/product.h"

/* Sizes of slabs in values of K. SLAB_UNIT: a slab is a multiple of it; the marks of a unit are one
 * word a lane. With SLAB_SMALL two blocks of THREADS run on an SM, and one copies while the other
 * adds. With more than MANY rows copies take little of the time, and a large slab saves stores of
 * values between slabs. */
enum { SLAB_UNIT = WARP * WARP, SLAB_SMALL = 3072, SLAB_LARGE = 4096, MANY = 512 };
enum { THREADS = 512, THREADS_MOST = 1024, LIST_WARPS = 8, TILES = WARP / TILE_ROWS };
/* Bytes added to the rows of a slab in shared memory, so that lanes that read one k use different
 * banks. */
enum { SLAB_PAD = 4 };
/* Least rows of x in a part: for fewer rows it does not pay to copy W once more to keep all SMs
 * busy. */
enum { SPLIT_LEAST = 128 };

/* The outliers of row t, from at + t * words on: first slabs + 1 indices (of the first entry of
 * each slab, and the number of entries), then the entries: k within the slab in the high half, x in
 * bf16 in the low half. */
struct outlier_lists {
    uint32_t *at;
    uint32_t words;
    uint32_t slab, slabs; /* values of K in a slab; number of slabs */
};

/* In place of the first index: the row has more outliers than its list has room for. Its outliers
 * are then searched in x. */
enum : uint32_t { CROWDED = UINT32_MAX };

/* A warp lists the outliers of one row. */
static __global__ void __launch_bounds__(LIST_WARPS *WARP)
list_outliers(struct coded_rows rows, struct outlier_lists lists, uint32_t T, uint32_t K)
{
    let_next_start();
    wait_for_inputs();
    uint32_t row = blockIdx.x * LIST_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    if (row >= T)
        return;
    const uint32_t *marks = rows.marks + (size_t)row * marks_words(K) + MARKS_BITS;
    const uint16_t *x = rows.x + (size_t)row * rows.ldx;
    uint32_t *first = lists.at + (size_t)row * lists.words, *entry = first + lists.slabs + 1;
    uint32_t room = lists.words - lists.slabs - 1, n = 0;
    for (uint32_t word = lane; word - lane < plan_up(K, WARP); word += WARP) {
        uint32_t bits = word < plan_up(K, WARP) ? marks[word] : 0, count = (uint32_t)__popc(bits);
        uint32_t at = n + lanes_below(count);
        if (lane == 0 && word * WARP % lists.slab == 0)
            first[word * WARP / lists.slab] = n;
        n = __shfl_sync(EVERY_LANE, at + count, WARP - 1);
        for (; bits && at < room; bits &= bits - 1, at++) {
            uint32_t k = word * WARP + (uint32_t)__ffs((int)bits) - 1;
            entry[at] = k % lists.slab << 16 | x[k];
        }
    }
    if (lane == 0)
        first[lists.slabs] = n;
    if (lane == 0 && n > room)
        first[0] = CROWDED;
}

/* ---- outputs ---- */

/* The row of W of a lane: row i of a half of a tile. A lane without a row works on the row of
 * another lane, and stores nothing. */
struct lane_row {
    struct weight_tile tile;
    uint32_t half, i, column;
    bool exists;
    const int8_t *code;
    float step;
};

DEVICE struct lane_row lane_row(const struct product_job &j, uint32_t block)
{
    struct lane_row r;
    uint32_t lane = threadIdx.x % WARP, at = block * TILES + lane / TILE_ROWS;
    r.tile = tile_at(&j, min(at, job_tiles(&j) - 1));
    r.half = lane / HALF % 2;
    r.i = lane % HALF;
    r.exists = at < job_tiles(&j) && r.i < (r.half ? r.tile.count[1] : r.tile.count[0]);
    bool second = r.exists && r.half;
    const struct operand &operand = j.w[second ? r.tile.matrix[1] : r.tile.matrix[0]];
    uint32_t row = (second ? r.tile.row[1] : r.tile.row[0]) + (r.exists ? r.i : 0);
    r.column = operand.column + row;
    r.code = reinterpret_cast<const int8_t *>(operand.code) +
             (size_t)(operand.begin + row) * j.stride;
    r.step = operand.scale[operand.begin + row] / INT8_TOP;
    return r;
}

/* Called by the whole block: copies n bytes, from byte `from` on, of the row of each lane to shared
 * memory; the row of lane l goes to to + l * stride. The bytes have arrived after copy_async_wait()
 * and a barrier. */
DEVICE void stage_lane_rows(int8_t *to, uint32_t stride, const int8_t *own, uint32_t from,
                            uint32_t n)
{
    uint32_t lane = threadIdx.x % WARP;
    for (uint32_t layer = threadIdx.x / WARP; layer < WARP; layer += blockDim.x / WARP) {
        unsigned long long row =
            __shfl_sync(EVERY_LANE, reinterpret_cast<unsigned long long>(own), (int)layer);
        const int8_t *code = reinterpret_cast<const int8_t *>(row) + from;
        for (uint32_t k = 4 * lane; k < n; k += 4 * WARP)
            copy_async_word(to + layer * stride + k, code + k);
    }
    copy_async_close();
}

/* A slab as a lane of a warp sees it. */
struct slab_view {
    const int8_t *code; /* codes of the lane's row */
    uint32_t *list;     /* [WARP] memory of the warp for entries */
    uint32_t s, from, n; /* s: number of the slab; its values of K are from .. from + n - 1 */
};

/* Returns y plus the products of n outliers of the list. Entries behind the n are read too, so that
 * all loads can come first. */
DEVICE float listed_added(float y, const struct slab_view &slab, float step, uint32_t n)
{
    for (uint32_t o = 0; o < n; o += 4) {
        uint4 four = *reinterpret_cast<const uint4 *>(slab.list + o);
        const uint32_t entry[4] = {four.x, four.y, four.z, four.w};
        float w[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            w[i] = __fmul_rn((float)slab.code[entry[i] >> 16], step);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            if (o + i < n)
                y = __fadd_rn(y, __fmul_rn(bf16_low(entry[i]), w[i]));
    }
    return y;
}

/* listed_added() for a row whose outliers are not listed. x: the values of the row in the slab. */
DEVICE float searched_added(float y, const struct slab_view &slab, float step, const uint16_t *x,
                            float limit)
{
    for (uint32_t k = 0; k < slab.n; k++) {
        float value = bf16_float(x[k]);
        if (!(fabsf(value) < limit))
            y = __fadd_rn(y, __fmul_rn(value, __fmul_rn((float)slab.code[k], step)));
    }
    return y;
}

/* The n outliers of a row of x in a slab; at: their entries. entry: the entry of this lane among
 * the first 32. */
struct row_part {
    const uint32_t *at;
    uint32_t n, entry;
};

DEVICE struct row_part row_part(const struct outlier_lists &lists, uint32_t row, uint32_t s)
{
    const uint32_t *first = lists.at + (size_t)row * lists.words;
    struct row_part part = {first + lists.slabs + 1 + first[s], first[s + 1] - first[s], 0};
    if (first[0] == CROWDED)
        part.n = CROWDED;
    else if (threadIdx.x % WARP < part.n)
        part.entry = part.at[threadIdx.x % WARP];
    return part;
}

/* Returns y plus the products of the outliers of a part, 32 at a time. */
DEVICE float part_added(float y, const struct slab_view &slab, float step, struct row_part part)
{
    uint32_t lane = threadIdx.x % WARP;
    for (uint32_t o = 0; o < part.n; o += WARP) {
        slab.list[lane] = part.entry;
        __syncwarp();
        y = listed_added(y, slab, step, min(part.n - o, (uint32_t)WARP));
        part.entry = o + WARP + lane < part.n ? part.at[o + WARP + lane] : 0;
        __syncwarp();
    }
    return y;
}

/* y[2] = the values of a lane's row of W for rows t and t + 1 of x, after the outliers of a slab
 * are added (if t + 1 is `end`, both are for row t). Between slabs the values are stored in place
 * of their sums. */
DEVICE void two_values(float y[2], const struct product_job &j, const struct coded_rows &rows,
                       const struct outlier_lists &lists, const struct lane_row &lane_row,
                       const struct slab_view &slab, int32_t *sums, uint32_t token, uint32_t end)
{
    struct row_part part[2];
    int32_t sum[2];
    const uint32_t row[2] = {token, min(token + 1, end - 1)};
#pragma unroll
    for (int e = 0; e < 2; e++) {
        part[e] = row_part(lists, row[e], slab.s);
        sum[e] = lane_row.exists ? sums[(size_t)row[e] * j.columns + lane_row.column] : 0;
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        y[e] = slab.s ? __int_as_float(sum[e])
                      : __fmul_rn((float)sum[e], __fmul_rn(rows.step[row[e]], lane_row.step));
        if (part[e].n == CROWDED)
            y[e] = searched_added(y[e], slab, lane_row.step,
                                  rows.x + (size_t)row[e] * rows.ldx + slab.from,
                                  quant_outlier(j.dtype));
        else
            y[e] = part_added(y[e], slab, lane_row.step, part[e]);
        if (slab.s + 1 < lists.slabs && lane_row.exists)
            sums[(size_t)row[e] * j.columns + lane_row.column] = __float_as_int(y[e]);
    }
}

/* Writes the outputs of two_values(). Lanes of first halves of tiles write row t, the other lanes
 * row t + 1. */
DEVICE void two_finished(const struct product_job &j, const struct lane_row &row, const float y[2],
                         uint32_t token, uint32_t end)
{
    float other = __shfl_xor_sync(EVERY_LANE, row.half ? y[0] : y[1], HALF);
    const float value[2] = {row.half ? other : y[0], row.half ? y[1] : other};
    int tile_exists = __shfl_sync(EVERY_LANE, (int)row.exists, (int)(threadIdx.x & TILE_ROWS));
    if (tile_exists && token + row.half < end)
        finish_values<uint16_t>(j, row.tile, row.i, token + row.half, value);
}

/* Block i finishes the i / splits-th 32 rows of W for part i % splits of the rows of x. */
static __global__ void __launch_bounds__(THREADS_MOST)
finish_tiles(struct product_job j, struct coded_rows rows, struct outlier_lists lists,
             int32_t *sums, uint32_t splits)
{
    SHARED(uint8_t, shared);
    let_next_start();
    const uint32_t warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    const uint32_t each = plan_up(j.T, splits), begin = blockIdx.x % splits * each;
    const uint32_t end = min(begin + each, j.T), stride = lists.slab + SLAB_PAD;
    const struct lane_row row = lane_row(j, blockIdx.x / splits);
    int8_t *staged = reinterpret_cast<int8_t *>(shared + blockDim.x * sizeof(uint32_t));
    uint32_t *list = reinterpret_cast<uint32_t *>(shared) + warp * WARP;
    for (uint32_t s = 0, from = 0; s < lists.slabs; s++, from += lists.slab) {
        const struct slab_view slab = {staged + threadIdx.x % WARP * stride, list, s, from,
                                       min(lists.slab, j.K - from)};
        stage_lane_rows(staged, stride, row.code, from, min(lists.slab, j.stride - from));
        if (s == 0)
            wait_for_inputs();
        copy_async_wait<0>();
        __syncthreads();
        for (uint32_t token = begin + 2 * warp; token < end; token += 2 * warps) {
            float y[2];
            two_values(y, j, rows, lists, row, slab, sums, token, end);
            if (s + 1 == lists.slabs)
                two_finished(j, row, y, token, end);
        }
        __syncthreads();
    }
}

/* ---- choices ---- */

static size_t shared_of(uint32_t slab, uint32_t threads)
{
    return threads * sizeof(uint32_t) + (size_t)WARP * (slab + SLAB_PAD);
}

static uint32_t threads_of(uint32_t slab)
{
    return slab > SLAB_SMALL ? (uint32_t)THREADS_MOST : (uint32_t)THREADS;
}

/* The size of a slab, so that all slabs have about one size. 0: not even the smallest slab fits
 * into shared memory. */
static uint32_t slab_of(const struct product_job *j, size_t shared_max)
{
    uint32_t most = j->T > MANY ? (uint32_t)SLAB_LARGE : (uint32_t)SLAB_SMALL;
    while (most && shared_of(most, threads_of(most)) > shared_max)
        most -= SLAB_UNIT;
    return most ? plan_up(plan_up(j->K, plan_up(j->K, most)), SLAB_UNIT) * SLAB_UNIT : 0;
}

/* The number of parts into which the rows of x are cut. */
static uint32_t splits_of(const struct product_job *j, uint32_t blocks, uint32_t slots)
{
    uint32_t splits = plan_least(slots / blocks, j->T / SPLIT_LEAST);
    return splits ? splits : 1;
}

void finish_int8(const struct backend *backend, const struct product_job *j,
                 const struct coding *coding, const struct coded_rows *rows, int32_t *sums)
{
    const struct device *device = device_of(backend);
    uint32_t slab = slab_of(j, device->shared_max);
    if (slab == 0) {
        finish(backend, j, rows, sums, 1);
        return;
    }
    uint32_t threads = threads_of(slab), blocks = plan_up(job_tiles(j), TILES);
    uint32_t slots = (uint32_t)device->sms * (threads == THREADS ? 2 : 1);
    uint32_t splits = splits_of(j, blocks, slots);
    struct outlier_lists lists = {reinterpret_cast<uint32_t *>(coding->code), coding->codes / 4,
                                  slab, plan_up(j->K, slab)};
    launch_in(backend, SHARED_ALL, list_outliers, dim3(plan_up(j->T, LIST_WARPS)),
              dim3(LIST_WARPS * WARP), 0, *rows, lists, j->T, j->K);
    launch_in(backend, SHARED_ALL, finish_tiles, dim3(blocks * splits), dim3(threads),
              shared_of(slab, threads), *j, *rows, lists, sums, splits);
}
