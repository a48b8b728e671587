/* strided.cu - products of float matrices with any strides, for gradients (struct gemm of train.h).
 *
 * A block computes a tile of outputs, a thread DOWN x WIDE outputs. DEPTH columns of both factors
 * at a time are in shared memory in the order in which threads read them, [DEPTH][rows]; meanwhile
 * the next columns are loaded into registers. Neighbouring threads read neighbouring values,
 * whichever of the two strides is one. Every output is one fp32 sum in ascending order of k. If
 * there are fewer tiles than multiprocessors, blocks share a tile: each block sums a part of K into
 * `work`, and a second kernel adds the parts in order. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/train.h"

enum { ACROSS = 16, THREADS = ACROSS * ACROSS, DEPTH = 16, PAD = 4 };
/* PART_LEAST: least depth of a part of K. BLOCKS: most blocks for each multiprocessor, over all
 * tiles and parts. */
enum { PART_LEAST = 64, BLOCKS = 2 };
enum { TALL = 4, BROAD = 8, TILE = ACROSS * TALL * ACROSS * BROAD };

/* A factor and its number of rows; rows beyond this number count as zero. */
struct side {
    struct factor f;
    unsigned rows;
    bool half; /* 1: values are rounded to bf16 */
};

/* A thread's values of the next SIDE rows by DEPTH columns of a factor, in registers. Value i is i
 * * rows_on rows and i * columns_on columns behind the first value; one of rows_on and columns_on
 * is 0. */
template <int SIDE> struct held {
    enum { N = SIDE * DEPTH / THREADS };
    float x[N];
    const float *from; /* the first value of the next columns */
    size_t jump;       /* distance of two values in memory */
    unsigned row, column, rows_on, columns_on;
};

/* The values before the first fetch: rows from `first` on and columns from k on. Memory is
 * contiguous along k or along the rows. */
template <int SIDE>
DEVICE struct held<SIDE> begin_at(const struct side &side, unsigned first, unsigned k)
{
    const bool along = side.f.step == 1;
    const unsigned r = along ? threadIdx.x / DEPTH : threadIdx.x % SIDE;
    const unsigned c = along ? threadIdx.x % DEPTH : threadIdx.x / SIDE;
    struct held<SIDE> held;
    held.row = r;
    held.column = c;
    held.rows_on = along ? THREADS / DEPTH : 0;
    held.columns_on = along ? 0 : THREADS / SIDE;
    held.from = side.f.x + (first + r) * side.f.row + (k + c) * side.f.step;
    held.jump = held.rows_on * side.f.row + held.columns_on * side.f.step;
    return held;
}

/* Loads the values of the next columns, and moves on. `rows` rows and `columns` columns exist;
 * other values are zeros. */
template <int SIDE>
DEVICE void fetch(struct held<SIDE> *h, const struct side &side, unsigned rows, unsigned columns)
{
#pragma unroll
    for (unsigned i = 0; i < held<SIDE>::N; i++) {
        const unsigned row = h->row + i * h->rows_on, column = h->column + i * h->columns_on;
        h->x[i] = row < rows && column < columns ? h->from[i * h->jump] : 0.0f;
    }
    h->from += DEPTH * side.f.step;
}

template <int SIDE> DEVICE void keep(float *to, struct held<SIDE> *h, bool half)
{
    const unsigned first = h->column * (SIDE + PAD) + h->row;
    const unsigned on = h->columns_on * (SIDE + PAD) + h->rows_on;
    if (half)
#pragma unroll
        for (unsigned i = 0; i < held<SIDE>::N; i++)
            h->x[i] = bf16_float(bf16_of(h->x[i]));
#pragma unroll
    for (unsigned i = 0; i < held<SIDE>::N; i++)
        to[first + i * on] = h->x[i];
}

/* The index in a tile of ACROSS * EACH of value j of the EACH values of a thread. Values are in
 * groups of four neighbours, so that the 16 bytes of a lane lie beside those of the next lane. */
template <int EACH> DEVICE unsigned own(unsigned thread, unsigned j)
{
    const unsigned group = EACH < 4 ? EACH : 4;
    return j / group * group * ACROSS + thread * group + j % group;
}

template <int EACH> DEVICE void take(float values[EACH], const float *from, unsigned thread)
{
    if constexpr (EACH % 4 == 0) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(from + own<EACH>(thread, j));
            values[j] = x.x;
            values[j + 1] = x.y;
            values[j + 2] = x.z;
            values[j + 3] = x.w;
        }
    } else {
        for (unsigned j = 0; j < EACH; j++)
            values[j] = from[own<EACH>(thread, j)];
    }
}

/* Block (j, i, part) owns tile (i, j) of the outputs, summed over `depth` columns of the factors
 * from part * depth on. With several parts c is [parts][M, N]. */
