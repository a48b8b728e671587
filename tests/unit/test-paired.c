/* test-paired.c - tests paired ratios: hand-made tables, and how often the interval holds the
 * truth. */
#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/stat/paired.h"
#include "tests/tap.h"

enum { LAUNCHES = 6, PROMPTS = 10, CELLS = LAUNCHES * PROMPTS };

static struct paired at_level(const double *base, const double *other, size_t launches,
                              size_t prompts, double level)
{
    const struct paired_cells c = {launches, prompts, base, other};
    double *work = mem_zero(paired_work(&c), sizeof *work);
    struct paired r = paired_ratio(&c, level, work);
    free(work);
    return r;
}

static struct paired ratio_of_tables(const double *base, const double *other, size_t launches,
                                     size_t prompts)
{
    return at_level(base, other, launches, prompts, 0.95);
}

static void fill(double *base, double *other, double ratio)
{
    for (size_t i = 0; i < CELLS; i++) {
        base[i] = 1e6 * (double)(1 + i % PROMPTS);
        other[i] = ratio * base[i];
    }
}

static void test_values(void)
{
    double a[CELLS], b[CELLS];
    fill(a, b, 1.5);
    struct paired r = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    ok(fabs(r.ratio.value - 1.5) < 1e-12 && r.ratio.hi - r.ratio.lo < 1e-9,
           "equal ratios are their own mean, and have no width");
    ok(r.ratio.launches == LAUNCHES && r.prompts == PROMPTS && r.pairs == CELLS &&
               r.left_out == 0, "all cells are pairs");
    for (size_t i = 0; i < CELLS; i++)
        b[i] = a[i] * (i % PROMPTS < 5 ? 2 : 8);
    r = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    ok(fabs(r.ratio.value - 4) < 1e-12, "the geometric mean over prompts");
    /* se = standard deviation of log 2 and log 8 (five each), over the root of ten */
    double sd = log(2) * sqrt(10.0 / 9);
    ok(fabs(r.se - sd / sqrt(10)) < 1e-12 && fabs(r.df - 9) < 1e-9 && r.ratio.half == 0,
           "prompts that differ widen the interval; launches that agree do not");
    fill(a, b, 1);
    r = ratio_of_tables(a, b, LAUNCHES, 1);
    ok(fabs(r.df - (LAUNCHES - 1)) < 1e-9 && r.ratio.lo >= r.ratio.value &&
           r.ratio.hi <= r.ratio.value, "one prompt: the degrees of freedom are those of launches");
}

/* A slow prompt lacks one side in one launch. A plain mean of this launch would look faster. */
static void test_missing(void)
{
    double a[CELLS], b[CELLS];
    fill(a, b, 1);
    for (size_t l = 0; l < LAUNCHES; l++)
        b[l * PROMPTS + 9] *= 16;
    b[9] = NAN;
    struct paired r = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    ok(fabs(log(r.ratio.value) - log(16) / 10) < 1e-12 && r.left_out == 1,
           "a cell missing on one side is left out, and the prompt keeps its weight");
    for (size_t l = 0; l < LAUNCHES; l++)
        for (size_t p = 0; p < 2; p++)
            b[l * PROMPTS + p] = NAN;
    r = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    ok(isnan(r.ratio.value) && isnan(r.ratio.lo) && !strcmp(r.ratio.reason, PAIRED_DISTURBED),
           "prompts that never have a pair: no value, since those that are left were chosen");
}

static void test_launches(void)
{
    double a[CELLS], b[CELLS];
    fill(a, b, 1.2);
    struct paired r = ratio_of_tables(a, b, 4, PROMPTS);
    ok(isnan(r.ratio.value) && !strcmp(r.ratio.reason, LAUNCH_FEW), "four launches: null");
    for (size_t l = 0; l < 2; l++)
        for (size_t p = 0; p < 6; p++)
            a[l * PROMPTS + p] = NAN;
    r = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    ok(isnan(r.ratio.value) && !strcmp(r.ratio.reason, PAIRED_DISTURBED),
           "launches of which most is disturbed do not count: four are left");
    r = ratio_of_tables(a, b, 0, 0);
    ok(isnan(r.ratio.value) && !strcmp(r.ratio.reason, PAIRED_NONE), "no cells: null");
}

