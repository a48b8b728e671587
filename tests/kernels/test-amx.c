/* test-amx.c - tests products on tiles, beyond what test-products.c and test-quant.c check for
 * every level. Tiles are used, released, and not touched if the level below computes the product;
 * many rows in many stages; the head; and the choice of a level. Level amx runs on emulated tiles.
 * Its own code runs if the processor has tiles or if their instructions trap
 * (tests/emulate/tmm_trap.h). */
#include "kernels/amx.h"
#include "kernels/peak.h"
#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "tests/emulate/tmm.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng rng = {.seed = 23};

static float *draw(size_t n) { return levels_draw(&rng, n); }

/* Multiplies by two matrices in one product, then as gate and up. y gets the outputs one after the
 * other. */
static void multiply(struct backend *b, float *y, const float *x, const float *w, const float *u,
                     size_t T, size_t N, size_t K, enum dtype dtype)
{
    struct mat m = levels_mat(b, w, N, K, dtype), up = levels_mat(b, u, N, K, dtype);
    struct product p[] = {{&m, y, 0}, {&up, y + T * N, 0}};
    size_t bytes = b->ops->matmul_work(b, T, K, 2 * N);
    char *work = mem_aligned(bytes + 64);
    memset(work + bytes, 0x5a, 64);
    b->ops->matmul(b, p, 2, (struct input){.x = x}, T, work);
    b->ops->gated(b, y + 2 * T * N, (struct input){.x = x}, &m, &up, T, work);
    int kept = 1;
    for (int i = 0; i < 64; i++)
        kept &= work[bytes + (size_t)i] == 0x5a;
    ok(kept, "%s dtype %d T %zu N %zu K %zu: work is enough", b->ops->level, (int)dtype, T, N, K);
    b->ops->mat_free(b, &m);
    b->ops->mat_free(b, &up);
    free(work);
}

/* The largest difference, relative to the root mean square. */
static double apart(const float *y, const float *z, size_t n)
{
    double far = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)y[i] - z[i]);
        far = d > far || d != d ? d : far;
        size += (double)z[i] * z[i];
    }
    return far / sqrt(size / (double)n);
}

/* Compares groups of rows and stages of K with ref and with one row at a time. */
static void many(const struct ops *ops, enum dtype dtype, size_t T, size_t N, size_t K)
{
    const size_t ALL = 3 * T * N;
    float *x = draw(T * K), *w = draw(N * K), *u = draw(N * K);
    float *y = draw(ALL), *z = draw(ALL), *one = draw(3 * N);
    struct backend *b = levels_open(ops, 3), *ref = levels_open(&ops_ref, 1);
    long before = tmm_products();
    multiply(b, y, x, w, u, T, N, K, dtype);
    long used = tmm_products() - before;
    multiply(ref, z, x, w, u, T, N, K, dtype);
    double far = apart(y, z, ALL);
    ok(dtype_info[dtype].unit >= UNIT_INT8
           ? !memcmp(y, z, 2 * T * N * sizeof *y) && far < 1e-5 : far < 1e-4,
       "%s dtype %d: %zu rows in groups and stages, off by %.1e", ops->level, (int)dtype, T, far);
    int tiled = dtype != DTYPE_F32 && dtype != DTYPE_F16;
    ok(!amx_refused() && !strcmp(ops->level, "amx") ? !used : (used > 0) == tiled,
       "%s dtype %d: %ld products of tiles", ops->level, (int)dtype, used);
    ok(!tmm_open(), "%s dtype %d: every thread has released its tiles", ops->level, (int)dtype);
    int same = 1;
    for (size_t t = 0; t < T; t += 83) {
        multiply(b, one, x + t * K, w, u, 1, N, K, dtype);
        for (size_t i = 0; i < 3; i++)
            same &= !memcmp(one + i * N, y + (i * T + t) * N, N * sizeof *one);
    }
    ok(same, "%s dtype %d: a row alone has the same bits", ops->level, (int)dtype);
    backend_close(b), backend_close(ref);
    free(x), free(w), free(u), free(y), free(z), free(one);
}

/* A product that the level below computes must have the bits of that level. */
static void below(const struct ops *ops)
{
    enum { T = 21, N = 50, K = 70 };
    float *x = draw(T * K), *w = draw(N * K), *u = draw(N * K), *y[2];
    const char *name = strchr(ops->level, '_');
    const struct ops *two[] = {ops, ops_cpu(name ? name + 1 : "avx512bf16")};
    for (int i = 0; i < 2; i++) {
        struct backend *b = levels_open(two[i], 2);
        y[i] = draw(3 * T * N);
        multiply(b, y[i], x, w, u, T, N, K, DTYPE_F32);
        backend_close(b);
    }
    ok(!memcmp(y[0], y[1], 3 * T * N * sizeof(float)), "%s: f32 as in %s", ops->level,
       two[1]->level);
    free(x), free(w), free(u), free(y[0]), free(y[1]);
}

