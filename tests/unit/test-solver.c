/* test-solver.c - tests the solvers on a mixture of four Gaussians (tests/mixture.h), whose flow is
 * known exactly: how far samples end from the exact end points, and how much wider the modes
 * become. A sampler that draws new noise in place of the predicted noise, as a public fork does,
 * must miss the width. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "tests/mixture.h"
#include "tests/tap.h"

enum { ROWS = 4000, SEED = 7 };

static const char *const names[] = {"ddim", "dpmpp2m", "edm", "adaptive"};

/* Draws samples by a solver. Returns the calls of the model for each row. */
static size_t sample(struct solver p, float *x)
{
    size_t calls = 0;
    const struct denoiser d = {mixture_predict, &calls};
    mixture_noise(SEED, x, ROWS);
    return solver_run(&p, &d, x, ROWS, 1);
}

/* The standard deviation within the modes, divided by the true one, less 1. */
static double width_error(const float *x)
{
    return mixture_deviation(x, ROWS) / mixture_width - 1;
}

/* Returns the rms distance from the flow's end. *calls: calls of the model for each row. *wide: how
 * much wider the modes are than those of the flow's end. */
static double error_of(enum solver_kind kind, size_t evaluations, const float *end, float *x,
                       size_t *calls, double *wide)
{
    struct solver p = SOLVER_DEFAULTS;
    p.kind = kind;
    p.evaluations = evaluations;
    *calls = sample(p, x);
    *wide = mixture_deviation(x, ROWS) / mixture_deviation(end, ROWS) - 1;
    struct mixture_distance d = mixture_distance(x, end, ROWS);
    printf("# %-9s %4zu calls: distance %.5f +- %.5f, width %+.2f %%\n", names[kind], *calls,
           d.value, d.error, 100 * *wide);
    return d.value;
}

/* More evaluations give less error: for twice as many, by at least a factor of `order` if the error
 * is small. */
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

/* The largest allowed error and width of a solver after so many evaluations, from such solvers on a
 * mixture of four Gaussians elsewhere. A distance may exceed its bound by three of its standard
 * errors. Widths are compared with the flow's for the same noise, so their error is very small. */
static void test_table(const float *end, float *x)
{
    static const struct {
        enum solver_kind kind;
        size_t evaluations;
        double off, wide;
    } rows[] = {{SOLVER_DDIM, 10, 0.119, 0.22},     {SOLVER_DDIM, 20, 0.066, 0.17},
                {SOLVER_DDIM, 50, 0.037, 0.10},     {SOLVER_DDIM, 1000, 0.006, 0.01},
                {SOLVER_DPMPP2M, 10, 0.087, 0.18},  {SOLVER_DPMPP2M, 20, 0.030, 0.04},
                {SOLVER_DPMPP2M, 50, 0.009, 0.017}, {SOLVER_DPMPP2M, 1000, 1e-4, 0.006},
                {SOLVER_EDM, 19, 0.143, 0.06},      {SOLVER_EDM, 29, 0.143, 0.02},
                {SOLVER_EDM, 49, 0.016, 0.03},      {SOLVER_EDM, 999, 1e-4, 0.006}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n;
        double wide, off = error_of(rows[i].kind, rows[i].evaluations, end, x, &n, &wide);
        double sampling = mixture_distance(x, end, ROWS).error;
        ok(n == rows[i].evaluations && off < rows[i].off + 3 * sampling &&
               fabs(wide) < rows[i].wide,
           "%s, %zu evaluations: off by %.5f +- %.5f of at most %.4f, width %+.2f %% of %.1f",
           names[rows[i].kind], n, off, sampling, rows[i].off, 100 * wide, 100 * rows[i].wide);
    }
}

