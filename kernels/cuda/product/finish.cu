/* finish.cu - the last step of a product whose sums another kernel or the library has computed:
 * adds the parts in order, and turns sums into outputs (finish.cuh). It also adds rounded products
 * to y. */
#include "kernels/cuda/product/finish.cuh"

#include "kernels/cuda/product/product.h"
#include "kernels/cuda/product/wide_plan.h"
#include "kernels/cuda/values.cuh"

/* With at least MANY_ROWS rows of x a thread finishes ROWS_A_THREAD rows; there are still enough
 * threads. */
enum { THREADS = 256, PARTS_AT_ONCE = 4, MANY_ROWS = 64, ROWS_A_THREAD = 8 };

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

/* Eight threads finish the pairs of a tile for ROWS rows of x. The next eight threads take the next
 * ROWS rows, up to `together` such sets; the threads behind them take the next tiles. Parts are
 * added in order. A thread computes its addresses once for all of its rows, because this takes
 * longer than one sum. */
template <class A, class Sum, int ROWS>
__global__ void __launch_bounds__(THREADS)
finish_sums(struct product_job j, struct coded_rows rows, const Sum *sums, uint32_t splits,
            struct wide_plan plan, uint32_t together)
{
    enum { PARTS = ROWS > 1 ? 1 : PARTS_AT_ONCE };
    let_next_start();
    wait_for_inputs();
    uint32_t i = threadIdx.x % HALF, at_once = THREADS / HALF / together;
    uint32_t number = blockIdx.x * at_once + threadIdx.x / HALF / together;
    uint32_t row = (blockIdx.y * together + threadIdx.x / HALF % together) * ROWS;
    if (number >= job_tiles(&j) || row >= j.T)
        return;
    struct weight_tile tile = tile_at(&j, number);
    const uint32_t parts = parts_of(plan, splits, number);
    const Sum *from[2];
    for (int h = 0; h < 2; h++)
        from[h] = sums + (size_t)row * j.columns + j.w[tile.matrix[h]].column + tile.row[h] + i;
    Sum sum[ROWS][2] = {};
    for (uint32_t s = 0; s < parts; s += PARTS) {
        Sum part[ROWS][PARTS][2]; /* all loads come first, so that they are in flight together */
#pragma unroll
        for (uint32_t r = 0; r < ROWS; r++)
#pragma unroll
            for (uint32_t k = 0; k < PARTS; k++)
                for (int h = 0; h < 2; h++)
                    part[r][k][h] = s + k < parts && row + r < j.T && i < tile.count[h]
                                        ? from[h][((size_t)(s + k) * j.T + r) * j.columns]
                                        : 0;
#pragma unroll
        for (uint32_t r = 0; r < ROWS; r++)
#pragma unroll
            for (uint32_t k = 0; k < PARTS; k++)
                for (int h = 0; h < 2; h++)
                    sum[r][h] += part[r][k][h];
    }
#pragma unroll
    for (uint32_t r = 0; r < ROWS; r++)
        if (row + r < j.T)
            finish_pair<A, 8>(j, tile, i, row + r, rows, sum[r][0], sum[r][1]);
}

template <class A, class Sum, int ROWS>
static void start(const struct backend *backend, const struct product_job *j,
                  const struct coded_rows *rows, const void *sums, uint32_t splits,
                  const struct wide_plan *plan)
{
    uint32_t together = rows_together(j), at_once = THREADS / HALF / together;
    dim3 grid(plan_up(job_tiles(j), at_once), plan_up(j->T, together * ROWS));
    launch(backend, finish_sums<A, Sum, ROWS>, grid, dim3(THREADS), 0, *j, *rows,
           static_cast<const Sum *>(sums), splits, *plan, together);
}

void finish(const struct backend *backend, const struct product_job *j,
            const struct coded_rows *rows, const void *sums, uint32_t splits)
{
    const struct wide_plan none = {};
    if (x_coded(j->dtype))
        start<uint16_t, int32_t, 1>(backend, j, rows, sums, splits, &none);
    else if (dtype_info[j->dtype].unit == UNIT_F32)
        start<float, float, 1>(backend, j, rows, sums, splits, &none);
    else if (j->T >= MANY_ROWS)
        start<uint16_t, float, ROWS_A_THREAD>(backend, j, rows, sums, splits, &none);
    else
        start<uint16_t, float, 1>(backend, j, rows, sums, splits, &none);
}

void finish_parts(const struct backend *backend, const struct product_job *j, const float *sums,
                  const struct wide_plan *plan)
{
    const struct coded_rows none = {};
    start<uint16_t, float, ROWS_A_THREAD>(backend, j, &none, sums, 0, plan);
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
