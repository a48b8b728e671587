/* test-experts.c - tests mixtures of experts: ref against plain loops in double, every level of the
 * cpu back end against ref in each format; ties, shares and the count of experts; the same bits for
 * any number of rows and threads. Routers are by softmax, and by sigmoids with a bias in groups. */
#include "kernels/experts.h"
#include "kernels/host.h"
#include "tests/kernels/levels.h"
#include "tests/tap.h"

static struct rng plain = {.seed = 5}, grouped = {.seed = 6}; /* grouped: for layers with groups */

struct shape {
    size_t T, D, F, n, used;
    size_t groups, groups_used; /* 0: the router is a softmax */
};
static const struct shape shapes[] = {
    {1, 5, 3, 1, 1, 0, 0},      {3, 33, 17, 7, 3, 0, 0},      {9, 64, 64, 5, 5, 0, 0},
    {40, 31, 70, 64, 8, 0, 0},  {70, 128, 64, 9, 2, 0, 0},    {2, 64, 64, 512, 32, 0, 0},
    {3, 33, 17, 8, 3, 4, 2},    {40, 31, 70, 64, 8, 8, 4},    {9, 64, 64, 6, 1, 3, 1},
    {70, 128, 64, 10, 5, 2, 1}, {2, 64, 64, 512, 32, 32, 3},  {5, 64, 64, 5, 5, 1, 1}};

/* The values of a layer: router [n, D]; gate and up [n, F, D], down [n, D, F]; rows and sums. */
struct values {
    struct shape s;
    float *router, *gate, *up, *down, *x, *y, *bias;
};

static struct values values_draw(struct shape s)
{
    const size_t each = s.n * s.F * s.D;
    struct rng *rng = s.groups ? &grouped : &plain;
    return (struct values){s,
                           levels_draw(rng, s.n * s.D),
                           levels_draw(rng, each),
                           levels_draw(rng, each),
                           levels_draw(rng, each),
                           levels_draw(rng, s.T * s.D),
                           levels_draw(rng, s.T * s.D),
                           s.groups ? levels_draw(rng, s.n) : NULL};
}

static void values_free(struct values *v)
{
    free(v->router), free(v->gate), free(v->up), free(v->down), free(v->x), free(v->y);
    free(v->bias);
}

/* Adds the experts of rows first .. first+T to y, by a back end. Returns the number of experts
 * read. */
static int32_t run(struct backend *b, const struct values *v, enum dtype dtype, float *y,
                   size_t first, size_t T)
{
    const struct shape s = v->s;
    struct mat router = levels_mat(b, v->router, s.n, s.D, DTYPE_F32);
    struct mat *m = mem_zero(3 * s.n, sizeof *m);
    int32_t active = 3;
    for (size_t e = 0; e < s.n; e++) {
        m[e] = levels_mat(b, v->gate + e * s.F * s.D, s.F, s.D, dtype);
        m[s.n + e] = levels_mat(b, v->up + e * s.F * s.D, s.F, s.D, dtype);
        m[2 * s.n + e] = levels_mat(b, v->down + e * s.F * s.D, s.D, s.F, dtype);
    }
    const struct experts a = {.x = v->x + first * s.D, .router = &router, .gate = m,
                              .up = m + s.n, .down = m + 2 * s.n, .n = s.n, .used = s.used,
                              .y = y + first * s.D, .active = &active, .groups = s.groups,
                              .bias = s.groups ? v->bias : NULL, .scale = 2.5f,
                              .groups_used = s.groups_used};
    void *work = mem_aligned(b->ops->experts_work(b, T, s.D, s.F, s.n, s.used));
    b->ops->experts(b, &a, T, work);
    for (size_t i = 0; i < 3 * s.n; i++)
        b->ops->mat_free(b, &m[i]);
    b->ops->mat_free(b, &router);
    free(work);
    free(m);
    return active - 3;
}

static double dot(const float *a, const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * x[i];
    return sum;
}

