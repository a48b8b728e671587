/* test-gemm.c - compares the products of training (struct gemm of kernels/train.h) of every level
 * of the cpu back end with ref: either order of both factors, several products of one factor, added
 * values; 1, 2 and 3 threads must give the same bits. Level amx multiplies pairs of bf16 on
 * emulated tiles. Its own code runs if the processor has tiles or if their instructions trap. */
#include "kernels/train.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/emulate/tmm.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 7};

static float *draw(size_t n) { return levels_draw(&rng, n); }

struct shape {
    size_t M, N, K;
};
/* The last shapes have several cells, and several groups of words. */
static const struct shape shapes[] = {{1, 1, 1},     {1, 33, 7},    {5, 65, 31},  {13, 31, 64},
                                      {25, 96, 100}, {96, 70, 33},  {17, 40, 66}, {200, 129, 65},
                                      {40, 50, 801}, {3, 5, 0},     {0, 7, 9},    {290, 20, 1300},
                                      {33, 9, 2100}};

/* Compares two products that share a factor with ref, with factors in either order. `plus` is NULL,
 * the output itself or another array. Columns between the rows of c must not change, and the
 * requested work area must be enough. */
static void against_ref(struct backend *b, struct backend *ref, struct shape s, enum dtype dtype)
{
    size_t ldc = s.N + 3, n = s.M * ldc, room = train_ops_of(b->ops)->gemm_work(b, s.M, s.N, s.K);
    float *x = draw(s.M * s.K), *w = draw(s.N * s.K), *v = draw(s.N * s.K);
    float *plus = draw(n), *c = draw(2 * n), *d = draw(2 * n);
    char *work = mem_aligned(room + 64);
    memset(work, 0xff, room); /* NaN, in case work is read before it is written */
    memset(work + room, 0x5a, 64);
    memcpy(d, c, 2 * n * sizeof *d);
    for (int way = 0; way < 4; way++) {
        struct factor a = way & 1 ? (struct factor){x, 1, s.M} : (struct factor){x, s.K, 1};
        struct gemm g[2][2];
        for (int i = 0; i < 4; i++) {
            float *out = (i / 2 ? d : c) + (size_t)(i % 2) * n;
            const float *from = i % 2 ? w : v;
            g[i / 2][i % 2] = (struct gemm){
                s.M, s.N, s.K, a,
                way & 2 ? (struct factor){from, 1, s.N} : (struct factor){from, s.K, 1}, out,
                i % 2 ? (way & 1 ? plus : NULL) : out, ldc, dtype};
        }
        train_ops_of(b->ops)->gemm(b, g[0], 2, work);
        train_ops_of(ref->ops)->gemm(ref, g[1], 2, NULL);
        ok(worst(c, d, 2 * n) < 3e-6, "%s gemm %zux%zux%zu dtype %d way %d: off by %.1e",
           b->ops->level, s.M, s.N, s.K, (int)dtype, way, worst(c, d, 2 * n));
    }
    int kept = 1;
    for (size_t i = 0; i < 64; i++)
        kept &= work[room + i] == 0x5a;
    ok(kept, "%s gemm %zux%zux%zu dtype %d: work is enough", b->ops->level, s.M, s.N, s.K,
       (int)dtype);
    free(x), free(w), free(v), free(plus), free(c), free(d), free(work);
}

/* Shapes of training that are split into several cells: 1, 2 and 3 threads give the same bits. */
static void same_bits(const struct ops *ops, enum dtype dtype)
{
    enum { M = 230, N = 70, K = 421 };
    float *x = draw(M * K), *w = draw(N * K), *y[3];
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = levels_open(ops, threads);
        float *out = y[threads - 1] = draw(M * N);
        void *work = mem_aligned(train_ops_of(b->ops)->gemm_work(b, M, N, K));
        struct gemm g = {M, N, K, {x, 1, M}, {w, K, 1}, out, NULL, N, dtype};
        train_ops_of(b->ops)->gemm(b, &g, 1, work);
        free(work);
        backend_close(b);
    }
    ok(!memcmp(y[0], y[1], M * N * sizeof(float)) && !memcmp(y[0], y[2], M * N * sizeof(float)),
       "%s gemm dtype %d: same bits at 1, 2 and 3 threads", ops->level, (int)dtype);
    free(x), free(w), free(y[0]), free(y[1]), free(y[2]);
}

static void all(const struct ops *ops, struct backend *ref, enum dtype dtype)
{
    long before = tmm_products();
    struct backend *b = levels_open(ops, 2);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        against_ref(b, ref, shapes[i], dtype);
    same_bits(ops, dtype);
    backend_close(b);
    int emulated = levels_tiles(ops) && ops != ops_cpu("amx");
    ok((tmm_products() > before) == (emulated && dtype == DTYPE_BF16) && !tmm_open(),
       "%s gemm dtype %d: %ld products of emulated tiles, all of them released", ops->level,
       (int)dtype, tmm_products() - before);
}

int main(void)
{
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    struct backend *ref = levels_open(&ops_ref, 1);
    size_t ran = 0;
    for (int d = 0; d < 2; d++) {
        const struct ops *ops;
        for (ran = 0; (ops = levels_at(ran)); ran++)
            all(ops, ref, dtypes[d]);
        if ((ops = levels_trapped()))
            all(ops, ref, dtypes[d]);
        else if (!ops_cpu("amx"))
            skip("level amx is not built, or this processor cannot run the level below it");
    }
    ok(ran > 0, "%zu instruction sets ran", ran);
    backend_close(ref);
    return tap_done();
}
