/* test-solver.c - the solvers on a mixture of four Gaussians, whose flow is known: the model's
 * prediction is the exact posterior mean. Held against a walk of 4,000 steps: how far samples land
 * from where the flow leads, and how wide the modes come out. A sampler that draws fresh noise in
 * place of the predicted one, as a public fork does, is seen to miss the width.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/decode/solver.h"
#include "tests/tap.h"

enum { ROWS = 4000, MODES = 4 };
static const double mode[MODES] = {-1.35, -0.45, 0.45, 1.35}, width = 0.12;

static const char *const names[] = {"ddim", "dpmpp2m", "edm", "adaptive"};

static void posterior(void *ctx, const float *x, double lambda, size_t rows, size_t n, float *x0)
{
    double alpha = solver_alpha(lambda), s = solver_s(lambda);
    double v = alpha * alpha * width * width + s * s;
    ++*(size_t *)ctx;
    for (size_t i = 0; i < rows * n; i++) {
        double p[MODES], top = -INFINITY, sum = 0, mean = 0;
        for (int k = 0; k < MODES; k++) {
            p[k] = -pow(x[i] - alpha * mode[k], 2) / (2 * v);
            top = fmax(top, p[k]);
        }
        for (int k = 0; k < MODES; k++) {
            p[k] = exp(p[k] - top);
            sum += p[k];
            mean += p[k] * (mode[k] + alpha * width * width / v * (x[i] - alpha * mode[k]));
        }
        x0[i] = (float)(mean / sum);
    }
}

static void noise(float *x)
{
    struct rng rng = {7, 1, 0};
    for (size_t i = 0; i < ROWS; i++)
        x[i] = (float)rng_normal(&rng);
}

/* Samples of a solver; returns the calls a row. */
static size_t sample(struct solver p, float *x)
{
    size_t calls = 0;
    const struct denoiser d = {posterior, &calls};
    noise(x);
    return solver_run(&p, &d, x, ROWS, 1);
}

/* Deviation within the modes, as a share of the true one, less 1. */
static double width_error(const float *x)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double near = INFINITY;
        for (int k = 0; k < MODES; k++)
            near = fmin(near, fabs(x[i] - mode[k]));
        sum += near * near;
    }
    return sqrt(sum / ROWS) / width - 1;
}

static double distance(const float *a, const float *b)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++)
        sum += pow(a[i] - b[i], 2);
    return sqrt(sum / ROWS);
}

/* The rms distance from the flow's end, and how many calls a row it took. */
static double error_of(enum solver_kind kind, size_t evaluations, const float *end, float *x,
                       size_t *calls, double *wide)
{
    struct solver p = SOLVER_DEFAULTS;
    p.kind = kind;
    p.evaluations = evaluations;
    size_t n = sample(p, x);
    *calls = n;
    *wide = width_error(x);
    double e = distance(x, end);
    printf("# %-9s %4zu calls: distance %.4f, width %+.1f %%\n", names[kind], n, e, 100 * *wide);
    return e;
}

/* More evaluations, less error: by at least `order` for twice as many where the error is small. */
static void test_convergence(const float *end, float *x)
{
    static const struct {
        enum solver_kind kind;
        double order;
    } ways[] = {{SOLVER_DDIM, 1.6}, {SOLVER_DPMPP2M, 3}, {SOLVER_EDM, 2.6}};
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        size_t n;
        double w, before = error_of(ways[k].kind, 80, end, x, &n, &w);
        double after = error_of(ways[k].kind, 160, end, x, &n, &w);
        ok(before / after > ways[k].order && after > 0,
           "%s: twice the evaluations, %.2f times the accuracy", names[ways[k].kind],
           before / after);
    }
}

/* The most that a solver may be off, and wide, after so many evaluations. */
static void test_table(const float *end, float *x)
{
    static const struct {
        enum solver_kind kind;
        size_t evaluations;
        double off, wide;
    } rows[] = {{SOLVER_DDIM, 10, 0.13, 0.22},     {SOLVER_DDIM, 20, 0.08, 0.17},
                {SOLVER_DDIM, 50, 0.04, 0.10},     {SOLVER_DPMPP2M, 10, 0.087, 0.18},
                {SOLVER_DPMPP2M, 20, 0.030, 0.04}, {SOLVER_DPMPP2M, 50, 0.009, 0.017},
                {SOLVER_EDM, 19, 0.143, 0.06},     {SOLVER_EDM, 29, 0.06, 0.02}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        double wide, off = error_of(rows[i].kind, rows[i].evaluations, end, x, &n, &wide);
        ok(n == rows[i].evaluations && off < rows[i].off && fabs(wide) < rows[i].wide,
           "%s, %zu evaluations: off by %.3f of at most %.3f, width %+.1f %% of %.1f",
           names[rows[i].kind],
           n, off, rows[i].off, 100 * wide, 100 * rows[i].wide);
    }
}

