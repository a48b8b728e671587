/* f32_product.cu - products of fp32 rows with F32, BF16_F32 and F16 weights, in fp32 throughout. It
 * serves to compare results with other back ends. It runs at memory speed for up to four rows; with
 * more rows the weights are read again for every four rows.
 *
 * A warp owns two rows of W. A lane loads its next eight 16-byte words before it uses the last
 * eight, so a warp has 4 KB in flight. 16 warps on an SM have 64 KB in flight, twice the amount
 * that 4.3 TB/s needs (stream.cuh). */
#include "kernels/cuda/product/finish.cuh"
#include "kernels/cuda/product/product.h"

enum { PAIR_ROWS = 4, WARPS = 8, AHEAD = 4 };

/* The values in 16 bytes of weights, as floats. */
template <class W> struct word_of {
    enum { N = 16 / sizeof(W) };
};

DEVICE void word_floats(float values[4], const float *, uint4 w)
{
    values[0] = __uint_as_float(w.x);
    values[1] = __uint_as_float(w.y);
    values[2] = __uint_as_float(w.z);
    values[3] = __uint_as_float(w.w);
}

DEVICE void word_floats(float values[8], const uint16_t *, uint4 w)
{
    const uint32_t pair[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        values[2 * i] = bf16_low(pair[i]);
        values[2 * i + 1] = bf16_high(pair[i]);
    }
}

DEVICE void word_floats(float values[8], const half16 *, uint4 w)
{
    const uint32_t pair[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        values[2 * i] = f16_float((uint16_t)pair[i]);
        values[2 * i + 1] = f16_float((uint16_t)(pair[i] >> 16));
    }
}

/* A value of x, rounded as products with weights of this type need it: F16 rounds it to fp16. */
DEVICE float met(const float *, float x) { return x; }
DEVICE float met(const uint16_t *, float x) { return x; }
DEVICE float met(const half16 *, float x) { return f16_float(f16_of(x)); }

/* Word u (16 bytes) of a row of weights; zeros beyond K. Rows of floats are read value by value if
 * their length is not a multiple of 16 bytes. */
DEVICE uint4 row_word(const uint16_t *row, uint32_t u, uint32_t K)
{
    return u * 8 < K ? load_once(row + u * 8) : make_uint4(0, 0, 0, 0);
}

DEVICE uint4 row_word(const half16 *row, uint32_t u, uint32_t K)
{
    return row_word((const uint16_t *)row, u, K); /* row may be NULL, with K = 0 */
}

DEVICE uint4 row_word(const float *row, uint32_t u, uint32_t K)
{
    uint32_t k = u * 4;
    if (k >= K)
        return make_uint4(0, 0, 0, 0);
    if (K % 4 == 0)
        return load_once(row + k);
    return make_uint4(__float_as_uint(row[k]), k + 1 < K ? __float_as_uint(row[k + 1]) : 0,
                      k + 2 < K ? __float_as_uint(row[k + 2]) : 0,
                      k + 3 < K ? __float_as_uint(row[k + 3]) : 0);
}

/* The two rows of W of a warp: rows i of both halves of a tile. */
template <class W> struct two_rows {
    const W *row[2];
    uint32_t K[2]; /* 0: the row does not exist */
};

template <class W> DEVICE struct two_rows<W> rows_at(const struct product_job &j, uint32_t pair)
{
    struct two_rows<W> rows = {{nullptr, nullptr}, {0, 0}};
    if (pair / HALF >= job_tiles(&j))
        return rows;
    struct weight_tile tile = tile_at(&j, pair / HALF);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (pair % HALF < tile.count[h]) {
            const struct operand &operand = j.w[tile.matrix[h]];
            size_t row = operand.begin + tile.row[h] + pair % HALF;
            rows.row[h] = reinterpret_cast<const W *>(operand.code + row * j.stride);
            rows.K[h] = j.K;
        }
    return rows;
}

/* sum[h][t] += the products of one word of row h of W (a, b) and of row t of x. */
template <class W, int T>
DEVICE void multiply_word(float sum[2][T], uint4 a, uint4 b, const float *x, uint32_t ld)
{
    const uint32_t N = word_of<W>::N;
    float va[N], vb[N];
    word_floats(va, static_cast<const W *>(nullptr), a);
    word_floats(vb, static_cast<const W *>(nullptr), b);
#pragma unroll
    for (int t = 0; t < T; t++)
#pragma unroll
        for (uint32_t i = 0; i < N; i += 4) {
            float4 value = *reinterpret_cast<const float4 *>(x + (uint32_t)t * ld + i);
            sum[0][t] = fmaf(va[i], value.x, sum[0][t]);
            sum[0][t] = fmaf(va[i + 1], value.y, sum[0][t]);
            sum[0][t] = fmaf(va[i + 2], value.z, sum[0][t]);
            sum[0][t] = fmaf(va[i + 3], value.w, sum[0][t]);
            sum[1][t] = fmaf(vb[i], value.x, sum[1][t]);
            sum[1][t] = fmaf(vb[i + 1], value.y, sum[1][t]);
            sum[1][t] = fmaf(vb[i + 2], value.z, sum[1][t]);
            sum[1][t] = fmaf(vb[i + 3], value.w, sum[1][t]);
        }
}

/* Adds the products of n values of K, from k on, to sum[h][t]. x: rows of x in shared memory, which
 * begin at value k. */
