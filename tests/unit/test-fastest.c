/* test-fastest.c - tests the choice of the fastest way and the interval against it, on simulated
 * launches whose truth is known: a slower way does not win, a faster way does, and the interval
 * holds the truth as often as it says.
 *
 *     test-fastest          tests
 *     test-fastest 20000    a table of the shares that the tests bound, for so many experiments
 *
 * An experiment has launches x prompts of plain LLaMA, of other ways to run LLaMA, and of LLaDA.
 * Launches spread by 3 %, cells by 3 %; all logarithms are normal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/rng.h"
#include "lib/stat/fastest.h"
#include "lib/stat/paired.h"
#include "tests/tap.h"

enum { WAYS_MOST = 12, LAUNCHES = 8, PROMPTS = 10, CELLS = LAUNCHES * PROMPTS };

struct world {
    size_t ways;    /* plain included */
    double quicker; /* the last way takes exp(-quicker) of the plain time */
    double llada;   /* spread of LLaDA's launches */
};
struct times { double llada[CELLS], way[WAYS_MOST][CELLS]; };

static void draw_one(struct rng *r, double mean, double spread, double *out)
{
    for (size_t l = 0; l < LAUNCHES; l++) {
        const double luck = spread * rng_normal(r);
        for (size_t p = 0; p < PROMPTS; p++)
            out[l * PROMPTS + p] = exp(mean + luck + 0.03 * rng_normal(r));
    }
}

static void draw(struct times *times, const struct world *world, uint64_t seed)
{
    struct rng r = {.seed = rng_derive(seed, "fastest")};
    draw_one(&r, log(1.3), world->llada, times->llada);
    for (size_t i = 0; i < world->ways; i++)
        draw_one(&r, i && i + 1 == world->ways ? -world->quicker : 0, 0.03, times->way[i]);
}

static struct ratio ratio_between(const double *base, const double *other, double level)
{
    double work[CELLS + 64];
    const struct paired_cells cells = {LAUNCHES, PROMPTS, base, other};
    return paired_ratio(&cells, level, work).ratio;
}

static struct fastest choose(const struct times *times, size_t ways)
{
    double ratio[WAYS_MOST];
    for (size_t i = 1; i < ways; i++)
        ratio[i - 1] = ratio_between(times->way[0], times->way[i], 0.95).value;
    return fastest_choose(ratio, ways - 1);
}

/* How often things happen, as shares of the experiments in which another way than plain is chosen.
 * above: the whole interval lies above the truth, so LLaDA looks slower than it is. */
struct shares { double chosen, missed, above; };

/* less: the number of ways that the count leaves out. */
static struct shares simulate(const struct world *world, size_t less, uint64_t first, int n)
{
    static struct times times;
    struct shares shares = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        draw(&times, world, first + (uint64_t)i);
        const struct fastest fastest = choose(&times, world->ways);
        if (fastest.at + 1 == world->ways)
            continue;
        const struct ratio r = ratio_between(times.way[fastest.at + 1], times.llada,
                                             ratio_level(0.95, fastest.of - less));
        const double truth = fastest.at + 2 == world->ways ? 1.3 * exp(world->quicker) : 1.3;
        shares.chosen++;
        shares.missed += r.lo > truth || r.hi < truth;
        shares.above += r.lo > truth;
    }
    shares.missed /= shares.chosen;
    shares.above /= shares.chosen;
    shares.chosen /= n;
    return shares;
}

static void print_table(int n)
{
    printf("ways  llada  count   other chosen  missed   above\n");
    for (size_t ways = 2; ways <= WAYS_MOST; ways += ways < 4 ? 1 : 4)
        for (int even = 0; even < 2; even++)
            for (size_t less = 0; less < (ways > 2 ? 3 : 2); less++) {
                const struct world world = {ways, 0, even ? 0 : 0.03};
                const size_t left_out = less < 2 ? less : ways - 1; /* last: no correction */
                const struct shares s = simulate(&world, left_out, 1, n);
                printf("%4zu  %5.2f  %5zu  %12.4f  %.4f  %.4f\n", ways, world.llada,
                       ways - left_out, s.chosen, s.missed, s.above);
            }
}

/* ---- tests ---- */

static void test_choice(void)
{
    const double slower[] = {1.2, NAN, 1}, mixed[] = {1.1, 0.9, NAN, 0.8, 0.8};
    struct fastest f = fastest_choose(slower, 3);
    ok(f.at == 3 && f.of == 3, "plain stays where no way is faster; a way without pairs is none");
    f = fastest_choose(mixed, 5);
    ok(f.at == 3 && f.of == 5, "the least ratio is chosen, the first of equal ones");
    f = fastest_choose(NULL, 0);
    ok(f.at == 0 && f.of == 1, "plain alone is one way");
}

/* The bounds are those of fastest.h and two standard errors of a share of n experiments. If the
 * launches of LLaDA do not spread (llada 0), nearly all noise takes part in the choice. Then one
 * end may miss in 3 %, because paired_ratio() with so few launches is itself a little too sure. */
static void test_equal_ways(void)
{
    enum { N = 2000 };
    for (size_t ways = 2; ways <= 5; ways++)
        for (int even = 0; even < 2; even++) {
            const struct world world = {ways, 0, even ? 0 : 0.03};
            const struct shares s = simulate(&world, 0, 1, N);
            const double n = N * s.chosen;
            ok(s.missed <= 0.05 + 2 * sqrt(0.05 * 0.95 / n),
               "%zu equal ways, llada %g: the interval misses in %.2f %%", ways, world.llada,
               100 * s.missed);
            ok(s.above <= (even ? 0.03 : 0.025) + 2 * sqrt(0.025 * 0.975 / n),
               "%zu equal ways, llada %g: it lies above the truth in %.2f %%", ways, world.llada,
               100 * s.above);
        }
}

/* If plain did not count, one end would miss too often. The test above would fail then. */
static void test_count(void)
{
    const struct world two = {2, 0, 0.03};
    const struct shares s = simulate(&two, 1, 1, 2000);
    ok(s.above > 0.025 + 2 * sqrt(0.025 * 0.975 / (2000 * s.chosen)),
       "two equal ways counted as one: above the truth in %.2f %%", 100 * s.above);
}

static void test_planted(void)
{
    static struct times times;
    const struct world slow = {3, -0.2, 0.03}, quick = {6, 0.2, 0.03};
    int slow_won = 0, quick_won = 0;
    for (uint64_t i = 1; i <= 100; i++) {
        draw(&times, &slow, i);
        slow_won += choose(&times, slow.ways).at == 1;
        draw(&times, &quick, i);
        quick_won += choose(&times, quick.ways).at == 4;
    }
    ok(slow_won == 0, "a way that is 20 %% slower wins in no run of 100");
    ok(quick_won == 100, "a way that is 20 %% faster wins in 100 runs of 100, got %d", quick_won);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        print_table(atoi(argv[1]));
        return 0;
    }
    test_choice();
    test_equal_ways();
    test_count();
    test_planted();
    return tap_done();
}