/* Each row has a length of step of its own: alone it takes the same one. */
static void test_adaptive(const float *end, float *x)
{
    struct solver p = SOLVER_DEFAULTS;
    size_t n, calls = 0, loose;
    double w, off = error_of(SOLVER_ADAPTIVE, 1, end, x, &loose, &w), tight;
    const struct denoiser d = {posterior, &calls};
    float one[2] = {x[17], 0};
    noise(x);
    one[1] = x[17];
    p.kind = SOLVER_ADAPTIVE;
    solver_run(&p, &d, &one[1], 1, 1);
    ok(one[0] == one[1], "adaptive: a row alone ends where it ended among others");
    p.rtol = 0.005;
    p.atol = 0.0008;
    n = sample(p, x);
    tight = distance(x, end);
    ok(off < 0.06 && tight < off / 3 && n > loose,
       "adaptive: %zu calls at most, off by %.3f; ten times as strict %zu and %.4f", loose, off, n,
       tight);
}

/* Fresh noise in place of the predicted one at every step (and not by eta): the law is missed, with
 * a thousand steps too. */
static void test_fresh(float *x)
{
    struct rng r = {3, 0, 0};
    float *x0 = mem_alloc(ROWS * sizeof *x0);
    size_t calls = 0;
    noise(x);
    for (int i = 0; i < 1000; i++) {
        double b = -log(10) + (log(10) + log(100)) * (i + 1) / 1000.0;
        posterior(&calls, x, b - (log(10) + log(100)) / 1000.0, ROWS, 1, x0);
        for (size_t j = 0; j < ROWS; j++)
            x[j] = (float)(solver_alpha(b) * x0[j] + solver_s(b) * rng_normal(&r));
    }
    double wide = width_error(x0);
    ok(wide < -0.1, "fresh noise at each of 1000 steps: width %+.1f %%", 100 * wide);
    struct solver p = SOLVER_DEFAULTS;
    p.kind = SOLVER_DDIM;
    p.evaluations = 300;
    p.eta = 1;
    p.seed = 5;
    sample(p, x);
    wide = width_error(x);
    ok(fabs(wide) < 0.05, "ddim with eta 1, which keeps the law: width %+.1f %%", 100 * wide);
}

/* A denoiser that shrinks what it says: its law is another one. */
static void shrunk(void *ctx, const float *x, double lambda, size_t rows, size_t cols, float *x0)
{
    posterior(ctx, x, lambda, rows, cols, x0);
    for (size_t i = 0; i < rows * cols; i++)
        x0[i] *= 0.9f;
}

/* By the exact denoiser the bound is the entropy of the mixture, with few draws as with many, but
 * for their error; by another one it is above. */
static void test_bound(float *x)
{
    struct solver p = SOLVER_DEFAULTS;
    struct rng r = {13, 0, 0};
    size_t calls = 0;
    const struct denoiser d = {posterior, &calls}, other = {shrunk, &calls};
    double entropy = 0, norm = MODES * width * sqrt(2 * 3.14159265358979323846);
    for (size_t i = 0; i < ROWS; i++) {
        double at = 0;
        x[i] = (float)(mode[rng_below(&r, MODES)] + width * rng_normal(&r));
        for (int k = 0; k < MODES; k++)
            at += exp(-pow((x[i] - mode[k]) / width, 2) / 2) / norm;
        entropy -= log(at) / ROWS;
    }
    p.sigma_min = 0.002;
    p.sigma_max = 100;
    double many = solver_bound(&p, &d, x, ROWS, 1, 2000), few = 0;
    double worse = solver_bound(&p, &other, x, ROWS, 1, 400);
    for (p.seed = 0; p.seed < 20; p.seed++)
        few += solver_bound(&p, &d, x, ROWS, 1, 40) / 20;
    ok(fabs(many - entropy) < 0.02 && fabs(few - entropy) < 0.06 && worse > entropy + 0.1,
       "bound %.4f by 2000 draws, %.4f by 40, %.4f by another law; entropy %.4f", many, few, worse,
       entropy);
}

int main(void)
{
    float *end = mem_alloc(ROWS * sizeof *end), *x = mem_alloc(ROWS * sizeof *x);
    size_t n;
    double w;
    error_of(SOLVER_DPMPP2M, 2000, end, end, &n, &w);
    ok(fabs(w) < 0.015, "the flow itself: width %+.1f %%", 100 * w);
    test_convergence(end, x);
    test_table(end, x);
    test_adaptive(end, x);
    test_fresh(x);
    test_bound(x);
    free(end);
    free(x);
    return tap_done();
}
