/* bench-ops - matrix products of the CPU back end in GFLOP/s, and the read bandwidth of the
 * machine.
 *
 * Each figure is the best of several passes: the least disturbed one. A product of one row reads
 * all weights for two operations each, so its share of the bandwidth is printed beside it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/ops.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { PASSES = 9 };

static float *filled(size_t n)
{
    float *x = mem_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 13) - 6;
    return x;
}

struct scan {
    const uint64_t *words;
    uint64_t part[1024]; /* by thread; what it holds is of no interest, only that it was read */
};

static void scan_part(void *ctx, size_t begin, size_t end, size_t worker)
{
    struct scan *s = ctx;
    const uint64_t *w = s->words;
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (size_t i = begin; i + 4 <= end; i += 4) {
        a ^= w[i];
        b ^= w[i + 1];
        c ^= w[i + 2];
        d ^= w[i + 3];
    }
    s->part[worker] = a ^ b ^ c ^ d;
}

/* Bytes per nanosecond (GB/s) that all threads together read from memory. */
static double bandwidth(struct pool *pool)
{
    size_t n = (size_t)64 << 20;
    uint64_t *words = mem_zero(n, sizeof *words);
    for (size_t i = 0; i < n; i++)
        words[i] = i;
    struct scan s = {.words = words};
    int64_t best = INT64_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t begin = clock_ns();
        pool_run(pool, n, 8, scan_part, &s);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    free(words);
    return (double)(n * sizeof *words) / (double)best;
}

static void product(struct backend *b, size_t T, size_t N, size_t K, enum dtype dtype, double read)
{
    float *x = filled(T * K), *w = filled(N * K), *y = filled(T * N);
    struct mat m;
    int64_t best = INT64_MAX;
    if (b->ops->mat_make(b, &m, w, N, K, dtype)) {
        fprintf(stderr, "bench-ops: no memory for %zu x %zu\n", N, K);
        exit(70);
    }
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t begin = clock_ns();
        b->ops->matmul(b, &(struct product){&m, y, 0}, 1, x, T, work);
        int64_t took = clock_ns() - begin;
        best = took < best ? took : best;
    }
    double bytes = (double)(N * K) * (dtype == DTYPE_BF16 ? 2 : 4);
    printf("%5zu rows x %5zu x %5zu %-4s %8.1f GFLOP/s", T, N, K,
           dtype == DTYPE_BF16 ? "bf16" : "f32", 2.0 * (double)(T * N * K) / (double)best);
    if (T == 1)
        printf("  %3.0f %% of the bandwidth", 100 * bytes / (double)best / read);
    puts("");
    b->ops->mat_free(b, &m);
    free(x);
    free(w);
    free(y);
}

int main(void)
{
    static const size_t shapes[][3] = {{1, 8192, 8192}, {1, 704, 256}, {32, 1536, 256},
                                       {128, 704, 256}, {128, 256, 704}, {512, 2048, 2048}};
    struct backend *b = backend_open("cpu", NULL, 0, 0);
    if (!b)
        return 69;
    double read = bandwidth(b->pool);
    printf("%s %s, %zu threads, reads %.1f GB/s\n", b->ops->name, b->ops->level,
           pool_threads(b->pool), read);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int d = 0; d < 2; d++)
            product(b, shapes[i][0], shapes[i][1], shapes[i][2], d ? DTYPE_BF16 : DTYPE_F32, read);
    backend_close(b);
    return 0;
}
