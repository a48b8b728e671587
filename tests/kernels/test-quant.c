/* test-quant.c - tests the quantized formats of a CPU: codes and values by definition.
 * test-quant-products.c tests their products. */
#include <math.h>

#include "kernels/quant.h"
#include "kernels/host.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/kernels/quantized.h"
#include "tests/tap.h"

static const enum dtype blocks[] = {DTYPE_NF4, DTYPE_NF4_F32, DTYPE_FP4, DTYPE_Q4};

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
    /* expected values: bitsandbytes 0.50.2, create_dynamic_map(signed=True) */
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

/* Compares codes with those of bitsandbytes 0.50.2, quantize_fp4, on both sides of each bound. */
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
    static const float edge[7] = {0.00260417f, 0.0859375f, 0.20833333f, 0.29166667f,
                                  0.4166667f,  0.583333f,  0.8333333f};
    float w[64] = {1}, absmax;
    uint8_t pairs[32];
    for (int i = 0; i < 7; i++)
        w[2 * i + 2] = edge[i], w[2 * i + 3] = nextafterf(edge[i], 1);
    quant_blocks(DTYPE_FP4, w, 64, pairs, &absmax);
    good = pairs[0] == 0x30;
    for (int i = 0; i < 7; i++)
        good &= pairs[i + 1] == (bound[i].low << 4 | bound[i].high);
    ok(good, "fp4: in a block, a bound has the code below it, and the next float the code above");
    ok(own, "fp4: levels are their own codes, but -0, which has that of 0");
    ok(level_of(DTYPE_FP4, 3) == 1 && level_of(DTYPE_FP4, 10) == -0.66666667f &&
           level_of(DTYPE_FP4, 1) == 0.0625f / 12,
       "fp4: a code is a sign and one of eight sizes");
}

/* The largest magnitude has code 0 and is exact, whatever its sign. */
static void q4_codes(void)
{
    float w[64] = {-4, 4, 3.75f, -3.75f, 0.25f, 0.75f, 0.26f, 2}, absmax;
    uint8_t pairs[32];
    quant_blocks(DTYPE_Q4, w, 64, pairs, &absmax);
    ok(absmax == -4 && pairs[0] == 0xf0 && pairs[1] == 0x0f && pairs[2] == 0x86 && pairs[3] == 0x74,
       "q4: 4 is code 0; -4 and -3.75 are limited; ties go to the even code");
    w[1] = 1;
    quant_blocks(DTYPE_Q4, w, 64, pairs, &absmax);
    ok(absmax == 4 && pairs[0] == 0x0a && pairs[1] == 0xf0 && pairs[31] == 0x88,
       "q4: without 4, -4 is code 0, and zeros are exact");
}

/* Each value has the code of level_code(), also the floats around the middle of two levels. */
static void codes_near_middles(void)
{
    EACH(d, blocks) {
        float w[64] = {-1}, absmax;
        uint8_t pairs[32];
        int same = 1;
        for (int i = 0; i < 15; i++) {
            float middle = (quant_levels(*d)[i] + quant_levels(*d)[i + 1]) / 2;
            float *at = w + 1 + 4 * i;
            at[0] = nextafterf(middle, -2), at[1] = middle, at[2] = nextafterf(middle, 2);
            at[3] = nextafterf(at[2], 2);
        }
        quant_blocks(*d, w, 64, pairs, &absmax);
        for (int i = 0; i < 64; i++)
            same &= (pairs[i / 2] >> (i % 2 ? 0 : 4) & 15) == level_code(*d, w[i]);
        ok(same && absmax == 1, "%s: codes of a block are those of its values",
           dtype_info[*d].name);
    }
}

/* The largest value is found at each place of rows of 1 to 100 values, and so are infinity and
 * NaN. */
static void largest_values(void)
{
    float row[100];
    int8_t code[100];
    int right = 1;
    for (size_t n = 1; n <= 100; n++)
        for (size_t at = 0; at < n; at++) {
            for (size_t i = 0; i < n; i++)
                row[i] = i % 2 ? 3 : -3;
            row[at] = -3.5f;
            right &= quant_int8(row, n, code) == 3.5f && code[at] == -127;
            row[at] = NAN;
            right &= isnan(quant_int8(row, n, code)) && code[0] == 0;
            row[at] = INFINITY;
            right &= isnan(quant_int8(row, n, code)) && code[n - 1] == 0;
        }
    ok(right, "int8: the largest value, infinity and NaN are found at each place of a row");
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

/* Tests the relative error of Gaussian values in rows of 64. */
static void errors(struct pool *pool)
{
    enum { ROWS = 4000, K = 64 };
    float *w = draw(ROWS * K), *back = mem_alloc(ROWS * K * sizeof *back);
    struct mat_source s = mat_floats(w, ROWS, K);
    static const struct {
        enum dtype dtype;
        double error;
    } expected[] = {{DTYPE_INT8, 0.0059}, {DTYPE_INT8_VECTOR, 0.0059}, {DTYPE_NF4, 0.0920},
                    {DTYPE_NF4_F32, 0.0920}, {DTYPE_FP4, 0.1217},
                    {DTYPE_Q4, 0.0949}};
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

/* Double quantization of absmax[n] by one thread. Returns the offset. */
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

/* Quantizes one row of 64 values of a matrix and returns the values of its codes. */
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
    ok(fabs((double)out[5] / w[5] - 1) < 1e-6 && out[4] == 0, "%s: small values are kept", name);
    w[6] = 3e38f;
    through(dtype, w, out, pool);
    ok(fabs((double)out[6] / w[6] - 1) < 1e-6, "%s: large values are kept", name);
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
       "6, -7, NaN and infinity are outliers, 5.9 is not");
    ok(code[1] == 0 && code[4] == 0 && code[2] == -127 && code[5] == 127 && code[0] == 22,
       "values beside outliers are coded as if outliers were zeros");
    scale = quant_int8_row(x, 8, quant_outlier(DTYPE_INT8_VECTOR), code, outlier, &n);
    ok(scale == 7 && n == 2 && outlier[0] == 4 && outlier[1] == 6,
       "int8-vector: only NaN and infinity are outliers");
    ok(code[3] == -127 && code[1] == 109 && code[0] == 18 && code[4] == 0,
       "int8-vector: the largest finite value sets the scale of all");
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

int main(void)
{
    struct pool *pool = pool_new(1);
    tables();
    known_codes();
    fp4_codes();
    q4_codes();
    codes_near_middles();
    largest_values();
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
    return tap_done();
}