/* Each row has its own step length, so it takes the same steps alone as among other rows. */
static void test_adaptive(const float *end, float *x)
{
    struct solver p = SOLVER_DEFAULTS;
    size_t n, calls = 0, loose;
    double w, off = error_of(SOLVER_ADAPTIVE, 1, end, x, &loose, &w), tight;
    const struct denoiser d = {mixture_predict, &calls};
    float one[2] = {x[17], 0};
    mixture_noise(SEED, x, ROWS);
    one[1] = x[17];
    p.kind = SOLVER_ADAPTIVE;
    solver_run(&p, &d, &one[1], 1, 1);
    ok(one[0] == one[1], "adaptive: a row alone ends where it ended among others");
    p.rtol = 0.005;
    p.atol = 0.0008;
    n = sample(p, x);
    tight = mixture_distance(x, end, ROWS).value;
    ok(off < 0.06 && tight < off / 3 && n > loose,
       "adaptive: %zu calls at most, off by %.3f; ten times as strict %zu and %.4f", loose, off, n,
       tight);
}

/* Fresh noise in place of the predicted noise at every step (and not by eta) misses the
 * distribution, even with a thousand steps. */
static void test_fresh(float *x)
{
    float *room = mem_alloc(ROWS * sizeof *room);
    mixture_noise(SEED, x, ROWS);
    mixture_fresh(3, 1000, x, room, ROWS);
    double wide = width_error(x);
    ok(wide < -0.1, "fresh noise at each of 1000 steps: width %+.1f %%", 100 * wide);
    struct solver p = SOLVER_DEFAULTS;
    p.kind = SOLVER_DDIM;
    p.evaluations = 300;
    p.eta = 1;
    p.seed = 5;
    sample(p, x);
    wide = width_error(x);
    ok(fabs(wide) < 0.05, "ddim with eta 1, which keeps the law: width %+.1f %%", 100 * wide);
    free(room);
}

/* A denoiser that shrinks its result, so that its distribution differs. */
static void shrunk(void *ctx, const float *x, double lambda, size_t rows, size_t cols, float *x0)
{
    mixture_predict(ctx, x, lambda, rows, cols, x0);
    for (size_t i = 0; i < rows * cols; i++)
        x0[i] *= 0.9f;
}

/* With the exact denoiser the bound is the entropy of the mixture, whether draws are few or many,
 * up to their error. With another denoiser the bound is higher. */
static void test_bound(float *x)
{
    struct solver p = SOLVER_DEFAULTS;
    struct rng r = {13, 0, 0};
    size_t calls = 0;
    const struct denoiser d = {mixture_predict, &calls}, other = {shrunk, &calls};
    double entropy = 0, norm = MIXTURE_MODES * mixture_width * sqrt(2 * 3.14159265358979323846);
    for (size_t i = 0; i < ROWS; i++) {
        double at = 0;
        x[i] = (float)(mixture_mode[rng_below(&r, MIXTURE_MODES)] +
                       mixture_width * rng_normal(&r));
        for (int k = 0; k < MIXTURE_MODES; k++)
            at += exp(-pow((x[i] - mixture_mode[k]) / mixture_width, 2) / 2) / norm;
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

/* The flow by quantiles ends where 2000 steps of a solver end, and these ends have the right
 * width. */
static void test_end(float *end, float *x)
{
    const struct solver p = SOLVER_DEFAULTS;
    size_t n;
    double w;
    mixture_noise(SEED, x, ROWS);
    mixture_end(&p, x, ROWS, end);
    double far = error_of(SOLVER_DPMPP2M, 2000, end, x, &n, &w);
    ok(far < 3e-5, "the flow by quantiles and by 2000 steps: %.1e apart", far);
    double sampling = 1 / sqrt(2.0 * ROWS);
    w = width_error(end);
    ok(fabs(w) < 3 * sampling, "the flow itself: width %+.1f %%, sampling error %.1f %%", 100 * w,
       100 * sampling);
}

int main(void)
{
    float *end = mem_alloc(ROWS * sizeof *end), *x = mem_alloc(ROWS * sizeof *x);
    test_end(end, x);
    test_convergence(end, x);
    test_table(end, x);
    test_adaptive(end, x);
    test_fresh(x);
    test_bound(x);
    free(end);
    free(x);
    return tap_done();
}
