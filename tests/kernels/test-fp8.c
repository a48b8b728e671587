/* test-fp8.c - tests fp8: every e4m3 code against its definition, rounding, and reference
 * products. */
#include "kernels/host.h"
#include "kernels/quant.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/tap.h"

static struct rng rng = {9, 0, 0};

static float *draw(size_t n)
{
    float *x = mem_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)rng_normal(&rng);
    return x;
}

/* The definition: (-1)^sign 2^(exponent - 7) (1 + fraction / 8). Exponent 0 has no 1, and the power
 * of exponent 1. */
static double defined(int code)
{
    int exponent = code >> 3 & 15, fraction = code & 7;
    double size = ldexp((exponent ? 8 : 0) + fraction, (exponent ? exponent : 1) - 10);
    return code & 128 ? -size : size;
}

static void values(void)
{
    int good = 1, back = 1;
    for (int i = 0; i < 256; i++) {
        float v = e4m3_value((uint8_t)i);
        if ((i & 127) == 127) {
            good &= isnan(v);
            continue;
        }
        good &= (double)v == defined(i) && !signbit(v) == !(i & 128);
        back &= e4m3_of(v) == i;
    }
    ok(good, "every code has the value of its definition, and 7f and ff are NaN");
    ok(back, "every value has its code, also zeros of both signs");
    ok(e4m3_value(1) == 0x1p-9f && e4m3_value(7) == 7 * 0x1p-9f && e4m3_value(8) == 0x1p-6f &&
           e4m3_value(0x7e) == 448 && e4m3_value(0xb8) == -1,
       "the least, the largest without a leading one, the least with one, 448 and -1");
}

/* Tests rounding between two neighbours: below the middle, on it, above it. */
static int rounds(int low)
{
    float x = e4m3_value((uint8_t)low), y = e4m3_value((uint8_t)(low + 1)), middle = (x + y) / 2;
    int even = low % 2 ? low + 1 : low, good = 1;
    for (int sign = 0; sign < 2; sign++) {
        float by = sign ? -1.0f : 1.0f;
        int bit = sign ? 128 : 0;
        good &= e4m3_of(by * middle) == (even | bit);
        good &= e4m3_of(by * nextafterf(middle, 0)) == (low | bit);
        good &= e4m3_of(by * nextafterf(middle, 500)) == ((low + 1) | bit);
    }
    return good;
}

static void rounding(void)
{
    int good = 1;
    for (int low = 0; low < 0x7e; low++)
        good &= rounds(low);
    ok(good, "to the nearest neighbour on both sides of every middle, and to the even one on it");
    good = 1;
    for (size_t i = 0; i < 5; i++) {
        float far = (float[]){448.1f, 464, 480, 1e30f, INFINITY}[i];
        good &= e4m3_of(far) == 0x7e && e4m3_of(-far) == 0xfe;
    }
    ok(good, "values beyond 448 become 448");
    ok(e4m3_of(NAN) == 0x7f && e4m3_of(-NAN) == 0xff, "NaN stays NaN");
    ok(e4m3_of(1e-30f) == 0 && e4m3_of(-1e-30f) == 128 && e4m3_of(0x1p-140f) == 0,
       "tiny values become zero with their sign");
}

static void rows_of_weights(void)
{
    float w[5] = {1, -2, 0.5f, 0, -0x1p-40f};
    uint8_t code[5];
    float scale = quant_fp8(w, 5, code);
    ok(scale == 2 && e4m3_value(code[0]) == 224 && e4m3_value(code[1]) == -448 &&
           e4m3_value(code[2]) == 112 && code[3] == 0 && code[4] == 128,
       "a row by its largest: 2 becomes 448");
    float odd[3][3] = {{0, 0, 0}, {0, 0x1p-121f, 0}, {1, NAN, -INFINITY}};
    for (int i = 0; i < 3; i++) {
        scale = quant_fp8(odd[i], 3, code);
        ok((i < 2 ? scale == 0 : isnan(scale)) && !code[0] && !code[1] && !code[2], "%s",
           i == 0   ? "zeros"
           : i == 1 ? "values whose reciprocal overflows count as zeros"
                    : "a value that is not finite makes the scale NaN");
    }
    float small[2] = {0x1p-119f, -0x1p-120f};
    scale = quant_fp8(small, 2, code);
    ok(scale == 0x1p-119f && code[0] == 0x7e && e4m3_value(code[1]) == -224,
       "the smallest scale works");
}

