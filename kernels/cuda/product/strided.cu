/* strided.cu - products of float matrices with any strides, for gradients (struct gemm of train.h).
 *
 * A block computes a tile of outputs, a thread DOWN x WIDE of them. DEPTH columns of both factors
 * at a time lie in shared memory as the threads read them, [DEPTH][rows]; the next columns are on
 * their way in registers meanwhile. Whichever of the strides is one, neighbouring threads read
 * neighbouring values. Every output is one fp32 sum in ascending order of k. Where the tiles are
 * fewer than the multiprocessors, blocks share a tile: each sums a part of K into work, and another
 * kernel adds the parts in order. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/train.h"

enum { ACROSS = 16, THREADS = ACROSS * ACROSS, DEPTH = 16, PAD = 4 };
/* PART_LEAST: least depth of a part of K. BLOCKS: most blocks for each multiprocessor that parts
 * and tiles together make. */
enum { PART_LEAST = 64, BLOCKS = 2 };
enum { TALL = 4, BROAD = 8, TILE = ACROSS * TALL * ACROSS * BROAD };

/* A factor and its number of rows; elements beyond them count as zero. */
struct side {
    struct factor f;
    unsigned rows;
    bool half; /* 1: rounded to bf16 */
};

/* A thread's values of SIDE rows by DEPTH columns of a factor, on their way. Value i is `rows_on`
 * i rows and `columns_on` i columns behind the first one; one of the two is 0. */
template <int SIDE> struct held {
    enum { N = SIDE * DEPTH / THREADS };
    float x[N];
    const float *from; /* the first value of the next columns */
    size_t jump;       /* from value to value */
    unsigned row, column, rows_on, columns_on;
};

/* Before columns k .. of rows `first`... Memory is contiguous along k, or along the rows. */
template <int SIDE>
DEVICE struct held<SIDE> begin_at(const struct side &s, unsigned first, unsigned k)
{
    const bool along = s.f.step == 1;
    const unsigned r = along ? threadIdx.x / DEPTH : threadIdx.x % SIDE;
    const unsigned c = along ? threadIdx.x % DEPTH : threadIdx.x / SIDE;
    struct held<SIDE> h;
    h.row = r;
    h.column = c;
    h.rows_on = along ? THREADS / DEPTH : 0;
    h.columns_on = along ? 0 : THREADS / SIDE;
    h.from = s.f.x + (first + r) * s.f.row + (k + c) * s.f.step;
    h.jump = h.rows_on * s.f.row + h.columns_on * s.f.step;
    return h;
}

/* Reads the next columns, of which `rows` and `columns` exist, and goes on. */
template <int SIDE>
DEVICE void fetch(struct held<SIDE> *h, const struct side &s, unsigned rows, unsigned columns)
{
#pragma unroll
    for (unsigned i = 0; i < held<SIDE>::N; i++) {
        const unsigned row = h->row + i * h->rows_on, column = h->column + i * h->columns_on;
        h->x[i] = row < rows && column < columns ? h->from[i * h->jump] : 0.0f;
    }
    h->from += DEPTH * s.f.step;
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

/* A thread's place of value j of EACH, in a tile of ACROSS * EACH: groups of four neighbours, so
 * that a lane reads 16 bytes beside those of the next lane. */
template <int EACH> DEVICE unsigned own(unsigned thread, unsigned j)
{
    const unsigned group = EACH < 4 ? EACH : 4;
    return j / group * group * ACROSS + thread * group + j % group;
}

template <int EACH> DEVICE void take(float v[EACH], const float *from, unsigned thread)
{
    if constexpr (EACH % 4 == 0) {
#pragma unroll
        for (unsigned j = 0; j < EACH; j += 4) {
            const float4 x = *reinterpret_cast<const float4 *>(from + own<EACH>(thread, j));
            v[j] = x.x;
            v[j + 1] = x.y;
            v[j + 2] = x.z;
            v[j + 3] = x.w;
        }
    } else {
        for (unsigned j = 0; j < EACH; j++)
            v[j] = from[own<EACH>(thread, j)];
    }
}

/* Block (j, i, part) owns tile (i, j) of the outputs, over columns part * depth .. of the factors.
 * With parts, c is [parts][M, N]. */
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
            float u[DOWN], v[WIDE];
            take<DOWN>(u, now + d * (HIGH + PAD), y);
            take<WIDE>(v, now + LEFT + d * (LONG + PAD), x);
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++)
                    sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
        }
        float *const last = now; /* others may still read it: the next columns go to `next` */
        now = next;
        next = last;
    }
    c += (size_t)blockIdx.z * a.rows * ldc;
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            const unsigned m = row + own<DOWN>(y, (unsigned)i);
            const unsigned n = column + own<WIDE>(x, (unsigned)j);
            const size_t at = m * ldc + n;
            if (m < a.rows && n < b.rows)
                c[at] = sum[i][j] + (plus ? plus[at] : 0.0f);
        }
}

