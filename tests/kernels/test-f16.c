/* test-f16.c - tests fp16: every code against its definition; rounding; overflow; and products of
 * every level, which round activations to fp16; beyond its range they become infinite. */
#include "kernels/host.h"
#include "kernels/levels.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 7};

/* The definition: (-1)^sign 2^(exponent - 15) (1 + fraction / 1024). Exponent 0 has no 1, and the
 * power of exponent 1. */
static double defined(int code)
{
    int exponent = code >> 10 & 31, fraction = code & 1023;
    double size = ldexp((exponent ? 1024 : 0) + fraction, (exponent ? exponent : 1) - 25);
    return code & 0x8000 ? -size : size;
}

static void values(void)
{
    int good = 1, back = 1, odd = 1;
    for (int i = 0; i < 65536; i++) {
        float v = f16_float((uint16_t)i);
        if ((i & 0x7c00) == 0x7c00) {
            odd &= i & 1023 ? isnan(v) : isinf(v) && !signbit(v) == !(i & 0x8000);
            continue;
        }
        good &= (double)v == defined(i) && !signbit(v) == !(i & 0x8000);
        back &= f16_of(v) == i;
    }
    ok(good && odd, "every code has the value of its definition; infinities and NaN are those");
    ok(back, "every value has its code, also zeros of both signs");
}

/* Tests rounding between all neighbours: below the middle, on it, above it. */
static void rounding(void)
{
    int good = 1;
    for (int low = 0; low < 0x7bff; low++) {
        float x = f16_float((uint16_t)low), y = f16_float((uint16_t)(low + 1)), mid = (x + y) / 2;
        int even = low % 2 ? low + 1 : low;
        good &= f16_of(mid) == even && f16_of(-mid) == (even | 0x8000);
        good &= f16_of(nextafterf(mid, 0)) == low && f16_of(nextafterf(mid, 1e6f)) == low + 1;
    }
    ok(good, "to the nearest neighbour on both sides of every middle, and to the even one on it");
    ok(f16_of(65504) == 0x7bff && f16_of(nextafterf(65520, 0)) == 0x7bff &&
           f16_of(65520) == 0x7c00 && f16_of(-1e30f) == 0xfc00 && f16_of(INFINITY) == 0x7c00,
       "65520 and above become infinite");
    ok(isnan(f16_float(f16_of(NAN))) && f16_of(0x1p-26f) == 0 && f16_of(0x1.8p-25f) == 1,
       "NaN stays NaN, tiny values become zero");
}

/* Multiplies weights 1 by one value at a time, so that an output is a rounded value of x. */
static void activations(const struct ops *ops)
{
    enum { K = 37, N = 3 };
    float x[K] = {0}, w[N * K], y[N];
    int good = 1;
    for (int i = 0; i < N * K; i++)
        w[i] = 1;
    struct backend *b = levels_open(ops, 1);
    struct mat m = levels_mat(b, w, N, K, DTYPE_F16);
    void *work = mem_aligned(b->ops->matmul_work(b, 1, K, N));
    for (int i = 0; i < 5000; i++) {
        float v = (float)ldexp(2 * rng_uniform(&rng) - 1, (int)(i % 44) - 27);
        size_t k = (size_t)i % K;
        x[k] = v;
        b->ops->matmul(b, &(struct product){&m, y, 0}, 1, (struct input){.x = x}, 1, work);
        good &= y[0] == f16_float(f16_of(v)) && y[2] == y[0];
        x[k] = 0;
    }
    ok(good, "%s: x is rounded to fp16, from 2^-28 to 2^16", ops->level);
    static const float odd[] = {65504, 65519, 65520, -65520, 1e30f, INFINITY, NAN};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        x[(5 * i) % K] = odd[i];
        b->ops->matmul(b, &(struct product){&m, y, 0}, 1, (struct input){.x = x}, 1, work);
        float want = f16_float(f16_of(odd[i]));
        ok(isnan(want) ? isnan(y[0]) : y[0] == want, "%s: %g becomes %g", ops->level,
           (double)odd[i], (double)y[0]);
        x[(5 * i) % K] = 0;
    }
    b->ops->mat_free(b, &m);
    backend_close(b);
    free(work);
}

/* Sums are fp32: they may exceed 65504, and small terms beside large ones are not lost. */
static void sums(const struct ops *ops)
{
    enum { K = 2048 };
    float *x = mem_alloc(K * sizeof *x), *w = mem_alloc(K * sizeof *w), y;
    for (size_t k = 0; k < K; k++)
        x[k] = 256, w[k] = k ? 1 : 4096;
    struct backend *b = levels_open(ops, 1);
    struct mat m = levels_mat(b, w, 1, K, DTYPE_F16);
    void *work = mem_aligned(b->ops->matmul_work(b, 1, K, 1));
    b->ops->matmul(b, &(struct product){&m, &y, 0}, 1, (struct input){.x = x}, 1, work);
    ok(y == 256.0f * (4096 + K - 1), "%s: a sum of %g", ops->level, (double)y);
    b->ops->mat_free(b, &m);
    w[5] = 1e6f;
    m = levels_mat(b, w, 1, K, DTYPE_F16);
    b->ops->matmul(b, &(struct product){&m, &y, 0}, 1, (struct input){.x = x}, 1, work);
    ok(y == INFINITY, "%s: a weight beyond fp16 is infinite", ops->level);
    b->ops->mat_free(b, &m);
    backend_close(b);
    free(x), free(w), free(work);
}

static void embedding(const struct ops *ops)
{
    enum { N = 70, K = 33 };
    float w[N * K], out[2 * K];
    const int32_t token[2] = {N - 1, 13};
    int same = 1;
    for (int i = 0; i < N * K; i++)
        w[i] = (float)rng_normal(&rng);
    struct backend *b = levels_open(ops, 2);
    struct mat m = levels_mat(b, w, N, K, DTYPE_F16);
    b->ops->embed(b, out, &m, token, 2);
    for (int i = 0; i < 2 * K; i++)
        same &= out[i] == f16_float(f16_of(w[token[i / K] * K + i % K]));
    ok(same, "%s: an embedding is the rounded row", ops->level);
    b->ops->mat_free(b, &m);
    backend_close(b);
}

int main(void)
{
    values();
    rounding();
    activations(&ops_ref);
    sums(&ops_ref);
    embedding(&ops_ref);
    for (size_t i = 0; levels_at(i); i++) {
        activations(levels_at(i));
        sums(levels_at(i));
        embedding(levels_at(i));
    }
    return tap_done();
}
