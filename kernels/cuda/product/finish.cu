/* finish.cu - the last step of a product whose sums another kernel or the library has computed:
 * adds the parts in order, and turns sums into outputs (finish.cuh). It also adds rounded products
 * to y. */
#include "kernels/cuda/product/finish.cuh"

#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/wide_plan.h"
#include "kernels/cuda/values.cuh"

/* With at least MANY_ROWS bf16 rows a thread finishes a whole tile, if whole_tiles() is 1. There
 * are still enough threads. */
enum { THREADS = 256, PARTS_AT_ONCE = 4, MANY_ROWS = 64, WHOLE_THREADS = 128, WHOLE_PARTS = 2 };

/* The number of rows of x that a block finishes together. With INT8 their outliers need the same
 * rows of weights, which are then in the L1 cache. */
static uint32_t rows_together(const struct product_job *j)
{
    uint32_t rows = 1;
    while (x_coded(j->dtype) && rows < j->T && rows < THREADS / HALF)
        rows *= 2;
    return rows;
}

/* The number of parts of the sums of tile `number`: `splits` for every tile, or after wide.cu
 * (plan.clusters > 0) wide_parts(). */
DEVICE uint32_t parts_of(const struct wide_plan &plan, uint32_t splits, uint32_t number)
{
    if (!plan.clusters)
        return splits;
    return wide_parts(&plan, number / (plan.cluster * WIDE_ROWS / TILE_ROWS));
}

/* Eight threads finish the pairs of a tile for a row of x. The next eight threads take the next
 * row, up to `together` rows; the threads behind them take the next tiles. Parts are added in
 * order. */
template <class A, class Sum>
__global__ void __launch_bounds__(THREADS)
finish_sums(struct product_job j, struct coded_rows rows, const Sum *sums, uint32_t splits,
            struct wide_plan plan, uint32_t together)
{
    let_next_start();
    wait_for_inputs();
    uint32_t i = threadIdx.x % HALF, at_once = THREADS / HALF / together;
    uint32_t number = blockIdx.x * at_once + threadIdx.x / HALF / together;
    uint32_t row = blockIdx.y * together + threadIdx.x / HALF % together;
    if (number >= job_tiles(&j) || row >= j.T)
        return;
    struct weight_tile tile = tile_at(&j, number);
    Sum sum[2];
    add_parts<PARTS_AT_ONCE>(sum, j, tile, i, row, sums, parts_of(plan, splits, number));
    finish_pair<A, 8>(j, tile, i, row, rows, sum[0], sum[1]);
}

/* ---- many rows: whole tiles ---- */

/* Puts eight outputs of section i, from column `at` of row `row` on: as finish_one(). */
DEVICE void put_eight(const struct product_job &j, uint32_t i, uint32_t row, uint32_t at,
                      float value[8])
{
    if (j.kind == JOB_FLOATS) {
        values_store<8>(row_of<float>(j, i, row) + at, value);
        return;
    }
    for (int k = 0; k < 8; k++)
        value[k] = act_rounded<uint16_t>(value[k]);
    if (j.kind == JOB_QKV && i > 0) {
        uint32_t slot = j.slot ? (uint32_t)j.slot[row] : row;
        if (j.cache_f32)
            values_store<8>(row_of<float>(j, i, slot) + at, value);
        else
            values_store<8>(row_of<uint16_t>(j, i, slot) + at, value);
        return;
    }
    uint16_t *y = row_of<uint16_t>(j, i, row) + at;
    if (j.add[i]) {
        float old[8];
        values_load<8>(old, y);
        for (int k = 0; k < 8; k++)
            value[k] += old[k];
    }
    values_store<8>(y, value);
}

/* Rotates the pairs of a tile of q or k. */
DEVICE void rotate_eight(const struct product_job &j, const struct weight_tile &tile, uint32_t row,
                         float first[8], float second[8])
{
    uint32_t half = j.head_dim / 2;
    const float *table = j.table + (size_t)row * j.head_dim + tile.row[0] % j.head_dim;
    float c[8], s[8];
    values_load<8>(c, table);
    values_load<8>(s, table + half);
    for (int k = 0; k < 8; k++) {
        float turned[2];
        turn_pair<uint16_t>(turned, first[k], second[k], c[k], s[k]);
        first[k] = turned[0];
        second[k] = turned[1];
    }
}

/* A thread finishes all pairs of a tile for a row of x, with 16-byte accesses. The tile has all its
 * 16 rows (whole_tiles()). Parts are added in order. */
