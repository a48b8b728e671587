/* The quantized formats of a CPU: codes and values by definition, and their products at every level
 * of the cpu back end against ref. */
#include "kernels/quant.h"
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 11};
static const enum dtype bytes[] = {DTYPE_INT8, DTYPE_INT8_VECTOR};
static const enum dtype blocks[] = {DTYPE_NF4, DTYPE_NF4_F32, DTYPE_FP4};
#define EACH(d, list)                                                                           \
    for (const enum dtype *d = (list); d < (list) + sizeof(list) / sizeof *(list); d++)

static float *draw(size_t n)
{
    float *x = mem_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
    return x;
}

static void tables(void)
{
    int rounded = 1, ascending = 1, mirrored = 1;
    EACH(d, blocks)
        for (int i = 0; i < 16; i++)
            rounded &= quant_levels_bf16(*d)[i] == bf16_of(quant_levels(*d)[i]) &&
                       !memcmp(&(float){level_of(*d, (unsigned)i)}, &quant_levels(*d)[i], 4);
    for (int i = 1; i < 256; i++)
        ascending &= dynamic_level[i] > dynamic_level[i - 1];
    for (int i = 0; i < 127; i++)
        mirrored &= dynamic_level[126 - i] == -dynamic_level[128 + i];
    ok(rounded, "the bf16 levels are the levels rounded");
    ok(ascending && mirrored && dynamic_level[127] == 0 && dynamic_level[255] == 1,
       "the dynamic map ascends, mirrors and holds 0 and 1");
    /* values of bitsandbytes 0.50.2, create_dynamic_map(signed=True) */
    static const struct {
        int at;
        float value;
    } known[] = {{128, 0x1.27476ep-21f}, {138, 0x1.02de02p-11f}, {139, 0x1.3dd982p-11f},
                 {150, 0x1.56041ap-8f},  {170, 0x1.5ae146p-5f},  {190, 0x1.93d70ap-4f},
                 {191, 0x1.b66668p-4f},  {254, 0x1.fc6666p-1f}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ok(dynamic_level[known[i].at] == known[i].value, "dynamic map %d: %a", known[i].at,
           (double)dynamic_level[known[i].at]);
}

static void known_codes(void)
{
    int8_t code[4];
    float row[4] = {1, -2, 0.5f, 1.5f / 127};
    float scale = quant_int8(row, 4, code);
    ok(scale == 2 && code[0] == 64 && code[1] == -127 && code[2] == 32 && code[3] == 1,
       "int8: 63.5 -> 64 (even), -127, 31.75 -> 32, 0.75 -> 1");
    float w[64];
    uint8_t pairs[32];
    float a;
    int good = 1;
    for (int i = 0; i < 64; i++)
        w[i] = 2 * quant_levels(DTYPE_NF4)[i % 16];
    quant_blocks(DTYPE_NF4, w, 64, pairs, &a);
    for (int i = 0; i < 32; i++)
        good &= pairs[i] == ((2 * i % 16) << 4 | (2 * i + 1) % 16);
    ok(a == 2 && good && pairs[0] == 0x01 && pairs[31] == 0xef,
       "nf4: levels are their own codes, the first of a byte in its high half");
    w[0] = 2 * 0.0397f, w[1] = 2 * 0.0399f, w[2] = 2 * -0.848f, w[3] = 2 * -0.8482f;
    quant_blocks(DTYPE_NF4, w, 64, pairs, &a);
    ok(pairs[0] == 0x78 && pairs[1] == 0x10, "nf4: the nearest level on both sides of a middle");
}

/* Codes of bitsandbytes 0.50.2, quantize_fp4, on both sides of each of its bounds. */
static void fp4_codes(void)
{
    static const struct {
        float below, above;
        unsigned low, high;
    } bound[] = {{0.0026f, 0.00261f, 0, 1}, {0.0859f, 0.086f, 1, 6},   {0.2083f, 0.2084f, 6, 7},
                 {0.2916f, 0.2917f, 7, 4},  {0.4166f, 0.4167f, 4, 5},  {0.5833f, 0.5834f, 5, 2},
                 {0.8333f, 0.8334f, 2, 3}};
    int good = 1, own = 1;
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
        good &= level_code(DTYPE_FP4, bound[i].below) == bound[i].low &&
                level_code(DTYPE_FP4, bound[i].above) == bound[i].high &&
                level_code(DTYPE_FP4, -bound[i].below) == (bound[i].low | 8) &&
                level_code(DTYPE_FP4, -bound[i].above) == (bound[i].high | 8);
    for (unsigned i = 0; i < 16; i++)
        own &= level_code(DTYPE_FP4, quant_levels(DTYPE_FP4)[i]) == (i == 8 ? 0 : i);
    ok(good, "fp4: the codes of bitsandbytes on both sides of its bounds");
    ok(own, "fp4: levels are their own codes, but -0, which has that of 0");
    ok(level_of(DTYPE_FP4, 3) == 1 && level_of(DTYPE_FP4, 10) == -0.66666667f &&
           level_of(DTYPE_FP4, 1) == 0.0625f / 12,
       "fp4: a code is a sign and one of eight sizes");
}

static double rms(const float *x, const float *y, size_t n)
{
    double far = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        far += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
        size += (double)x[i] * x[i];
    }
    return sqrt(far / size);
}

