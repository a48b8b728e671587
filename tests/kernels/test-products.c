/* test-products.c - compares products of every level of the cpu back end with ref: several matrices
 * at once, gates, rows normalized first, every source of weights; the same bits for any number of
 * threads and of rows. */
#include "kernels/host.h"
#include "kernels/ops.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 11};
static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16, DTYPE_BF16_F32, DTYPE_F16};
enum { OWN = sizeof dtypes / sizeof *dtypes, MATRICES = PRODUCTS_MAX };

static float *draw(size_t n) { return levels_draw(&rng, n); }

static void *work_for(struct backend *b, size_t T, size_t K, size_t N)
{
    return mem_aligned(b->ops->matmul_work(b, T, K, N));
}

/* Multiplies by three matrices of different widths in one call. y[MATRICES] gets the outputs; the
 * second is added to the old values. */
static void multiply(struct backend *b, float *const y[], const float *x, const float *const w[],
                     const size_t N[], size_t T, size_t K, enum dtype dtype)
{
    struct mat m[MATRICES];
    struct product p[MATRICES];
    for (int i = 0; i < MATRICES; i++) {
        m[i] = levels_mat(b, w[i], N[i], K, dtype);
        p[i] = (struct product){&m[i], y[i], i == 1};
    }
    void *work = work_for(b, T, K, N[0] + N[1] + N[2]);
    b->ops->matmul(b, p, MATRICES, (struct input){.x = x}, T, work);
    for (int i = 0; i < MATRICES; i++)
        b->ops->mat_free(b, &m[i]);
    free(work);
}

/* The largest |y - z| / bound. bound = (K + 2) 2^-24 (|start| + sum |x| |w|) is the largest error
 * of a sum of K + 1 terms in fp32 in any order. bf16 operands are equal on both sides. */
static double excess(const float *y, const float *z, const float *start, const float *x,
                     const float *w, size_t T, size_t N, size_t K)
{
    double most = 0;
    for (size_t t = 0; t < T; t++)
        for (size_t n = 0; n < N; n++) {
            double sum = start ? fabs((double)start[t * N + n]) : 0;
            for (size_t k = 0; k < K; k++)
                sum += fabs((double)x[t * K + k] * w[n * K + k]);
            double off = fabs((double)y[t * N + n] - z[t * N + n]);
            double share = off / ((double)(K + 2) * 0x1p-24 * 1.02 * sum);
            most = share > most || share != share ? share : most;
        }
    return most;
}

struct shape {
    size_t T, N, K;
};
static const struct shape shapes[] = {{1, 1, 1},     {1, 33, 7},   {2, 64, 2},     {5, 65, 31},
                                      {13, 31, 64},  {25, 96, 97}, {120, 70, 33},  {200, 129, 65},
                                      {37, 300, 128}, {1, 500, 700}, {16, 257, 513}};

static void matmul_case(struct backend *b, struct backend *ref, struct shape s, enum dtype dtype)
{
    const size_t N[MATRICES] = {s.N, s.N / 3 + 1, s.N / 2 + 1};
    float *x = draw(s.T * s.K), *w[MATRICES], *y[MATRICES], *z[MATRICES];
    for (int i = 0; i < MATRICES; i++) {
        w[i] = draw(N[i] * s.K);
        y[i] = draw(s.T * N[i]);
        z[i] = mem_alloc(s.T * N[i] * sizeof(float));
        memcpy(z[i], y[i], s.T * N[i] * sizeof(float));
    }
    float *start = mem_alloc(s.T * N[1] * sizeof *start);
    memcpy(start, y[1], s.T * N[1] * sizeof *start);
    multiply(b, y, x, (const float *const *)w, N, s.T, s.K, dtype);
    multiply(ref, z, x, (const float *const *)w, N, s.T, s.K, dtype);
    double most = 0;
    for (int i = 0; i < MATRICES; i++) {
        double e = excess(y[i], z[i], i == 1 ? start : NULL, x, w[i], s.T, N[i], s.K);
        most = e <= most ? most : isnan(most) ? most : e; /* not fmax, which skips a NaN */
    }
    ok(most <= 1, "%s matmul T %zu N %zu K %zu dtype %d: %.3g of the bound", b->ops->level, s.T,
       s.N, s.K, (int)dtype, most);
    for (int i = 0; i < MATRICES; i++)
        free(w[i]), free(y[i]), free(z[i]);
    free(x), free(start);
}