template <class W, int T>
DEVICE void multiply_rows(float sum[2][T], const struct two_rows<W> &rows, uint32_t k, uint32_t n,
                          const float *x, uint32_t ld)
{
    const uint32_t N = word_of<W>::N, lane = threadIdx.x % WARP, first = k / N;
    uint32_t words = plan_up(n, N);
    uint4 a[AHEAD], b[AHEAD];
#pragma unroll
    for (uint32_t u = 0; u < AHEAD; u++) {
        uint32_t at = u * WARP + lane;
        a[u] = row_word(rows.row[0], first + at, at < words ? rows.K[0] : 0);
        b[u] = row_word(rows.row[1], first + at, at < words ? rows.K[1] : 0);
    }
    for (uint32_t base = 0; base < words; base += AHEAD * WARP)
#pragma unroll
        for (uint32_t u = 0; u < AHEAD; u++) {
            uint32_t at = base + u * WARP + lane, next = at + AHEAD * WARP;
            if (at < words)
                multiply_word<W, T>(sum, a[u], b[u], x + at * N, ld);
            a[u] = row_word(rows.row[0], first + next, next < words ? rows.K[0] : 0);
            b[u] = row_word(rows.row[1], first + next, next < words ? rows.K[1] : 0);
        }
}

/* Warp w of block (i, c, g) computes pair i * WARPS + w of rows of W for T rows of x, or of group
 * g, from row c T on. K is taken in parts that fit into shared memory. */
template <class W, int T, bool GROUPED>
__global__ void __launch_bounds__(WARPS *WARP)
exact_pairs(struct product_job j, const float *x, uint32_t part, struct group groups)
{
    SHARED(float, shared);
    let_next_start();
    uint32_t pair = blockIdx.x * WARPS + threadIdx.x / WARP, first = blockIdx.y * T;
    if constexpr (GROUPED) {
        uint32_t begin;
        wait_for_inputs();
        j = group_job(j, groups, blockIdx.z, &begin);
        x += (size_t)begin * j.K;
        if (first >= j.T)
            return;
    }
    struct two_rows<W> two_rows = rows_at<W>(j, pair);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (threadIdx.x % WARP * word_of<W>::N < two_rows.K[h])
            prefetch(two_rows.row[h] + threadIdx.x % WARP * word_of<W>::N);
    wait_for_inputs();
    uint32_t rows = min(j.T - first, (uint32_t)T);
    float sum[2][T] = {};
    for (uint32_t k = 0; k < j.K; k += part) {
        uint32_t n = min(j.K - k, part), ld = plan_up(n, 8) * 8;
        for (uint32_t row = 0; row < T; row++)
            for (uint32_t i = threadIdx.x; i < ld; i += blockDim.x)
                shared[row * ld + i] = i < n && row < rows
                                           ? met(static_cast<const W *>(nullptr),
                                                 x[(size_t)(first + row) * j.K + k + i])
                                           : 0;
        __syncthreads();
        multiply_rows<W, T>(sum, two_rows, k, n, shared, ld);
        __syncthreads();
    }
    struct weight_tile tile = tile_at(&j, min(pair / HALF, job_tiles(&j) - 1));
    const struct coded_rows none = {};
#pragma unroll
    for (uint32_t row = 0; row < T; row++) {
        float a = warp_sum(sum[0][row]), b = warp_sum(sum[1][row]);
        if (threadIdx.x % WARP == row && row < rows && pair / HALF < job_tiles(&j))
            finish_pair<float, 1>(j, tile, pair % HALF, first + row, none, a, b);
    }
}

template <class W, int T, bool GROUPED>
static void start(const struct backend *backend, const struct product_job *j, const float *x,
                  const struct group *group)
{
    uint32_t most = (uint32_t)(device_of(backend)->shared_max / 2 / (T * sizeof(float)) / 8 * 8);
    uint32_t part = plan_least(plan_up(j->K, 8) * 8, most);
    launch(
        backend, exact_pairs<W, T, GROUPED>,
        dim3(plan_up(job_tiles(j) * HALF, WARPS), plan_up(group->most, T), group->n ? group->n : 1),
        dim3(WARPS * WARP), part * T * sizeof(float), *j, x, part, *group);
}

template <class W> static void start_rows(const struct backend *backend,
                                          const struct product_job *j, const float *x,
                                          const struct group *group)
{
    if (group->n > 0)
        start<W, PAIR_ROWS, true>(backend, j, x, group);
    else if (j->T == 1)
        start<W, 1, false>(backend, j, x, group);
    else if (j->T == 2)
        start<W, 2, false>(backend, j, x, group);
    else
        start<W, PAIR_ROWS, false>(backend, j, x, group);
}

void f32_product_grouped(const struct backend *backend, const struct product_job *j, const float *x,
                         const struct group *group)
{
    if (j->dtype == DTYPE_F32)
        start_rows<float>(backend, j, x, group);
    else if (j->dtype == DTYPE_F16)
        start_rows<half16>(backend, j, x, group);
    else
        start_rows<uint16_t>(backend, j, x, group);
}

void f32_product(const struct backend *backend, const struct product_job *j, const float *x)
{
    const struct group all = {nullptr, nullptr, 0, j->T};
    f32_product_grouped(backend, j, x, &all);
}