/* Thread i owns output i of n: the sum of its parts, and plus. */
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
static void start(struct backend *b, const struct gemm *g, unsigned parts, float *work)
{
    constexpr int HIGH = ACROSS * DOWN, LONG = ACROSS * WIDE;
    const bool half = g->dtype == DTYPE_BF16;
    const struct side left = {g->a, (unsigned)g->M, half}, right = {g->b, (unsigned)g->N, half};
    const unsigned depth = blocks_of(blocks_of(g->K, parts), DEPTH) * DEPTH;
    parts = g->K ? blocks_of(g->K, depth) : 1;
    const bool joins = parts > 1;
    launch(b, strided_tile<DOWN, WIDE>, dim3(blocks_of(g->N, LONG), blocks_of(g->M, HIGH), parts),
           dim3(THREADS), 2 * DEPTH * (HIGH + LONG + 2 * PAD) * sizeof(float), left, right,
           (unsigned)g->K, depth, joins ? work : g->c, joins ? nullptr : g->plus,
           joins ? g->N : g->ldc);
    if (joins)
        launch(b, join_parts, dim3(blocks_of(g->M * g->N, THREADS)), dim3(THREADS), 0, g->c, work,
               parts, g->M * g->N, g->N, g->plus, g->ldc);
}

/* Uses the largest tiles that, with parts of K, leave few multiprocessors idle, or the smallest. */
static void start_fitting(struct backend *b, const struct gemm *g, float *work)
{
    const size_t sms = (size_t)device_of(b)->sms, enough = sms * 3 / 4, most = g->K / PART_LEAST;
    const bool narrow = g->N <= ACROSS * TALL;
    const size_t tiles = (size_t)blocks_of(g->M, ACROSS * TALL) *
                         blocks_of(g->N, ACROSS * (narrow ? TALL : BROAD));
    const size_t wanted = tiles < enough ? BLOCKS * sms / tiles : 1;
    const size_t parts = wanted < most ? wanted : most ? most : 1;
    if (tiles * parts >= enough && narrow)
        start<TALL, TALL>(b, g, (unsigned)parts, work);
    else if (tiles * parts >= enough)
        start<TALL, BROAD>(b, g, (unsigned)parts, work);
    else if ((size_t)blocks_of(g->M, 32) * blocks_of(g->N, 32) >= sms)
        start<2, 2>(b, g, 1, work);
    else
        start<1, 1>(b, g, 1, work);
}

void cuda_gemm(struct backend *b, const struct gemm *g, size_t n, void *work)
{
    struct range here("gemm");
    for (; n > 0; n--, g++)
        if (g->M && g->N)
            start_fitting(b, g, (float *)work);
}

/* Room for the parts of any shape: with parts there are at most BLOCKS * sms tiles. */
size_t cuda_gemm_work(const struct backend *b, size_t M, size_t N, size_t K)
{
    (void)M, (void)N;
    return K < 2 * PART_LEAST ? 0 : (size_t)device_of(b)->sms * BLOCKS * TILE * sizeof(float);
}