static void gated_case(struct backend *b, struct backend *ref, struct shape s, enum dtype dtype)
{
    float *x = draw(s.T * s.K), *g = draw(s.N * s.K), *u = draw(s.N * s.K);
    float *y = draw(s.T * s.N), *z = draw(s.T * s.N);
    struct backend *both[] = {b, ref};
    for (int i = 0; i < 2; i++) {
        struct mat gate = levels_mat(both[i], g, s.N, s.K, dtype);
        struct mat up = levels_mat(both[i], u, s.N, s.K, dtype);
        void *work = work_for(both[i], s.T, s.K, 2 * s.N);
        struct input in = {.x = x};
        both[i]->ops->gated(both[i], i ? z : y, in, &gate, &up, s.T, work);
        both[i]->ops->mat_free(both[i], &gate);
        both[i]->ops->mat_free(both[i], &up);
        free(work);
    }
    double off = 0, size = 1e-30;
    for (size_t i = 0; i < s.T * s.N; i++) {
        double d = fabs((double)y[i] - z[i]);
        off = d > off || d != d ? d : off;
        size = fmax(size, fabs((double)z[i]));
    }
    ok(off < 4e-6 * size, "%s gated T %zu N %zu K %zu dtype %d (%.2g)", b->ops->level, s.T, s.N,
       s.K, (int)dtype, off / size);
    free(x), free(g), free(u), free(y), free(z);
}

/* A gain in the input equals rmsnorm and then the product, bit for bit, gated or not. */
static void norm_case(struct backend *b, struct shape s, enum dtype dtype)
{
    float *x = draw(s.T * s.K), *gain = draw(s.K), *n = mem_alloc(s.T * s.K * sizeof *n);
    float *w = draw(s.N * s.K), *u = draw(s.N * s.K), *y[4];
    struct mat m = levels_mat(b, w, s.N, s.K, dtype), up = levels_mat(b, u, s.N, s.K, dtype);
    struct input in[] = {{x, gain, 1e-5}, {.x = n}};
    void *work = work_for(b, s.T, s.K, 2 * s.N);
    b->ops->rmsnorm(b, n, x, NULL, gain, s.T, s.K, 1e-5);
    for (int i = 0; i < 4; i++) {
        y[i] = mem_alloc(s.T * s.N * sizeof(float));
        if (i < 2)
            b->ops->matmul(b, &(struct product){&m, y[i], 0}, 1, in[i], s.T, work);
        else
            b->ops->gated(b, y[i], in[i - 2], &m, &up, s.T, work);
    }
    size_t bytes = s.T * s.N * sizeof(float);
    ok(!memcmp(y[0], y[1], bytes) && !memcmp(y[2], y[3], bytes),
       "%s %s T %zu N %zu K %zu dtype %d: normalized inside, the same bits", b->ops->name,
       b->ops->level, s.T, s.N, s.K, (int)dtype);
    b->ops->mat_free(b, &m);
    b->ops->mat_free(b, &up);
    for (int i = 0; i < 4; i++)
        free(y[i]);
    free(x), free(gain), free(n), free(w), free(u), free(work);
}

static void norm_cases(struct backend *b)
{
    for (int d = 0; d < DTYPES; d++)
        for (size_t T = 1; T < 40 && !b->ops->refuses(b, (enum dtype)d, 128); T += 12)
            norm_case(b, (struct shape){T, 70, 128}, (enum dtype)d);
    norm_case(b, (struct shape){5, 3, 33}, DTYPE_F32);
}

static void only_floats(const struct mat_source *s, size_t first, size_t count, float *out)
{
    memcpy(out, (const float *)s->ctx + first * s->cols, count * s->cols * sizeof *out);
}

/* Weights that bf16 holds exactly give the same bits from floats, from rows on demand and from
 * bf16. */
static void source_case(struct backend *b, enum dtype dtype)
{
    enum { T = 3, N = 77, K = 131 };
    float *x = draw(T * K), *w = draw(N * K), y[3][T * N];
    uint16_t *half = mem_alloc(N * K * sizeof *half);
    for (size_t i = 0; i < N * K; i++)
        w[i] = bf16_float(half[i] = bf16_of(w[i]));
    struct mat_source s[3] = {{.f32 = w}, {0}, {.bf16 = half}};
    for (int i = 0; i < 3; i++) {
        s[i].rows = N;
        s[i].cols = K;
        s[i].floats = only_floats;
        s[i].ctx = w;
        struct mat m;
        void *work = work_for(b, T, K, N);
        b->ops->mat_make(b, &m, &s[i], dtype);
        b->ops->matmul(b, &(struct product){&m, y[i], 0}, 1, (struct input){.x = x}, T, work);
        b->ops->mat_free(b, &m);
        free(work);
    }
    ok(!memcmp(y[0], y[1], sizeof y[0]) && !memcmp(y[0], y[2], sizeof y[0]),
       "%s dtype %d: the same matrix from floats, from rows on demand, from bf16", b->ops->level,
       (int)dtype);
    free(x), free(w), free(half);
}

/* K is padded inside. Padding must not meet an infinity as 0 * inf, whether the infinity is the
 * last weight of a row or the last value of x. Tiles multiply a float in parts. If bf16 holds the
 * float exactly, the lower parts are zeros, and an infinite weight then gives NaN (ops.h). */