template <int DOWN, int WIDE>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
strided_tile(struct side a, struct side b, unsigned K, unsigned depth, float *c, const float *plus,
             size_t ldc)
{
    constexpr int HIGH = ACROSS * DOWN, LONG = ACROSS * WIDE;
    constexpr unsigned LEFT = DEPTH * (HIGH + PAD), ALL = LEFT + DEPTH * (LONG + PAD);
    SHARED(float, shared);
    let_next_start();
    wait_for_inputs();
    /* Lanes i and i ^ 1 have one x, i and i ^ 2 one y: then two lanes read the same 16 bytes of
     * either factor, and shared memory serves a warp in half the turns. */
    const unsigned warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const unsigned y = warp / 2 * 4 + lane / 16 * 2 + lane % 2;
    const unsigned x = warp % 2 * 8 + lane / 2 % 8;
    const unsigned row = blockIdx.y * HIGH, column = blockIdx.x * LONG;
    const unsigned begin = blockIdx.z * depth, end = min(K, begin + depth);
    float sum[DOWN][WIDE] = {};
    struct held<HIGH> left = begin_at<HIGH>(a, row, begin);
    struct held<LONG> right = begin_at<LONG>(b, column, begin);
    const unsigned rows = a.rows - row, columns = b.rows - column;
    float *now = shared, *next = shared + ALL;
    fetch<HIGH>(&left, a, rows, end - begin);
    fetch<LONG>(&right, b, columns, end - begin);
    for (unsigned k = begin; k < end; k += DEPTH) {
        const unsigned rest = end - k > DEPTH ? end - k - DEPTH : 0;
        keep<HIGH>(now, &left, a.half);
        keep<LONG>(now + LEFT, &right, b.half);
        __syncthreads();
        fetch<HIGH>(&left, a, rows, rest);
        fetch<LONG>(&right, b, columns, rest);
#pragma unroll
        for (unsigned d = 0; d < DEPTH; d++) {
            float u[DOWN], values[WIDE];
            take<DOWN>(u, now + d * (HIGH + PAD), y);
            take<WIDE>(values, now + LEFT + d * (LONG + PAD), x);
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    sum[i][j] = fmaf(u[i], values[j], sum[i][j]);
        }
        float *const last = now; /* other threads may still read `now`, so the next columns go to
                                  * the other buffer */
        now = next;
        next = last;
    }
    c += (size_t)blockIdx.z * a.rows * ldc;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const unsigned tile = row + own<DOWN>(y, (unsigned)i);
            const unsigned n = column + own<WIDE>(x, (unsigned)j);
            const size_t at = tile * ldc + n;
            if (tile < a.rows && n < b.rows)
                c[at] = sum[i][j] + (plus ? plus[at] : 0.0f);
        }
}

/* Thread i computes output i of n: the sum of its parts, plus `plus` unless that is NULL. */
static __global__ void __launch_bounds__(THREADS)
join_parts(float *c, const float *part, unsigned parts, size_t n, size_t N, const float *plus,
           size_t ldc)
{
    let_next_start();
    wait_for_inputs();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x, at = i / N * ldc + i % N;
    float sum = 0;
    if (i >= n)
        return;
#pragma unroll 8
    for (unsigned p = 0; p < parts; p++)
        sum += part[p * n + i];
    c[at] = sum + (plus ? plus[at] : 0.0f);
}

template <int DOWN, int WIDE>
static void start(struct backend *backend, const struct gemm *gemm, unsigned parts, float *work)
{
    constexpr int HIGH = ACROSS * DOWN, LONG = ACROSS * WIDE;
    const bool half = gemm->dtype == DTYPE_BF16;
    const struct side left = {gemm->a, (unsigned)gemm->M, half},
                      right = {gemm->b, (unsigned)gemm->N, half};
    const unsigned depth = blocks_of(blocks_of(gemm->K, parts), DEPTH) * DEPTH;
    parts = gemm->K ? blocks_of(gemm->K, depth) : 1;
    const bool joins = parts > 1;
    launch(backend, strided_tile<DOWN, WIDE>,
           dim3(blocks_of(gemm->N, LONG), blocks_of(gemm->M, HIGH), parts), dim3(THREADS),
           2 * DEPTH * (HIGH + LONG + 2 * PAD) * sizeof(float), left, right, (unsigned)gemm->K,
           depth, joins ? work : gemm->c, joins ? nullptr : gemm->plus,
           joins ? gemm->N : gemm->ldc);
    if (joins)
        launch(backend, join_parts, dim3(blocks_of(gemm->M * gemm->N, THREADS)), dim3(THREADS), 0,
               gemm->c, work, parts, gemm->M * gemm->N, gemm->N, gemm->plus, gemm->ldc);
}

/* Uses the largest tiles that, with parts of K, leave few multiprocessors idle, or the smallest. */
static void start_fitting(struct backend *backend, const struct gemm *gemm, float *work)
{
    const size_t sms = (size_t)device_of(backend)->sms, enough = sms * 3 / 4,
                 most = gemm->K / PART_LEAST;
    const bool narrow = gemm->N <= ACROSS * TALL;
    const size_t tiles = (size_t)blocks_of(gemm->M, ACROSS * TALL) *
                         blocks_of(gemm->N, ACROSS * (narrow ? TALL : BROAD));
    const size_t wanted = tiles < enough ? BLOCKS * sms / tiles : 1;
    const size_t parts = wanted < most ? wanted : most ? most : 1;
    if (tiles * parts >= enough && narrow)
        start<TALL, TALL>(backend, gemm, (unsigned)parts, work);
    else if (tiles * parts >= enough)
        start<TALL, BROAD>(backend, gemm, (unsigned)parts, work);
    else if ((size_t)blocks_of(gemm->M, 32) * blocks_of(gemm->N, 32) >= sms)
        start<2, 2>(backend, gemm, 1, work);
    else
        start<1, 1>(backend, gemm, 1, work);
}

void cuda_gemm(struct backend *backend, const struct gemm *gemm, size_t n, void *work)
{
    struct range here("gemm");
    for (; n > 0; n--, gemm++)
        if (gemm->M && gemm->N)
            start_fitting(backend, gemm, (float *)work);
}

/* Bytes for the parts of any shape: if there are several parts, all tiles and parts together are at
 * most BLOCKS * sms. */
size_t cuda_gemm_work(const struct backend *backend, size_t M, size_t N, size_t K)
{
    (void)M, (void)N;
    return K < 2 * PART_LEAST ? 0 : (size_t)device_of(backend)->sms * BLOCKS * TILE * sizeof(float);
}
