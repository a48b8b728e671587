/* test-quant-products.c - compares products of quantized formats at every level of the cpu back end
 * with ref: ref's bits for int8, and at every level the same bits for any number of threads and of
 * rows. test-quant.c tests the formats themselves. */
#include "kernels/quant.h"
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/kernels/quantized.h"
#include "tests/tap.h"

static const enum dtype blocks[] = {DTYPE_NF4, DTYPE_NF4_F32, DTYPE_FP4};
static const enum dtype q4[] = {DTYPE_Q4};

static int all_nan(const float *x, size_t n)
{
    int all = 1;
    for (size_t i = 0; i < n; i++)
        all &= isnan(x[i]);
    return all;
}

struct shape {
    size_t T, N, K;
};

static struct backend *open_ops(const struct ops *ops, size_t threads)
{
    struct backend *b = mem_zero(1, sizeof *b);
    b->ops = ops;
    b->pool = pool_new(threads);
    return b;
}

/* y = x W^T (or y += x W^T), with W made from floats or from codes. */
static void multiply(struct backend *b, float *y, const float *x, const float *w,
                     const struct codes *q, struct shape s, enum dtype dtype, int add)
{
    struct mat_source from = mat_floats(w, s.N, s.K);
    struct mat m;
    from.q = q;
    ok(!b->ops->mat_make(b, &m, &from, dtype), "%s: mat_make", b->ops->level);
    struct product p = {&m, y, add};
    void *work = mem_aligned(b->ops->matmul_work(b, s.T, s.K, s.N));
    b->ops->matmul(b, &p, 1, (struct input){.x = x}, s.T, work);
    b->ops->mat_free(b, &m);
    free(work);
}

/* Plants outliers in some rows: in one column of every row, and in single places. */
static void plant(float *x, struct shape s)
{
    for (size_t t = 0; t < s.T; t++) {
        if (s.T > 5 || s.K > 40)
            x[t * s.K + s.K / 3] = 9.5f;
        if (t % 3 == 1)
            x[t * s.K + t * 7 % s.K] = -60;
    }
}

static void bytes_case(const struct ops *ops, enum dtype dtype, struct shape s)
{
    size_t n = s.T * s.N;
    float *x = draw(s.T * s.K), *w = draw(s.N * s.K), *start = draw(n);
    float *y = mem_alloc(n * sizeof *y), *z = mem_alloc(n * sizeof *z);
    plant(x, s);
    struct backend *ref = open_ops(&ops_ref, 1);
    for (size_t threads = 1; threads <= 3; threads++)
        for (int add = 0; add < 2; add++) {
            struct backend *b = open_ops(ops, threads);
            memcpy(y, start, n * sizeof *y);
            memcpy(z, start, n * sizeof *z);
            multiply(b, y, x, w, NULL, s, dtype, add);
            multiply(ref, z, x, w, NULL, s, dtype, add);
            ok(!memcmp(y, z, n * sizeof *y), "%s %s %zux%zux%zu add %d, %zu threads: ref's bits",
               ops->level, dtype_info[dtype].name, s.T, s.N, s.K, add, threads);
            backend_close(b);
        }
    backend_close(ref);
    free(x), free(w), free(start), free(y), free(z);
}

/* Tests the largest codes in every pattern of four signs: no partial sum may saturate. */
static void extremes(const struct ops *ops, enum dtype dtype)
{
    enum { T = 16, N = 16, K = 64 };
    float x[T * K], w[N * K], y[T * N], z[T * N];
    for (size_t i = 0; i < T * K; i++)
        x[i] = w[i] = i / K >> i % 4 & 1 ? -1 : 1;
    struct backend *b = open_ops(ops, 1), *ref = open_ops(&ops_ref, 1);
    struct shape s = {T, N, K};
    multiply(b, y, x, w, NULL, s, dtype, 0);
    multiply(ref, z, x, w, NULL, s, dtype, 0);
    ok(!memcmp(y, z, sizeof y) && y[0] > 59 && y[N - 1] < -59,
       "%s %s: products of the largest codes do not saturate", ops->level, dtype_info[dtype].name);
    backend_close(b);
    backend_close(ref);
}

/* The largest |y - z|, as a share of sum |x| |w|. */
static double blocks_error(const float *y, const float *z, const float *x, const float *w,
                        struct shape s)
{
    double worst = 0;
    for (size_t t = 0; t < s.T; t++)
        for (size_t j = 0; j < s.N; j++) {
            double sum = 0;
            for (size_t k = 0; k < s.K; k++)
                sum += fabs((double)x[t * s.K + k] * w[j * s.K + k]);
            double far = fabs((double)y[t * s.N + j] - z[t * s.N + j]);
            worst = far / sum > worst || far != far ? far / sum : worst;
        }
    return worst;
}