static void padding_case(struct backend *b, enum dtype dtype, int in_x)
{
    enum { K = 5, N = 3 };
    float w[N * K], x[2 * K], y[2 * N];
    for (int i = 0; i < N * K; i++)
        w[i] = !in_x && i % K == K - 1 ? INFINITY : 1;
    for (int i = 0; i < 2 * K; i++)
        x[i] = in_x && i % K == K - 1 ? INFINITY : 1;
    struct mat m = levels_mat(b, w, N, K, dtype);
    void *work = work_for(b, 2, K, N);
    b->ops->matmul(b, &(struct product){&m, y, 0}, 1, (struct input){.x = x}, 2, work);
    int good = 1, parts = !in_x && levels_tiles(b->ops) && dtype == DTYPE_BF16_F32;
    for (int i = 0; i < 2 * N; i++)
        good &= parts ? isnan(y[i]) : y[i] == INFINITY;
    ok(good, "%s dtype %d: an infinite last %s of an odd row gives %s", b->ops->level, (int)dtype,
       in_x ? "value" : "weight", parts ? "NaN" : "inf");
    b->ops->mat_free(b, &m);
    free(work);
}

/* Every row of T = 200 must have the same bits in batches of other sizes, and with 1, 2, 3
 * threads. */
static void same_bits(const struct ops *ops, enum dtype dtype)
{
    enum { T = 200, N = 200, K = 301 };
    const size_t batches[] = {1, 2, 7, 12, 13, 24, 30, 100, 200};
    float *x = draw(T * K), *w = draw(N * K), *first = NULL, *y = draw(T * N);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = levels_open(ops, threads);
        struct mat m = levels_mat(b, w, N, K, dtype);
        void *work = work_for(b, T, K, N);
        int same = 1;
        for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
            for (size_t t = 0; t < T; t += batches[i]) {
                size_t rows = T - t < batches[i] ? T - t : batches[i];
                struct input in = {.x = x + t * K};
                b->ops->matmul(b, &(struct product){&m, y + t * N, 0}, 1, in, rows, work);
            }
            if (!first)
                memcpy(first = mem_alloc(T * N * sizeof *first), y, T * N * sizeof *first);
            same &= !memcmp(first, y, T * N * sizeof *first);
            memset(y, 0, T * N * sizeof *y);
        }
        ok(same, "%s dtype %d: the same bits in batches of 1 to 200 rows, %zu threads", ops->level,
           (int)dtype, threads);
        b->ops->mat_free(b, &m);
        backend_close(b);
        free(work);
    }
    free(x), free(w), free(first), free(y);
}

/* If rows are too many for a cache, they are multiplied in chunks, with the bits of single rows. */
static void many_rows(const struct ops *ops, enum dtype dtype)
{
    enum { T = 397, N = 70, K = 2100, FEW = 31 };
    float *x = draw(T * K), *w = draw(N * K), *y = draw(T * N), *z = mem_alloc(T * N * sizeof *z);
    memcpy(z, y, T * N * sizeof *z);
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = levels_open(ops, threads);
        struct mat m = levels_mat(b, w, N, K, dtype);
        void *work = work_for(b, T, K, N);
        b->ops->matmul(b, &(struct product){&m, y, 1}, 1, (struct input){.x = x}, T, work);
        for (size_t t = 0; t < T; t += FEW) {
            struct input in = {.x = x + t * K};
            size_t rows = T - t < FEW ? T - t : FEW;
            b->ops->matmul(b, &(struct product){&m, z + t * N, 1}, 1, in, rows, work);
        }
        ok(!memcmp(y, z, T * N * sizeof *y), "%s dtype %d: the same bits in chunks, %zu threads",
           ops->level, (int)dtype, threads);
        b->ops->mat_free(b, &m);
        backend_close(b);
        free(work);
    }
    free(x), free(w), free(y), free(z);
}

int main(void)
{
    struct backend *ref = levels_open(&ops_ref, 1);
    size_t ran = 0;
    for (const struct ops *ops; (ops = levels_at(ran)); ran++) {
        struct backend *b = levels_open(ops, 2);
        for (int d = 0; d < OWN; d++) {
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                matmul_case(b, ref, shapes[i], dtypes[d]);
                gated_case(b, ref, shapes[i], dtypes[d]);
            }
            source_case(b, dtypes[d]);
            padding_case(b, dtypes[d], 0);
            padding_case(b, dtypes[d], 1);
            same_bits(ops, dtypes[d]);
            many_rows(ops, dtypes[d]);
        }
        norm_cases(b);
        ok(!b->memory.allocated, "%s gives all memory back", ops->level);
        backend_close(b);
    }
    norm_cases(ref);
    ok(ran > 0, "%zu instruction sets ran", ran);
    backend_close(ref);
    return tap_done();
}