/* Adds p times expert e of x to y, in double. */
static void add_expert(const struct values *v, size_t e, double p, const double *x, double *y)
{
    const struct shape s = v->s;
    double *h = mem_zero(s.F, sizeof *h);
    for (size_t f = 0; f < s.F; f++) {
        double gate = dot(v->gate + (e * s.F + f) * s.D, x, s.D);
        h[f] = gate / (1 + exp(-gate)) * dot(v->up + (e * s.F + f) * s.D, x, s.D);
    }
    for (size_t d = 0; d < s.D; d++)
        y[d] += p * dot(v->down + (e * s.D + d) * s.F, h, s.F);
    free(h);
}

/* Returns 1 if fewer than `count` of n values rank before value i. */
static int is_among(const double *p, size_t n, size_t i, size_t count)
{
    size_t better = 0;
    for (size_t o = 0; o < n; o++)
        better += p[o] > p[i] || (!(p[o] < p[i]) && o < i);
    return better < count;
}

/* p[e] = the share of expert e in row x, or 0 if the row does not use it. */
static void share(const struct values *v, const double *x, double *p)
{
    const struct shape s = v->s;
    const size_t each = s.groups ? s.n / s.groups : 1;
    double *rank = mem_zero(2 * s.n, sizeof *rank), *score = rank + s.n, all = 0;
    for (size_t e = 0; e < s.n; e++) {
        const double logit = dot(v->router + e * s.D, x, s.D);
        p[e] = s.groups ? 1 / (1 + exp(-logit)) : exp(logit);
        rank[e] = s.groups ? p[e] + v->bias[e] : p[e];
    }
    for (size_t e = 0; s.groups && e < s.n; e++)
        if (is_among(rank + e / each * each, each, e % each, 2))
            score[e / each] += rank[e];
    for (size_t e = 0; s.groups && e < s.n; e++)
        if (!is_among(score, s.groups, e / each, s.groups_used))
            rank[e] = -INFINITY;
    for (size_t e = 0; e < s.n; e++)
        all += !s.groups || is_among(rank, s.n, e, s.used) ? p[e] : 0;
    all = s.groups ? (s.used > 1 ? all : 1) / 2.5 : all;
    for (size_t e = 0; e < s.n; e++)
        p[e] = is_among(rank, s.n, e, s.used) ? p[e] / all : 0;
    free(rank);
}

/* Computes the definition. Returns the number of experts that any row uses. */
static int32_t define(const struct values *v, float *y)
{
    const struct shape s = v->s;
    double *x = mem_zero(s.D, sizeof *x), *sum = mem_zero(s.D, sizeof *sum);
    double *p = mem_zero(s.n, sizeof *p);
    unsigned char *seen = mem_zero(s.n, 1);
    int32_t active = 0;
    for (size_t t = 0; t < s.T; t++) {
        for (size_t d = 0; d < s.D; d++)
            x[d] = v->x[t * s.D + d], sum[d] = y[t * s.D + d];
        share(v, x, p);
        for (size_t e = 0; e < s.n; e++)
            if (p[e] > 0) {
                seen[e] = 1;
                add_expert(v, e, p[e], x, sum);
            }
        for (size_t d = 0; d < s.D; d++)
            y[t * s.D + d] = (float)sum[d];
    }
    for (size_t e = 0; e < s.n; e++)
        active += seen[e];
    free(x), free(sum), free(p), free(seen);
    return active;
}

static float *copy_of(const float *y, size_t n)
{
    return memcpy(mem_alloc(n * sizeof *y), y, n * sizeof *y);
}

static void test_definition(struct backend *ref)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct values v = values_draw(shapes[i]);
        const size_t n = v.s.T * v.s.D;
        float *y = copy_of(v.y, n), *z = copy_of(v.y, n);
        int32_t got = run(ref, &v, DTYPE_F32, y, 0, v.s.T), want = define(&v, z);
        ok(worst(y, z, n) < 2e-6, "ref T %zu D %zu F %zu, %zu of %zu, %zu groups (%.2g)", v.s.T,
           v.s.D, v.s.F, v.s.used, v.s.n, v.s.groups, worst(y, z, n));
        ok(got == want, "%d experts have rows, %d are counted", want, got);
        free(y), free(z);
        values_free(&v);
    }
}

/* Hidden values may round differently to bf16 or to codes, by 2^-8 of a value. With groups the sum
 * of the experts is multiplied by 2.5, and so is the bound. */