/* Relative error of Gaussian values in rows of 64. */
static void errors(struct pool *pool)
{
    enum { ROWS = 4000, K = 64 };
    float *w = draw(ROWS * K), *back = mem_alloc(ROWS * K * sizeof *back);
    struct mat_source s = mat_floats(w, ROWS, K);
    static const struct {
        enum dtype dtype;
        double error;
    } expected[] = {{DTYPE_INT8, 0.0059}, {DTYPE_INT8_VECTOR, 0.0059}, {DTYPE_NF4, 0.0920},
                    {DTYPE_NF4_F32, 0.0920}, {DTYPE_FP4, 0.1217}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct codes q;
        void *block = quant_make(&q, &s, expected[i].dtype, pool);
        quant_floats(&q, K, 0, ROWS, back);
        double e = rms(w, back, ROWS * K);
        ok(fabs(e / expected[i].error - 1) < 0.05, "%s of Gaussian values: error %.4f, expected "
           "%.4f", dtype_info[expected[i].dtype].name, e, expected[i].error);
        free(block);
    }
    free(w), free(back);
}

/* Double quantization of absmax[n] by one thread; returns the offset. */
static float fold(float *absmax, size_t n, uint8_t *code, float *scale)
{
    struct quant_target t = {.block_scale = absmax, .absmax = code, .scale = scale};
    struct pool *pool = pool_new(1);
    float m = quant_nf4_format.fold(&t, n, pool);
    pool_free(pool);
    return m;
}

static void double_quantization(void)
{
    enum { N = 1000 };
    float a[N], scale[4];
    uint8_t code[N];
    double worst = 0;
    for (int i = 0; i < N; i++)
        a[i] = (float)fabs(2.5 + 0.3 * rng_normal(&rng));
    float m = fold(a, N, code, scale);
    struct codes q = {.dtype = DTYPE_NF4, .absmax = code, .scale = scale, .offset = m};
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs((double)quant_absmax_at(&q, (size_t)i) - a[i]) /
                                scale[i / 256]);
    /* half the widest step of the map: 0.9 / 64 / 2 */
    ok(worst > 0.003 && worst < 0.00704, "absmax comes back within %.5f of its scale", worst);
    for (int i = 0; i < N; i++)
        a[i] = 3;
    m = fold(a, N, code, scale);
    q.offset = m;
    ok(m == 3 && quant_absmax_at(&q, 0) == 3 && quant_absmax_at(&q, N - 1) == 3,
       "equal absmax are exact");
}

static int all_nan(const float *x, size_t n)
{
    int all = 1;
    for (size_t i = 0; i < n; i++)
        all &= isnan(x[i]);
    return all;
}

static int all_zero(const float *x, size_t n)
{
    int all = 1;
    for (size_t i = 0; i < n; i++)
        all &= x[i] == 0;
    return all;
}

/* One row of 64 values of the matrix, to codes and back. */
static void through(enum dtype dtype, const float *w, float *out, struct pool *pool)
{
    struct mat_source s = mat_floats(w, 1, 64);
    struct codes q;
    void *block = quant_make(&q, &s, dtype, pool);
    quant_floats(&q, 64, 0, 1, out);
    free(block);
}

static void odd_values(enum dtype dtype, struct pool *pool)
{
    const char *name = dtype_info[dtype].name;
    float w[64] = {0}, out[64];
    through(dtype, w, out, pool);
    ok(all_zero(out, 64), "%s: zeros stay zeros", name);
    w[5] = 0x1p-130f;
    through(dtype, w, out, pool);
    ok(all_zero(out, 64), "%s: values whose reciprocal overflows count as zeros", name);
    w[5] = 0x1p-110f;
    through(dtype, w, out, pool);
    ok(fabs((double)out[5] / w[5] - 1) < 1e-6 && out[4] == 0, "%s: small values do not", name);
    w[6] = 3e38f;
    through(dtype, w, out, pool);
    ok(fabs((double)out[6] / w[6] - 1) < 1e-6, "%s: nor do large ones overflow", name);
    w[7] = INFINITY;
    through(dtype, w, out, pool);
    ok(all_nan(out, 64), "%s: an infinity makes its row NaN", name);
    w[7] = NAN;
    through(dtype, w, out, pool);
    ok(all_nan(out, 64), "%s: so does a NaN", name);
}