static __global__ void __launch_bounds__(WHOLE_THREADS)
finish_whole(struct product_job j, const float *sums, uint32_t splits, struct wide_plan plan)
{
    let_next_start();
    wait_for_inputs();
    const uint32_t number = blockIdx.x * WHOLE_THREADS + threadIdx.x, row = blockIdx.y;
    if (number >= job_tiles(&j))
        return;
    const struct weight_tile tile = tile_at(&j, number);
    const uint32_t parts = parts_of(plan, splits, number);
    float value[2][8] = {};
    for (uint32_t s = 0; s < parts; s += WHOLE_PARTS) {
        float part[WHOLE_PARTS][2][8]; /* all loads come first */
#pragma unroll
        for (uint32_t k = 0; k < WHOLE_PARTS; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (s + k < parts)
                    values_load<8>(part[k][h], sums + ((size_t)(s + k) * j.T + row) * j.columns +
                                                   j.w[tile.matrix[h]].column + tile.row[h]);
#pragma unroll
        for (uint32_t k = 0; k < WHOLE_PARTS; k++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                for (int i = 0; i < 8; i++)
                    value[h][i] += s + k < parts ? part[k][h][i] : 0;
    }
    const struct coded_rows none = {};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float sum[2] = {value[0][i], value[1][i]};
        float of[2];
        sum_values<1>(of, j, tile, (uint32_t)i, none, row, sum);
        value[0][i] = of[0];
        value[1][i] = of[1];
    }
    if (j.kind == JOB_GATED) {
        for (int i = 0; i < 8; i++)
            value[0][i] = gated_value<uint16_t>(value[0][i], value[1][i]);
        values_store<8>(row_of<uint16_t>(j, 0, row) + tile.row[0], value[0]);
        return;
    }
    if (j.kind == JOB_QKV && tile.section < 2)
        rotate_eight(j, tile, row, value[0], value[1]);
    put_eight(j, tile.section, row, tile.row[0], value[0]);
    put_eight(j, tile.section, row, tile.row[1], value[1]);
}

/* 1 if all tiles of a job have all their rows, and the sums, outputs and the table can be accessed
 * 16 bytes at a time. */
static int whole_tiles(const struct product_job *j, const void *sums)
{
    int whole = (uintptr_t)sums % 16 == 0 && j->columns % 4 == 0;
    for (uint32_t i = 0; i < j->n; i++) {
        uint32_t size = job_value_bytes(j, i);
        int pairs = j->kind == JOB_GATED || (j->kind == JOB_QKV && i < 2);
        whole &= j->w[i].rows % (pairs ? HALF : TILE_ROWS) == 0 && j->w[i].column % 4 == 0 &&
                 (uintptr_t)j->y[i] % 16 == 0 && (size_t)j->ldy[i] * size % 16 == 0;
    }
    return whole && (j->kind != JOB_QKV ||
                     (j->head_dim % TILE_ROWS == 0 && (uintptr_t)j->table % 16 == 0));
}

template <class A, class Sum>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct coded_rows *rows, const void *sums, uint32_t splits,
                  const struct wide_plan *plan)
{
    uint32_t together = rows_together(j), at_once = THREADS / HALF / together;
    dim3 grid(plan_up(job_tiles(j), at_once), plan_up(j->T, together));
    launch(backend, finish_sums<A, Sum>, grid, dim3(THREADS), 0, *j, *rows,
           static_cast<const Sum *>(sums), splits, *plan, together);
}

/* Finishes fp32 sums of bf16 rows. */
static void start_rows(const struct backend *backend, const struct product_job *j,
                       const struct coded_rows *rows, const void *sums, uint32_t splits,
                       const struct wide_plan *plan)
{
    if (j->T < MANY_ROWS || !whole_tiles(j, sums)) {
        start<uint16_t, float>(backend, j, rows, sums, splits, plan);
        return;
    }
    launch(backend, finish_whole, dim3(plan_up(job_tiles(j), WHOLE_THREADS), j->T),
           dim3(WHOLE_THREADS), 0, *j, static_cast<const float *>(sums), splits, *plan);
}

void finish(const struct backend *backend, const struct product_job *j,
            const struct coded_rows *rows, const void *sums, uint32_t splits)
{
    const struct wide_plan none = {};
    if (x_coded(j->dtype))
        start<uint16_t, int32_t>(backend, j, rows, sums, splits, &none);
    else if (dtype_info[j->dtype].unit == UNIT_F32)
        start<float, float>(backend, j, rows, sums, splits, &none);
    else
        start_rows(backend, j, rows, sums, splits, &none);
}

void finish_parts(const struct backend *backend, const struct product_job *j, const float *sums,
                  const struct wide_plan *plan)
{
    const struct coded_rows none = {};
    start_rows(backend, j, &none, sums, 0, plan);
}

/* Thread i adds values N i .. N i + N - 1 of a product, which is already rounded, to y. */
template <int N>
static __global__ void __launch_bounds__(THREADS)
add_values(uint16_t *y, const uint16_t *product, size_t n)
{
    let_next_start();
    wait_for_inputs();
    size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * N;
    float sum[N], part[N];
    if (i >= n)
        return;
    values_load<N>(sum, y + i);
    values_load<N>(part, product + i);
    for (int k = 0; k < N; k++)
        sum[k] += part[k];
    values_store<N>(y + i, sum);
}

static void add_now(const struct backend *backend, void *y, const void *product, size_t n)
{
    uint16_t *to = static_cast<uint16_t *>(y);
    const uint16_t *from = static_cast<const uint16_t *>(product);
    if (values_wide(to, n, n, sizeof *to) && values_wide(from, n, n, sizeof *from))
        launch(backend, add_values<WIDE>, dim3(blocks_of(n / WIDE, THREADS)), dim3(THREADS), 0, to,
               from, n);
    else
        launch(backend, add_values<1>, dim3(blocks_of(n, THREADS)), dim3(THREADS), 0, to, from, n);
}

void finish_add(const struct backend *backend, void *y, const void *product, size_t n)
{
    device_settle(backend);
    device_of(backend)->later = {add_now, y, product, n};
}
