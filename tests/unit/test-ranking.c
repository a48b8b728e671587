/* test-ranking.c - tests orders of systems over templates and seeds, on simulated answers. A prompt
 * has a difficulty that all systems and places share, and another one for each place, so places are
 * not independent. A place is one template, number of examples and seed. */
#include <math.h>
#include <string.h>

#include "lib/base/rng.h"
#include "lib/stat/ranking.h"
#include "tests/tap.h"

enum { SYSTEMS = 4, PLACES = 6, MOST = 400, PAIRS = SYSTEMS * (SYSTEMS - 1) / 2 };
static double num[SYSTEMS * PLACES * MOST], den[SYSTEMS * PLACES * MOST], work[2 * MOST];
static signed char shown[PAIRS * PLACES];

/* Fills num with right answers (binary) or values, by skill[system][place]. */
static struct ranking world(uint64_t seed, double skill[SYSTEMS][PLACES], size_t prompts,
                            int binary)
{
    struct rng g = {rng_derive(seed, "worlds"), 0, 0};
    for (size_t p = 0; p < prompts; p++) {
        double shared = rng_normal(&g);
        for (size_t c = 0; c < PLACES; c++) {
            double here = shared + 0.5 * rng_normal(&g);
            for (size_t s = 0; s < SYSTEMS; s++) {
                double x = skill[s][c] - here + 0.7 * rng_normal(&g);
                size_t at = (s * PLACES + c) * prompts + p;
                num[at] = binary ? x > 0 : x;
                den[at] = 1;
            }
        }
    }
    return (struct ranking){SYSTEMS, PLACES, prompts, num, den, {POOLED_PLAIN, 1, binary}};
}

/* Returns how many of n simulations report a flip. */
static int flips(double skill[SYSTEMS][PLACES], size_t prompts, int binary, int n)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        struct ranking r = world((uint64_t)i + 1, skill, prompts, binary);
        found += ranking_find(&r, 0.95, shown, work).flips > 0;
    }
    return found;
}

static void test_planted(void)
{
    double skill[SYSTEMS][PLACES];
    for (size_t s = 0; s < SYSTEMS; s++)
        for (size_t c = 0; c < PLACES; c++)
            skill[s][c] = 0.2 * (double)s;
    skill[0][4] = 1.2; /* in one of six places the worst system is the better one by 0.4 to 1.2 */
    ok(flips(skill, 400, 1, 100) == 100, "a planted flip of right answers: 100 of 100 are found");
    ok(flips(skill, 400, 0, 100) == 100, "a planted flip of values: 100 of 100 are found");
}

/* Without a flip the hardest simulations are those of equal systems. */
static void test_none(void)
{
    double equal[SYSTEMS][PLACES] = {{0}}, one[SYSTEMS][PLACES];
    for (size_t s = 0; s < SYSTEMS; s++)
        for (size_t c = 0; c < PLACES; c++)
            one[s][c] = 0.6 * (double)s * (c < 3); /* an order in three places, else ties */
    int n;
    ok((n = flips(equal, 100, 1, 400)) <= 20, "equal systems, right answers: %d of 400", n);
    ok((n = flips(equal, 100, 0, 400)) <= 20, "equal systems, values: %d of 400", n);
    ok((n = flips(one, 100, 1, 400)) <= 20, "ties beside an order: %d of 400", n);
    ok((n = flips(one, 100, 0, 400)) <= 20, "ties beside an order, values: %d of 400", n);
}

/* Counts tau over all pairs of places and of systems; tests that [lo, hi] contains the true
 * mean. */
static void test_tau(void)
{
    double skill[SYSTEMS][PLACES], tau = 0;
    int inside = 1, truth = 1;
    for (size_t s = 0; s < SYSTEMS; s++)
        for (size_t c = 0; c < PLACES; c++)
            skill[s][c] = 0.15 * (double)(c % 2 ? s : 2 * s % 3);
    for (uint64_t i = 1; i <= 50; i++) {
        struct ranking r = world(i, skill, 100, 0);
        struct ranking_found f = ranking_find(&r, 0.95, shown, work);
        double mean[SYSTEMS][PLACES] = {{0}}, sum = 0, want = 0, n = 0;
        for (size_t s = 0; s < SYSTEMS; s++)
            for (size_t c = 0; c < PLACES; c++)
                for (size_t p = 0; p < 100; p++)
                    mean[s][c] += num[(s * PLACES + c) * 100 + p];
        for (size_t a = 0; a < PLACES; a++)
            for (size_t b = a + 1; b < PLACES; b++)
                for (size_t s = 0; s < SYSTEMS; s++)
                    for (size_t t = s + 1; t < SYSTEMS; t++, n++) {
                        double x = (mean[s][a] - mean[t][a]) * (mean[s][b] - mean[t][b]);
                        double y = (skill[s][a] - skill[t][a]) * (skill[s][b] - skill[t][b]);
                        sum += x > 0 ? 1 : -1;
                        want += (y > 0) - (y < 0);
                    }
        tau = fmax(tau, fabs(f.tau - sum / n));
        inside &= f.lo <= f.tau && f.tau <= f.hi;
        truth &= f.lo <= want / n && want / n <= f.hi;
    }
    ok(tau < 1e-12, "tau is the mean over pairs of places of (concordant - discordant) / pairs");
    ok(inside, "[lo, hi] holds the measured tau in 50 of 50 worlds");
    ok(truth, "[lo, hi] holds the true tau in 50 of 50 worlds");
}