static void every_code(void)
{
    uint8_t byte[256], pairs[256 * 32] = {0};
    float scale[256], out[256 * 64];
    int good = 1;
    for (int i = 0; i < 256; i++) {
        byte[i] = (uint8_t)i;
        scale[i] = 2;
        memset(pairs + i * 32, i, 32);
    }
    struct codes q = {.dtype = DTYPE_INT8, .code = byte, .scale = scale};
    quant_floats(&q, 256, 0, 1, out);
    for (int i = 0; i < 256; i++)
        good &= out[i] == (float)(int8_t)i * (2.0f / 127);
    ok(good, "int8: every byte has a value");
    q = (struct codes){DTYPE_NF4, pairs, byte, scale, 5};
    quant_floats(&q, 64, 0, 256, out);
    good = 1;
    for (int i = 0; i < 256; i++) {
        float a = 5 + dynamic_level[i] * 2;
        good &= out[i * 64] == quant_levels(DTYPE_NF4)[i >> 4] * a &&
                out[i * 64 + 63] == quant_levels(DTYPE_NF4)[i & 15] * a;
    }
    ok(good, "nf4: every byte and every absmax code has its values");
    q = (struct codes){.dtype = DTYPE_FP4, .code = pairs, .scale = scale};
    scale[17] = 3;
    quant_floats(&q, 64, 0, 256, out);
    good = 1;
    for (int i = 0; i < 256; i++)
        good &= out[i * 64] == quant_levels(DTYPE_FP4)[i >> 4] * scale[i] &&
                out[i * 64 + 63] == quant_levels(DTYPE_FP4)[i & 15] * scale[i];
    ok(good, "fp4: every byte has its values, a block its own scale");
}

static void rows_with_outliers(void)
{
    float x[8] = {1, 6, -5.9f, -7, NAN, 5.9f, -INFINITY, 0};
    int8_t code[8];
    uint32_t outlier[8];
    size_t n;
    float scale = quant_int8_row(x, 8, quant_outlier(DTYPE_INT8), code, outlier, &n);
    ok(scale == 5.9f && n == 4 && outlier[0] == 1 && outlier[1] == 3 && outlier[2] == 4 &&
           outlier[3] == 6,
       "outliers: 6, -7, NaN and infinity are, 5.9 is not");
    ok(code[1] == 0 && code[4] == 0 && code[2] == -127 && code[5] == 127 && code[0] == 22,
       "the others are coded as if outliers were zeros");
    scale = quant_int8_row(x, 8, quant_outlier(DTYPE_INT8_VECTOR), code, outlier, &n);
    ok(scale == 7 && n == 2 && outlier[0] == 4 && outlier[1] == 6,
       "int8-vector: only NaN and infinity are");
    ok(code[3] == -127 && code[1] == 109 && code[0] == 18 && code[4] == 0,
       "and the largest sets the scale of all");
}

static void same_codes(void)
{
    enum { ROWS = 70, K = 192, BLOCKS = ROWS * K / 64 };
    float *w = draw(ROWS * K), absmax[BLOCKS], scale[ROWS];
    uint8_t code[ROWS * K], second[BLOCKS];
    struct mat_source s = mat_floats(w, ROWS, K);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);
        struct codes q;
        void *block = quant_make(&q, &s, DTYPE_NF4, pool);
        quant_blocks(DTYPE_NF4, w, ROWS * K, code, absmax);
        float m = fold(absmax, BLOCKS, second, scale);
        ok(m == q.offset && !memcmp(code, q.code, ROWS * K / 2) &&
               !memcmp(second, q.absmax, BLOCKS) &&
               !memcmp(scale, q.scale, sizeof(float) * ((BLOCKS + 255) / 256)),
           "nf4 codes of a matrix at %zu threads", threads);
        free(block);
        block = quant_make(&q, &s, DTYPE_FP4, pool);
        quant_blocks(DTYPE_FP4, w, ROWS * K, code, absmax);
        ok(!memcmp(code, q.code, ROWS * K / 2) && !memcmp(absmax, q.scale, sizeof absmax),
           "fp4 codes of a matrix at %zu threads", threads);
        free(block);
        block = quant_make(&q, &s, DTYPE_INT8, pool);
        for (size_t r = 0; r < ROWS; r++)
            scale[r] = quant_int8(w + r * K, K, (int8_t *)code + r * K);
        ok(!memcmp(code, q.code, ROWS * K) && !memcmp(scale, q.scale, sizeof scale),
           "int8 codes of a matrix at %zu threads", threads);
        free(block);
        pool_free(pool);
    }
    free(w);
}

/* ---- products ---- */

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

/* A row's bits do not depend on the rows beside it, nor on whether floats or codes were given. */
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
    /* 3 and 5 blocks a row put the bounds of double quantization anywhere; 300 blocks are more
     * than one of them */
    static const struct shape nibbles[] = {{1, 1, 64},   {3, 200, 192}, {25, 333, 320},
                                           {2, 7, 19200}, {50, 96, 128}, {6, 40, 832}};
    EACH(d, bytes) {
        for (size_t i = 0; i < sizeof any / sizeof *any; i++)
            bytes_case(ops, *d, any[i]);
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
    struct pool *pool = pool_new(1);
    tables();
    known_codes();
    fp4_codes();
    errors(pool);
    double_quantization();
    EACH(d, bytes)
        odd_values(*d, pool);
    EACH(d, blocks)
        odd_values(*d, pool);
    every_code();
    rows_with_outliers();
    same_codes();
    pool_free(pool);
    EACH(d, bytes)
        embedding(&ops_ref, *d);
    EACH(d, blocks)
        embedding(&ops_ref, *d);
    for (size_t i = 0; levels_at(i); i++)
        products(levels_at(i));
    return tap_done();
}