/* Launches that lack prompts count for less than whole launches, also in the degrees of freedom. */
static void test_weights(void)
{
    double a[CELLS], b[CELLS];
    struct rng r = {.seed = 3};
    for (size_t k = 0; k < CELLS; k++) {
        a[k] = 1;
        b[k] = exp(0.1 * rng_normal(&r));
    }
    const double t = stat_t_quantile(0.975, LAUNCHES - 1);
    struct ratio x = ratio_of_tables(a, b, LAUNCHES, PROMPTS).ratio;
    ok(fabs(x.half * sqrt(LAUNCHES) / x.sd / t - 1) < 1e-12, "whole launches: t of one less");
    for (size_t l = 0; l < LAUNCHES; l += 2)
        for (size_t p = 0; p < PROMPTS / 2; p++)
            b[l * PROMPTS + (l + p) % PROMPTS] = NAN;
    x = ratio_of_tables(a, b, LAUNCHES, PROMPTS).ratio;
    ok(x.half * sqrt(LAUNCHES) / x.sd > 1.02 * t, "half of them lack half of their prompts: wider");
}

/* The interval of one of nine systems has the level at which all nine hold together with 95 %. */
static void test_level(void)
{
    static const double a[12] = {5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7};
    static const double b[12] = {6, 7, 9, 6, 8, 9, 6, 7, 8, 7, 8, 9};
    const double level = ratio_level(0.95, 9);
    ok(fabs(level - (1 - 0.05 / 9)) < 1e-15, "nine share one level");
    ok(fabs(ratio_level(0.95, 1) - 0.95) < 1e-15 && fabs(ratio_level(0.95, 0) - 0.95) < 1e-15,
           "one interval alone has 95 %%");
    struct paired alone = at_level(a, b, 12, 1, 0.95), wide = at_level(a, b, 12, 1, level);
    ok(wide.ratio.lo < alone.ratio.lo && alone.ratio.hi < wide.ratio.hi,
           "the interval is wider: %g [%g, %g]", wide.ratio.value, wide.ratio.lo, wide.ratio.hi);
    double half = stat_t_quantile(0.5 + level / 2, alone.df) * alone.se;
    ok(fabs(wide.ratio.lo - alone.ratio.value * exp(-half)) < 1e-9 &&
           fabs(wide.ratio.hi - alone.ratio.value * exp(half)) < 1e-9,
           "by Student's t of that level: [%g, %g]", wide.ratio.lo, wide.ratio.hi);
    struct paired few = at_level(a, b, 4, 3, level);
    ok(isnan(few.ratio.lo) && isnan(few.ratio.hi) && few.ratio.reason,
           "four launches have none at any level");
}

/* Simulates crossed effects of launches, prompts and cells, with some cells missing on one side.
 * Returns 1 if the interval holds the truth. */
static int holds(uint64_t seed, double launch_sd, double prompt_sd, double cell_sd)
{
    double a[CELLS], b[CELLS], prompt[PROMPTS];
    struct rng r = {.seed = seed};
    for (size_t p = 0; p < PROMPTS; p++)
        prompt[p] = prompt_sd * rng_normal(&r);
    for (size_t l = 0; l < LAUNCHES; l++) {
        double launch = launch_sd * rng_normal(&r);
        for (size_t p = 0; p < PROMPTS; p++) {
            a[l * PROMPTS + p] = exp(cell_sd * rng_normal(&r));
            b[l * PROMPTS + p] = exp(launch + prompt[p] + cell_sd * rng_normal(&r));
            if (rng_uniform(&r) < 0.05)
                b[l * PROMPTS + p] = NAN;
        }
    }
    struct paired x = ratio_of_tables(a, b, LAUNCHES, PROMPTS);
    return x.ratio.lo <= 1 && x.ratio.hi >= 1;
}

static void test_coverage(void)
{
    static const double world[][3] = {{0.1, 0.3, 0.05}, {0.1, 0, 0.05}, {0, 0.3, 0.05},
                                      {0.05, 0.05, 0.2}, {0.3, 0.3, 0}};
    enum { TURNS = 600 };
    for (size_t w = 0; w < sizeof world / sizeof *world; w++) {
        int held = 0;
        for (uint64_t i = 0; i < TURNS; i++)
            held += holds(1000 * w + i, world[w][0], world[w][1], world[w][2]);
        double share = (double)held / TURNS;
        ok(share > 0.925 && share < 0.999, "launches %g, prompts %g, cells %g: the interval "
               "holds the truth in %.3f of worlds", world[w][0], world[w][1], world[w][2], share);
    }
}

int main(void)
{
    test_values();
    test_missing();
    test_launches();
    test_weights();
    test_level();
    test_coverage();
    return tap_done();
}