static void test_shown(void)
{
    double skill[SYSTEMS][PLACES];
    for (size_t s = 0; s < SYSTEMS; s++)
        for (size_t c = 0; c < PLACES; c++)
            skill[s][c] = (double)s;
    struct ranking r = world(1, skill, 200, 0);
    struct ranking_found f = ranking_find(&r, 0.95, shown, work);
    ok(f.tau >= 1 && f.lo >= 1 && f.hi <= 1, "a clear order: tau 1 [%g, %g]", f.lo, f.hi);
    ok(shown[ranking_pair(SYSTEMS, 2, 3) * PLACES] == -1, "the second of a pair is the better one");
    r.kind.higher = 0;
    f = ranking_find(&r, 0.95, shown, work);
    ok(shown[ranking_pair(SYSTEMS, 2, 3) * PLACES] == 1, "unless less is better");
    r = world(1, skill, 20, 0);
    f = ranking_find(&r, 0.95, shown, work);
    ok(f.tau >= 1 && f.lo < 1 && f.hi >= 1, "20 prompts show nothing: [%g, %g]", f.lo, f.hi);
    size_t last = 0;
    for (size_t i = 0; i < SYSTEMS; i++)
        for (size_t j = i + 1; j < SYSTEMS; j++)
            last += ranking_pair(SYSTEMS, i, j) == last;
    ok(last == PAIRS, "pairs are numbered in order");
}

/* Returns in how many of n worlds at least `least` pairs of system 1 with the other first `systems`
 * systems are called the same. */
static int same_of(size_t systems, double skill[SYSTEMS][PLACES], size_t prompts, int binary,
                   double by, int least, int n)
{
    const struct pooled_margin margin = {by, 0};
    int found = 0;
    for (int i = 0; i < n; i++) {
        struct ranking r = world((uint64_t)i + 1, skill, prompts, binary);
        r.systems = systems;
        int pairs = ranking_is_same(&r, 0, 1, &margin, 0.95, work);
        for (size_t other = 2; other < systems; other++)
            pairs += ranking_is_same(&r, 1, other, &margin, 0.95, work);
        found += pairs >= least;
    }
    return found;
}

/* some(): at least one pair of system 1. all(): all its pairs. */
static int some(double skill[SYSTEMS][PLACES], size_t prompts, int binary, double by, int n)
{
    return same_of(SYSTEMS, skill, prompts, binary, by, 1, n);
}

static int all(double skill[SYSTEMS][PLACES], int binary, double by)
{
    return same_of(SYSTEMS, skill, 400, binary, by, SYSTEMS - 1, 100);
}

/* The margin of right answers is 10 points. A skill of APART makes this difference from skill 0,
 * because the sum of the three random terms has the variance 1 + 0.25 + 0.49. */
static const double POINTS = 0.1, APART = 0.33422, MARGIN = 0.3;

/* The hardest worlds for SAME differ by exactly the margin in one place only, in either direction:
 * all other places then pass. At most 2.5 % of 800 worlds may be called the same. */
static void test_apart(void)
{
    double better[SYSTEMS][PLACES] = {{0}}, worse[SYSTEMS][PLACES] = {{0}};
    int n;
    better[1][4] = APART;
    worse[1][4] = -APART;
    n = some(better, 400, 1, POINTS, 400) + some(worse, 400, 1, POINTS, 400);
    ok(n <= 20, "apart by the margin in one place, right answers: %d of 800 called the same", n);
    better[1][4] = MARGIN;
    worse[1][4] = -MARGIN;
    n = some(better, 400, 0, MARGIN, 400) + some(worse, 400, 0, MARGIN, 400);
    ok(n <= 20, "apart by the margin in one place, values: %d of 800 called the same", n);
    n = same_of(2, better, 400, 0, MARGIN, 1, 2000) + same_of(2, worse, 400, 0, MARGIN, 1, 2000);
    ok(n >= 70 && n <= 130,
       "one pair, apart by the margin: %d of 4000 called the same, expected 70 to 130", n);
    n = some(better, 60, 0, MARGIN, 400) + some(worse, 60, 0, MARGIN, 400);
    ok(n <= 20, "apart by the margin, 60 prompts: %d of 800 called the same", n);
}

/* In the second and third line a test of a place fails in about 1 of 1,000 worlds, so about 2 of
 * 100 worlds fail in some of 3 pairs and 6 places; 93 is 3 standard deviations below 98. */
static void test_same(void)
{
    int n;
    double equal[SYSTEMS][PLACES] = {{0}}, near[SYSTEMS][PLACES];
    for (size_t s = 0; s < SYSTEMS; s++)
        for (size_t c = 0; c < PLACES; c++)
            near[s][c] = s == 1 && c % 2 ? MARGIN / 10 : 0;
    ok(all(equal, 0, MARGIN) == 100, "equal values: three pairs are the same in 100 of 100");
    ok((n = all(near, 0, MARGIN)) >= 93, "a tenth of the margin apart: %d of 100", n);
    ok((n = all(equal, 1, 0.15)) >= 93, "equal shares of right answers: %d of 100", n);
    ok(some(equal, 400, 0, 0, 100) == 0, "without a margin nothing is the same");
    ok(some(equal, ASGOOD_LEAST - 1, 0, 100, 100) == 0, "with few prompts nothing is the same");
    double above[SYSTEMS][PLACES] = {{0}};
    for (size_t c = 0; c < PLACES; c++)
        above[1][c] = 2 * MARGIN;
    ok(some(above, 400, 0, MARGIN, 100) == 0, "twice the margin apart everywhere: 0 of 100");
}

int main(void)
{
    test_planted();
    test_none();
    test_tau();
    test_shown();
    test_apart();
    test_same();
    return tap_done();
}