/* Tests that 1 to 3 threads make the codes of quant_fp8(), and their error for Gaussian values. */
static void matrices(void)
{
    enum { ROWS = 500, K = 67 };
    float *w = draw(ROWS * K), *back = mem_alloc(ROWS * K * sizeof *back);
    uint8_t *code = mem_alloc(K);
    struct mat_source s = mat_floats(w, ROWS, K);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct pool *pool = pool_new(threads);
        struct codes q;
        void *block = quant_make(&q, &s, DTYPE_FP8, pool);
        int same = q.dtype == DTYPE_FP8;
        for (size_t r = 0; r < ROWS; r++) {
            same &= q.scale[r] == quant_fp8(w + r * K, K, code);
            same &= !memcmp((const uint8_t *)q.code + r * K, code, K);
        }
        ok(same, "codes of a matrix at %zu threads", threads);
        quant_floats(&q, K, 0, ROWS, back);
        free(block);
        pool_free(pool);
    }
    double far = 0, size = 0;
    for (size_t i = 0; i < ROWS * K; i++) {
        far += ((double)w[i] - back[i]) * ((double)w[i] - back[i]);
        size += (double)w[i] * w[i];
    }
    /* in [1, 2) steps are 1/8, so the error is 1 / (8 sqrt(12)); the mean square is 3 / (2 ln 2) */
    double expected = sqrt(2 * log(2) / 3 / 12) / 8;
    ok(fabs(sqrt(far / size) / expected - 1) < 0.1, "error of Gaussian values %.4f, expected %.4f",
       sqrt(far / size), expected);
    free(w), free(back), free(code);
}

struct setting {
    struct backend b;
    struct mat m;
    struct codes q;
    void *block;
    float *w;
    size_t rows, cols;
};

static void make(struct setting *s, size_t rows, size_t cols, int from_codes)
{
    *s = (struct setting){.b = {.ops = &ops_ref, .pool = pool_new(2)}, .rows = rows, .cols = cols};
    s->w = draw(rows * cols);
    struct mat_source from = mat_floats(s->w, rows, cols);
    s->block = quant_make(&s->q, &from, DTYPE_FP8, s->b.pool);
    from.q = from_codes ? &s->q : NULL;
    ok(!ops_ref.mat_make(&s->b, &s->m, &from, DTYPE_FP8), "a matrix of %zu x %zu", rows, cols);
}

static void drop(struct setting *s)
{
    ops_ref.mat_free(&s->b, &s->m);
    ok(s->b.memory.allocated == 0, "all memory is freed");
    pool_free(s->b.pool);
    free(s->block), free(s->w);
}

/* The product by its formula, in double: row x with output n. */
static float product(const struct setting *s, const float *x, size_t n)
{
    const uint8_t *code = (const uint8_t *)s->q.code + n * s->cols;
    double sum = 0;
    for (size_t k = 0; k < s->cols; k++)
        sum += (double)bf16_float(bf16_of(x[k])) * defined(code[k]);
    return (float)(sum * (s->q.scale[n] / 448));
}

static void products(size_t T, size_t rows, size_t cols, int from_codes)
{
    struct setting s;
    make(&s, rows, cols, from_codes);
    float *x = draw(T * cols), *y = mem_alloc(T * rows * sizeof *y);
    void *work = mem_aligned(ops_ref.matmul_work(&s.b, T, cols, rows) + 64);
    struct product p = {&s.m, y, 0};
    int same = 1;
    ops_ref.matmul(&s.b, &p, 1, (struct input){.x = x}, T, work);
    for (size_t i = 0; i < T * rows; i++)
        same &= y[i] == product(&s, x + i / rows * cols, i % rows);
    ok(same, "products of %zu rows by the formula", T);
    x[cols / 2] = NAN;
    ops_ref.matmul(&s.b, &p, 1, (struct input){.x = x}, T, work);
    ok(isnan(y[0]) && isnan(y[rows - 1]) && (T == 1 || !isnan(y[rows])),
       "a NaN is in its row's outputs and in no other's");
    free(x), free(y), free(work);
    drop(&s);
}

static void embedding(void)
{
    struct setting s;
    const int32_t token[3] = {40, 0, 17};
    float out[3 * 33], row[33];
    int same = 1;
    make(&s, 41, 33, 0);
    ops_ref.embed(&s.b, out, &s.m, token, 3);
    for (int i = 0; i < 3; i++) {
        quant_floats(&s.q, 33, (size_t)token[i], 1, row);
        same &= !memcmp(row, out + i * 33, sizeof row);
    }
    ok(same, "an embedding is the decoded row");
    drop(&s);
}

static void refusals(void)
{
    const struct ops *cpu = ops_cpu(NULL);
    const char *why = cpu->refuses(NULL, DTYPE_FP8, 64);
    ok(!ops_ref.refuses(NULL, DTYPE_FP8, 64), "the reference has fp8");
    ok(why && strstr(why, "--device cuda"), "the CPU does not: %s", why ? why : "");
}

int main(void)
{
    values();
    rounding();
    rows_of_weights();
    matrices();
    products(1, 1, 1, 0);
    products(3, 17, 31, 1);
    products(7, 5, 160, 0);
    embedding();
    refusals();
    return tap_done();
}