static void blocks_case(const struct ops *ops, enum dtype dtype, struct shape s)
{
    size_t n = s.T * s.N;
    float *x = draw(s.T * s.K), *w = draw(s.N * s.K), *z = mem_alloc(n * sizeof *z), *y[3];
    struct backend *ref = open_ops(&ops_ref, 1);
    multiply(ref, z, x, w, NULL, s, dtype, 0);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = open_ops(ops, threads);
        y[threads - 1] = mem_alloc(n * sizeof *z);
        multiply(b, y[threads - 1], x, w, NULL, s, dtype, 0);
        backend_close(b);
    }
    double e = blocks_error(y[0], z, x, w, s);
    /* both sides round x and the levels alike; only fp32 sums differ, by at most K 2^-24 */
    ok(e < 1e-6, "%s %s %zux%zux%zu against ref: %.1e of sum |x||w|", ops->level,
       dtype_info[dtype].name, s.T, s.N, s.K, e);
    ok(!memcmp(y[0], y[1], n * sizeof *z) && !memcmp(y[0], y[2], n * sizeof *z),
       "%s %s %zux%zux%zu: same bits at 1, 2 and 3 threads", ops->level, dtype_info[dtype].name,
       s.T, s.N, s.K);
    backend_close(ref);
    free(x), free(w), free(z), free(y[0]), free(y[1]), free(y[2]);
}

/* The bits of a row must not depend on other rows, nor on whether floats or codes were given. */
static void alone(const struct ops *ops, enum dtype dtype)
{
    struct shape s = {40, 77, 448}, one = {1, 77, 448};
    float *x = draw(s.T * s.K), *w = draw(s.N * s.K), *y = mem_alloc(s.T * s.N * sizeof *y);
    struct backend *b = open_ops(ops, 2);
    struct mat_source from = mat_floats(w, s.N, s.K);
    struct codes q;
    int same = 1;
    plant(x, s);
    void *block = quant_make(&q, &from, dtype, b->pool);
    multiply(b, y, x, w, NULL, s, dtype, 0);
    for (size_t t = 0; t < s.T; t++) {
        one.T = t % 5 + 1 < s.T - t ? t % 5 + 1 : 1;
        float *few = mem_alloc(one.T * s.N * sizeof *few);
        multiply(b, few, x + t * s.K, w, t % 2 ? &q : NULL, one, dtype, 0);
        same &= !memcmp(few, y + t * s.N, one.T * s.N * sizeof *few);
        free(few);
    }
    ok(same, "%s dtype %d: few rows, from codes or floats, give the bits of the batch", ops->level,
       (int)dtype);
    x[3 * s.K + 20] = NAN;
    multiply(b, y, x, w, NULL, s, dtype, 0);
    ok(all_nan(y + 3 * s.N, s.N) && !isnan(y[2 * s.N]) && !isnan(y[4 * s.N]),
       "%s dtype %d: a NaN in a row is in its outputs and in no other's", ops->level, (int)dtype);
    backend_close(b);
    free(x), free(w), free(y), free(block);
}

static void embedding(const struct ops *ops, enum dtype dtype)
{
    enum { N = 301, K = 192 };
    float *w = draw(N * K), *out = mem_alloc(3 * K * sizeof *out), row[K];
    int32_t token[3] = {N - 1, 0, N / 2};
    struct backend *b = open_ops(ops, 2);
    struct mat_source s = mat_floats(w, N, K);
    struct codes q;
    struct mat m;
    int same = 1;
    void *block = quant_make(&q, &s, dtype, b->pool);
    b->ops->mat_make(b, &m, &s, dtype);
    b->ops->embed(b, out, &m, token, 3);
    for (int i = 0; i < 3; i++) {
        quant_floats(&q, K, (size_t)token[i], 1, row);
        same &= !memcmp(row, out + i * K, sizeof row);
    }
    ok(same, "%s dtype %d: an embedding is the decoded row", ops->name, (int)dtype);
    b->ops->mat_free(b, &m);
    ok(b->memory.allocated == 0, "%s dtype %d: all memory given back", ops->name, (int)dtype);
    backend_close(b);
    free(w), free(out), free(block);
}

static void products(const struct ops *ops)
{
    static const struct shape any[] = {{1, 1, 1},   {1, 33, 7},    {5, 65, 31},   {13, 31, 64},
                                       {7, 96, 99}, {96, 70, 130}, {40, 129, 1021}};
    /* with 3 and 5 blocks a row the bounds of double quantization lie anywhere in a row; 300 blocks
     * are more than one block of double quantization */
    static const struct shape nibbles[] = {{1, 1, 64},   {3, 200, 192}, {25, 333, 320},
                                           {2, 7, 19200}, {50, 96, 128}, {6, 40, 832}};
    extremes(ops, DTYPE_INT8);
    extremes(ops, DTYPE_Q4);
    EACH(d, bytes) {
        for (size_t i = 0; i < sizeof any / sizeof *any; i++)
            bytes_case(ops, *d, any[i]);
        alone(ops, *d);
        embedding(ops, *d);
    }
    EACH(d, q4) {
        for (size_t i = 0; i < sizeof nibbles / sizeof *nibbles; i++)
            bytes_case(ops, *d, nibbles[i]);
        alone(ops, *d);
        embedding(ops, *d);
    }
    EACH(d, blocks) {
        for (size_t i = 0; i < sizeof nibbles / sizeof *nibbles; i++)
            blocks_case(ops, *d, nibbles[i]);
        alone(ops, *d);
        embedding(ops, *d);
    }
}

int main(void)
{
    EACH(d, bytes)
        embedding(&ops_ref, *d);
    EACH(d, blocks)
        embedding(&ops_ref, *d);
    EACH(d, q4)
        embedding(&ops_ref, *d);
    for (size_t i = 0; levels_at(i); i++)
        products(levels_at(i));
    return tap_done();
}
