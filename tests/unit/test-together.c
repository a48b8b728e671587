/* test-together.c - tests draws of several ratios: their spread is that of their intervals, and a
 * launch that several ratios share moves them together. */
#include <math.h>

#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/together.h"
#include "tests/tap.h"

enum { N = 4, L = 8, P = 12, DRAWS = 8000 };
static double cells[N * L * P], draw[DRAWS * N], column[DRAWS], work[8192];

static double *cell(int i, int l, int p)
{
    return &cells[(i * L + l) * P + p];
}

/* Systems 1 and 2 share the effects of their launches and prompts; the last system has no times. */
static void fill(void)
{
    struct rng r = {.seed = 5};
    for (int l = 0; l < L; l++) {
        double shared = 0.1 * rng_normal(&r);
        for (int p = 0; p < P; p++) {
            double prompt = 0.2 * sin(3 * p);
            *cell(0, l, p) = exp(0.01 * rng_normal(&r));
            *cell(1, l, p) = 2 * exp(shared + prompt + 0.01 * rng_normal(&r));
            *cell(2, l, p) = 3 * exp(shared + prompt + 0.01 * rng_normal(&r));
            *cell(3, l, p) = NAN;
        }
    }
}

/* Sets log ratios to 1 + launch + prompt (system 1), 1 + launch + sign * prompt (system 2). */
static void fill_known(const double launch[L], const double prompt[P], double sign)
{
    for (int l = 0; l < L; l++)
        for (int p = 0; p < P; p++) {
            *cell(0, l, p) = exp(sin(5 * l) + cos(7 * p)); /* drops out of both ratios */
            *cell(1, l, p) = *cell(0, l, p) * exp(1 + launch[l] + prompt[p]);
            *cell(2, l, p) = *cell(0, l, p) * exp(1 + launch[l] + sign * prompt[p]);
            *cell(3, l, p) = NAN;
        }
}

/* The variance of the draws of system 1 plus `sign` times those of system 2. */
static double draws_variance(double sign)
{
    for (int d = 0; d < DRAWS; d++)
        column[d] = draw[d * N + 1] + sign * draw[d * N + 2];
    return pow(stat_sd(column, DRAWS), 2);
}

/* Two ratios share the effects of launches and have opposite effects of prompts. So the sum of
 * their draws has twice the launch effect, and the difference has twice the prompt effect. */
static void test_parts(void)
{
    const struct together t = {N, L, P, cells};
    struct paired r[N];
    double launch[L], prompt[P];
    for (int l = 0; l < L; l++)
        launch[l] = 0.1 * cos(2 * l);
    for (int p = 0; p < P; p++)
        prompt[p] = 0.3 * sin(3 * p);
    fill_known(launch, prompt, -1);
    together_draw(&t, 0, 0.95, 1, DRAWS, r, draw, work);
    const double of_launch = pow(stat_sd(launch, L), 2) / L,
                 of_prompt = pow(stat_sd(prompt, P), 2) / P;
    const double is = draws_variance(-1) / draws_variance(1), due = of_prompt / of_launch;
    ok(fabs(is / due - 1) < 0.1, "prompts and launches move the draws by their standard errors: "
       "variances %.3f to 1, expected %.3f", is, due);
    fill_known(launch, prompt, 1);
    together_draw(&t, 0, 0.95, 1, DRAWS, r, draw, work);
    ok(draws_variance(-1) < 1e-20, "equal ratios to a base of any times have equal draws: %g",
       draws_variance(-1));
}

int main(void)
{
    struct together t = {N, L, P, cells};
    struct paired r[N];
    fill();
    ok(together_work(&t) <= sizeof work / sizeof *work, "room");
    together_draw(&t, 0, 0.95, 1, DRAWS, r, draw, work);
    for (int i = 1; i < 3; i++) {
        struct paired_cells c = {L, P, cells, cells + i * L * P};
        struct paired alone = paired_ratio(&c, 0.95, work);
        for (int d = 0; d < DRAWS; d++)
            column[d] = exp(draw[d * N + i]);
        struct interval v = bootstrap_interval(1, column, DRAWS, 0.95);
        ok(fabs(log(v.hi / v.lo) / log(alone.ratio.hi / alone.ratio.lo) - 1) < 0.05,
           "system %d: [%.3f, %.3f] of the draws, [%.3f, %.3f] of its interval", i, v.lo, v.hi,
           alone.ratio.lo, alone.ratio.hi);
    }
    for (int d = 0; d < DRAWS; d++)
        column[d] = draw[d * N + 2] - draw[d * N + 1];
    struct interval v = bootstrap_interval(0, column, DRAWS, 0.95);
    ok(v.hi - v.lo < 0.03, "the common part of both drops out of their difference: %.3f",
       v.hi - v.lo);
    ok(fabs(draw[0]) < 1e-15 && fabs(r[0].ratio.value - 1) < 1e-15, "the base is 1 to itself");
    ok(isnan(draw[3]) && isnan(r[3].ratio.value) && r[3].ratio.reason, "no times, no draws");
    t.launches = 4;
    together_draw(&t, 0, 0.95, 1, 10, r, draw, work);
    ok(isnan(draw[1]) && isnan(r[0].ratio.value), "four launches give none");
    test_parts();
    return tap_done();
}