static void test_level(struct backend *b, struct backend *ref, enum dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct shape s = shapes[i];
        if (dtype_refuses(dtype, s.D) || dtype_refuses(dtype, s.F))
            continue;
        struct values v = values_draw(s);
        float *y = copy_of(v.y, s.T * s.D), *z = copy_of(v.y, s.T * s.D);
        run(b, &v, dtype, y, 0, s.T);
        run(ref, &v, dtype, z, 0, s.T);
        ok(worst(y, z, s.T * s.D) < bound * (s.groups ? 2.5 : 1),
           "%s %s T %zu, %zu of %zu, %zu groups (%.2g)", b->ops->level, dtype_info[dtype].name,
           s.T, s.used, s.n, s.groups, worst(y, z, s.T * s.D));
        free(y), free(z);
        values_free(&v);
    }
}

/* With equal logits a row takes the experts with the lowest numbers, in equal shares. The weights
 * of the other experts are NaN, so that reading them would show. */
static void test_ties(struct backend *b, size_t groups)
{
    struct values v = values_draw((struct shape){4, 16, 8, 6, 2, groups, groups ? 1 : 0});
    memset(v.router, 0, 6 * 16 * sizeof *v.router);
    if (groups)
        memset(v.bias, 0, 6 * sizeof *v.bias);
    for (size_t i = 2 * 8 * 16; i < 6 * 8 * 16; i++)
        v.gate[i] = v.up[i] = v.down[i] = NAN;
    float *y = copy_of(v.y, 64), *z = copy_of(v.y, 64);
    int32_t active = run(b, &v, DTYPE_F32, y, 0, 4);
    define(&v, z);
    ok(active == 2 && worst(y, z, 64) < 2e-6, "%s: ties go to the lowest number%s",
       b->ops->level, groups ? ", in groups" : "");
    free(y), free(z);
    values_free(&v);
}

static void test_bits(const struct ops *ops, size_t groups)
{
    struct values v = values_draw((struct shape){50, 64, 40, 8, 3, groups, groups / 2});
    const size_t n = 50 * 64;
    float *all = copy_of(v.y, n);
    int same = 1;
    for (size_t threads = 1; threads <= 3; threads++) {
        struct backend *b = levels_open(ops, threads);
        float *y = copy_of(v.y, n);
        if (threads == 1)
            run(b, &v, DTYPE_BF16, all, 0, 50);
        for (size_t t = 0, rows = 1; t < 50; t += rows) {
            rows = 50 - t < 2 * rows ? 50 - t : 2 * rows;
            run(b, &v, DTYPE_BF16, y, t, rows);
        }
        same &= !memcmp(all, y, n * sizeof *y);
        free(y);
        backend_close(b);
    }
    ok(same, "%s: the same bits in any batch, on 1 to 3 threads", ops->level);
    free(all);
    values_free(&v);
}

int main(void)
{
    static const struct { enum dtype dtype; double bound; } formats[] = {
        {DTYPE_F32, 4e-6}, {DTYPE_BF16_F32, 4e-6}, {DTYPE_BF16, 4e-3}, {DTYPE_F16, 5e-4},
        {DTYPE_INT8, 1e-2}, {DTYPE_NF4, 4e-3}};
    struct backend *ref = levels_open(&ops_ref, 1);
    test_definition(ref);
    test_ties(ref, 0);
    test_ties(ref, 3);
    size_t ran = 0;
    const struct rng first[2] = {plain, grouped};
    for (const struct ops *ops; (ops = levels_at(ran)); ran++) {
        struct backend *b = levels_open(ops, 2);
        plain = first[0], grouped = first[1]; /* all levels get the same values */
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
            test_level(b, ref, formats[i].dtype, formats[i].bound);
        test_ties(b, 0);
        test_ties(b, 3);
        test_bits(ops, 0);
        test_bits(ops, 4);
        ok(!b->memory.allocated, "%s gives all memory back", ops->level);
        backend_close(b);
    }
    ok(ran > 0, "%zu instruction sets ran", ran);
    backend_close(ref);
    return tap_done();
}
