/* strided.cu - products of float matrices with any strides, for gradients (struct gemm of train.h).
 *
 * A block computes SIDE x SIDE outputs, a thread EACH x EACH of them. DEPTH columns of both factors
 * at a time lie in shared memory as the threads read them, [DEPTH][SIDE]. Whichever of the strides
 * is one, neighbouring threads read neighbouring values. Every output is one fp32 sum in ascending
 * order of k. */
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device/runtime.h"
#include "kernels/train.h"

enum { ACROSS = 16, THREADS = ACROSS * ACROSS, DEPTH = 16, PAD = 4 };

/* A factor and its number of rows; elements beyond them, or beyond K, count as zero. */
struct side {
    struct factor f;
    size_t rows, K;
    bool half; /* 1: rounded to bf16 */
};

/* Loads to[DEPTH][SIDE + PAD] = columns k.. of rows `first`.. of a factor. */
template <int SIDE> DEVICE void bring(float *to, const struct side &s, size_t first, size_t k)
{
    const bool along = s.f.step == 1; /* memory is contiguous along k */
    for (unsigned i = threadIdx.x; i < SIDE * DEPTH; i += THREADS) {
        const unsigned r = along ? i / DEPTH : i % SIDE, c = along ? i % DEPTH : i / SIDE;
        float x = 0;
        if (first + r < s.rows && k + c < s.K)
            x = s.f.x[(first + r) * s.f.row + (k + c) * s.f.step];
        to[c * (SIDE + PAD) + r] = s.half ? bf16_float(bf16_of(x)) : x;
    }
}

/* Reads EACH neighbours from shared memory, at a multiple of so many floats. */
template <int EACH> DEVICE void take(float *v, const float *from)
{
    if constexpr (EACH == 4) {
        const float4 x = *reinterpret_cast<const float4 *>(from);
        v[0] = x.x;
        v[1] = x.y;
        v[2] = x.z;
        v[3] = x.w;
    } else {
        for (int i = 0; i < EACH; i++)
            v[i] = from[i];
    }
}

/* Block (j, i) owns outputs SIDE i.. by SIDE j..; its thread (y, x) rows y EACH.., columns x
 * EACH... */
template <int EACH>
static __global__ void __launch_bounds__(THREADS)
strided_tile(struct side a, struct side b, float *c, const float *plus, size_t ldc)
{
    constexpr int SIDE = ACROSS * EACH;
    SHARED(float, left);
    let_next_start();
    wait_for_inputs();
    float *right = left + DEPTH * (SIDE + PAD);
    const unsigned x = threadIdx.x % ACROSS * EACH, y = threadIdx.x / ACROSS * EACH;
    const size_t row = (size_t)blockIdx.y * SIDE, column = (size_t)blockIdx.x * SIDE;
    float sum[EACH][EACH] = {};
    for (size_t k = 0; k < a.K; k += DEPTH) {
        bring<SIDE>(left, a, row, k);
        bring<SIDE>(right, b, column, k);
        __syncthreads();
#pragma unroll
        for (unsigned d = 0; d < DEPTH; d++) {
            float u[EACH], v[EACH];
            take<EACH>(u, left + d * (SIDE + PAD) + y);
            take<EACH>(v, right + d * (SIDE + PAD) + x);
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++)
                    sum[i][j] = fmaf(u[i], v[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const size_t m = row + y + i, n = column + x + j, at = m * ldc + n;
            if (m < a.rows && n < b.rows)
                c[at] = sum[i][j] + (plus ? plus[at] : 0.0f);
        }
}

template <int EACH> static void start(struct backend *b, const struct gemm *g)
{
    constexpr int SIDE = ACROSS * EACH;
    const bool half = g->dtype == DTYPE_BF16;
    const struct side left = {g->a, g->M, g->K, half}, right = {g->b, g->N, g->K, half};
    launch(b, strided_tile<EACH>, dim3(blocks_of(g->N, SIDE), blocks_of(g->M, SIDE)),
           dim3(THREADS), 2 * DEPTH * (SIDE + PAD) * sizeof(float), left, right, g->c, g->plus,
           g->ldc);
}

/* Uses the largest tiles that leave no multiprocessor idle, or the smallest. */
void cuda_gemm(struct backend *b, const struct gemm *g, size_t n, void *work)
{
    struct range here("gemm");
    const size_t sms = (size_t)device_of(b)->sms;
    (void)work;
    for (; n > 0; n--, g++) {
        const size_t large = (size_t)blocks_of(g->M, 64) * blocks_of(g->N, 64);
        const size_t medium = (size_t)blocks_of(g->M, 32) * blocks_of(g->N, 32);
        if (!g->M || !g->N)
            continue;
        if (large >= sms)
            start<4>(b, g);
        else if (medium >= sms)
            start<2>(b, g);
        else
            start<1>(b, g);
    }
}

size_t cuda_gemm_work(const struct backend *b, size_t M, size_t N, size_t K)
{
    (void)b, (void)M, (void)N, (void)K;
    return 0;
}