/* Tests the head over several packed groups of rows, guided and not. */
static void head(const struct ops *ops, enum dtype dtype, size_t R, int guided)
{
    enum { V = 1100, D = 128 };
    float *x = draw(R * D), *xu = draw(R * D), *w = draw(V * D);
    struct backend *two[] = {levels_open(ops, 2), levels_open(&ops_ref, 1)};
    struct head_query q = {.cfg_scale = guided ? 1.5 : 0};
    struct head_row *out[2];
    for (int i = 0; i < 2; i++) {
        struct backend *b = two[i];
        struct mat m = levels_mat(b, w, V, D, dtype);
        size_t bytes = b->ops->head_work(b, R, D, V, 0);
        void *work = mem_aligned(bytes);
        out[i] = mem_zero(R, sizeof *out[i]);
        b->ops->head(b, &m, x, guided ? xu : NULL, R, &q, out[i], NULL, work);
        b->ops->mat_free(b, &m);
        backend_close(b);
        free(work);
    }
    size_t wrong = 0;
    double far = 0;
    for (size_t r = 0; r < R; r++) {
        const struct head_row *a = &out[0][r], *c = &out[1][r];
        wrong += a->bad || (c->gap > 1e-3 && a->id != c->id);
        far = fmax(far, fabs(a->log_prob - c->log_prob));
    }
    ok(!wrong && far < 1e-3 && !tmm_open(), "%s dtype %d head%s of %zu rows: %zu wrong, off %.1e",
       ops->level, (int)dtype, guided ? ", guided," : "", R, wrong, far);
    free(x), free(xu), free(w), free(out[0]), free(out[1]);
}

/* A float is a sum of three bf16. With K = 1 a product is only the products of these parts. */
static void parts(const struct ops *ops)
{
    enum { T = 40 };
    float w = 1, *x = draw(T), y[T];
    x[0] = 0x1.fffffep+10f, x[1] = 0x1.000002p0f, x[2] = -0x1.010101p-20f, x[3] = 0;
    struct backend *b = levels_open(ops, 1);
    struct mat m = levels_mat(b, &w, 1, 1, DTYPE_BF16_F32);
    void *work = mem_aligned(b->ops->matmul_work(b, T, 1, 1));
    b->ops->matmul(b, &(struct product){&m, y, 0}, 1, (struct input){.x = x}, T, work);
    ok(!memcmp(x, y, sizeof y), "%s: bf16-f32 by 1 is x, to the last bit", ops->level);
    x[0] = INFINITY, x[1] = NAN;
    b->ops->matmul(b, &(struct product){&m, y, 0}, 1, (struct input){.x = x}, T, work);
    ok(y[0] == INFINITY && isnan(y[1]) && y[2] == x[2], "%s: infinity and NaN stay", ops->level);
    b->ops->mat_free(b, &m);
    backend_close(b);
    free(work), free(x);
}

static void all(const struct ops *ops)
{
    static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_BF16, DTYPE_BF16_F32,
                                        DTYPE_INT8, DTYPE_NF4,  DTYPE_INT8_VECTOR,
                                        DTYPE_FP4,  DTYPE_F16};
    int sizes = !strcmp(ops->level, "amx"); /* 1: the real sizes of tiles, not the small ones */
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        many(ops, dtypes[i], sizes ? 200 : 150, sizes ? 33 : 70, sizes ? 2112 : 448);
        for (size_t R = 1; R < 200; R += 64)
            head(ops, dtypes[i], R, R % 3 != 1);
    }
    below(ops);
    parts(ops);
}

/* The level exists exactly if the system permits AMX. */
static void choice(void)
{
    const struct ops *amx = ops_cpu("amx");
    const char *why = amx_refused();
    ok(!amx == (why || !ops_cpu("avx512bf16")), "level amx is %s (%s)", amx ? "here" : "not here",
       why ? why : "permitted");
    ok(!amx_absent() || why, "AMX is refused on a processor without it");
    ok(amx_absent() || !amx || ops_cpu(NULL) == amx, "where level amx runs, it is the best");
    if (!amx)
        amx = levels_trapped();
    if (amx)
        all(amx);
    else
        skip("level amx is not built, or this processor cannot run the level below it");
}

/* The fastest loop must be one of the loops, and no other loop may be much faster. */
static void peaks(void)
{
    for (int u = 0; u < UNITS; u++) {
        const struct peak *best = peak_best((enum unit)u, NULL), *p;
        int found = !best;
        for (size_t i = 0; (p = peak_at((enum unit)u, NULL, i)); i++)
            found |= p == best && p->unit == (enum unit)u;
        ok(found && !best == !peak_at((enum unit)u, NULL, 0), "the peak of %s: %s",
           dtype_unit_name((enum unit)u), best ? best->isa : "none");
    }
    const struct peak *any = peak_at(UNIT_F32, "portable", 0);
    ok(any && !any->levels && !peak_at(UNIT_BF16, "portable", 0),
       "level portable has a peak of f32 that every processor has, and none of bf16");
    for (int u = 0; u < UNITS; u++)
        for (size_t i = 0; (any = peak_at((enum unit)u, "avx2", i)); i++)
            ok(!strstr(any->isa, "512") && !strstr(any->isa, "AMX") && !strstr(any->isa, "VNNI"),
               "level avx2, %s: %s", dtype_unit_name((enum unit)u), any->isa);
}

int main(void)
{
    size_t n = 0;
    for (; levels_tiled(n); n++)
        all(levels_tiled(n));
    ok(n > 0, "%zu levels with emulated tiles ran", n);
    choice();
    peaks();
    return tap_done();
}
