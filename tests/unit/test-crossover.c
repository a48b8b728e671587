/* test-crossover.c - tests curves whose crossings are known, and the coverage of the intervals. */
#include "lib/stat/crossover.h"

#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/contest.h"
#include "tests/tap.h"

static int near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static const double steps[] = {8, 16, 32, 64, 128, 256};
enum { N = 6 };

static void test_rise(void)
{
    double x[] = {3, 4, 5, 6}, y[] = {-3, -1, 1, 2};
    ok(near(crossover_rise(x, y, 4), 4.5, 1e-15), "a crossing is interpolated linearly");
    double up[] = {1, 2, 3, 4}, down[] = {-4, -3, -2, -1};
    ok(crossover_rise(x, up, 4) <= -INFINITY, "a sweep above 0 crosses before its first point");
    ok(crossover_rise(x, down, 4) >= INFINITY, "a sweep below 0 does not cross by its last point");
    double dip[] = {-2, 1, -1, 2}; /* pooled: -2, 0, 0, 2 */
    ok(near(crossover_rise(x, dip, 4), 4, 1e-15), "a dip does not make two crossings");
    double touch[] = {0, 1, 1, 1};
    ok(near(crossover_rise(x, touch, 4), 3, 0), "a sweep can cross exactly at its first point");
    ok(isnan(crossover_rise(x, y, 0)), "no points: the crossing is not a number");
}

static void test_cost(void)
{
    struct crossover_cost c;
    double line[N], bent[N], same[N];
    for (int i = 0; i < N; i++) {
        line[i] = 10 + 2 * steps[i];
        bent[i] = 10 + 0.01 * steps[i] * steps[i];
        same[i] = 5;
    }
    crossover_fit(&c, steps, line, N, -1);
    ok(c.line && near(crossover_cost_meets(&c, 110), 50, 1e-12), "a + b steps is solved");
    ok(crossover_cost_meets(&c, 20) <= -INFINITY && crossover_cost_meets(&c, 9999) >= INFINITY,
       "never extrapolated");
    c.a = 10; /* exact, without the rounding of the fit */
    c.b = 2;
    ok(near(crossover_cost_meets(&c, line[0]), steps[0], 0),
       "a level that the line meets at its first point is met there");
    crossover_fit(&c, steps, bent, N, -1);
    double between = 32 + (40 - bent[2]) / (bent[3] - bent[2]) * 32;
    ok(!c.line && c.residual > 0.02 && near(crossover_cost_meets(&c, 40), between, 1e-12),
       "a curve that is no line is read piece by piece");
    crossover_fit(&c, steps, same, N, -1);
    ok(!c.line && crossover_cost_meets(&c, 6) >= INFINITY &&
       crossover_cost_meets(&c, 4) <= -INFINITY, "a flat cost crosses nothing");
    crossover_fit(&c, steps, same, N, 1);
    ok(!c.line && near(crossover_cost_meets(&c, 5), 8, 0),
       "a flat cost is no line on demand; it equals its level from the first point on");
    ok(isnan(crossover_cost_meets(&c, NAN)), "a level without a value is met nowhere");
}

static void test_bracket(void)
{
    double lo, hi, y[] = {-1, -1, 1, -1, 1, 1}, out[8];
    crossover_bracket(steps, y, N, &lo, &hi);
    ok(near(lo, 16, 0) && near(hi, 32, 0), "bracket: last below, first above");
    y[1] = 0;
    crossover_bracket(steps, y, N, &lo, &hi);
    ok(near(lo, 8, 0) && near(hi, 16, 0), "a point at zero is above");
    double up[] = {1, 1, 1, 1, 1, 1}, down[] = {-1, -1, -1, -1, -1, -1};
    crossover_bracket(steps, up, N, &lo, &hi);
    ok(isnan(lo) && near(hi, 8, 0), "open below");
    crossover_bracket(steps, down, N, &lo, &hi);
    ok(near(lo, 256, 0) && isnan(hi), "open above");
    ok(crossover_between(32, 64, 1, out, 8) == 0, "an octave is narrow enough");
    ok(crossover_between(32, 128, 1, out, 8) == 1 && near(out[0], 64, 0),
       "two octaves: one between");
    ok(crossover_between(16, 256, 1, out, 8) == 3 && near(out[2], 128, 0), "four octaves: three");
    ok(crossover_between(32, 64, 0.5, out, 8) == 1 && near(out[0], 45, 0) &&
       crossover_between(32, 33, 0.01, out, 8) == 0,
       "half an octave, while there is a step between");
    ok(crossover_between(16, 100, 1, out, 8) == 2 && near(out[0], 29, 0) && near(out[1], 54, 0),
       "2.6 octaves in three even pieces");
}

static void test_parity(void)
{
    struct parity_sweep s = {.n_cost = N, .n_quality = N, .rival_cost = 100, .rival_quality = 4.5};
    struct parity p;
    for (int i = 0; i < N; i++) {
        s.cost_steps[i] = s.quality_steps[i] = steps[i];
        s.cost[i] = 2 * steps[i];
        s.quality[i] = log2(steps[i]); /* the rival's 4.5 is reached at 2^4.5 = 22.6 */
    }
    parity_solve(&s, -1, &p);
    ok(near(p.lat, 50, 1e-12) && near(p.q, exp2(4.5), 1e-12), "X_lat 50, X_q 22.6");
    s.rival_cost = 40;
    parity_solve(&s, -1, &p);
    ok(near(p.lat, 20, 1e-12), "a cheaper rival has a smaller X_lat");
    s.rival_quality = 9;
    parity_solve(&s, -1, &p);
    ok(p.q >= INFINITY, "a sweep that is never as good as its rival: X_q is infinite");
    s.rival_quality = 1;
    parity_solve(&s, -1, &p);
    ok(p.q <= -INFINITY, "a sweep that is as good at all steps: X_q is -infinity");
    s.n_quality = 0;
    parity_solve(&s, -1, &p);
    ok(isnan(p.q) && near(p.lat, 20, 1e-12), "no quality: only X_lat");
}

static int shares = 1; /* 1: in every experiment so far the shares of draws sum to 1 */
static double beyond; /* the sum of p_above over all experiments */

/* One experiment. The quality of prompt k at steps s is 0.5 log2 s + shared noise + own noise; the
 * rival's is 0.5 log2(30) + the shared noise. Returns 1 if the interval holds 30. */
static int holds(uint64_t seed, double *width)
{
    enum { PROMPTS = 200, DRAWS = 200, P = N + 1 };
    static double value[P][PROMPTS], draw[DRAWS * P], cost_draw[DRAWS * P], work[5 * DRAWS];
    double at[P] = {0}, cost[P], all[P], level[DRAWS + 1];
    uint32_t index[PROMPTS];
    struct rng r = {.seed = seed};
    for (int k = 0; k < PROMPTS; k++) {
        double shared = 2 * rng_normal(&r);
        for (int i = 0; i < P; i++)
            value[i][k] = 0.5 * log2(i < N ? steps[i] : 30) + shared + rng_normal(&r);
    }
    for (int i = 0; i < P; i++) {
        cost[i] = all[i] = i < N ? steps[i] : 40;
        for (int k = 0; k < PROMPTS; k++)
            at[i] += value[i][k] / PROMPTS;
    }
    for (uint64_t d = 0; d < DRAWS; d++) {
        bootstrap_draw(seed, d, PROMPTS, index);
        for (int i = 0; i < P; i++) {
            double sum = 0;
            for (int k = 0; k < PROMPTS; k++)
                sum += value[i][index[k]] / PROMPTS;
            draw[d * P + (uint64_t)i] = sum;
            cost_draw[d * P + (uint64_t)i] = cost[i];
        }
        level[d] = draw[d * P + N];
    }
    level[DRAWS] = at[N];
    struct contest c = {P, DRAWS, all, cost, cost_draw, at, draw, 0.95};
    struct contest_pair x = {0, N, N, level};
    struct contest_result q;
    contest_solve(&c, &x, &q, work);
    *width += log2(fmin(q.q.hi, 256) / fmax(q.q.lo, 8));
    const int found = q.q.lo <= 30 && 30 <= q.q.hi;
    for (int d = 0; d <= DRAWS; d++)
        level[d] += 1.5; /* so high that some draws do not reach it within the points */
    contest_solve(&c, &x, &q, work);
    shares &= q.q.p_above >= 0 && q.q.p_above <= 1 &&
              near(q.q.p_below + q.q.inside + q.q.p_above, 1, 1e-12);
    beyond += q.q.p_above;
    return found;
}

static void test_coverage(void)
{
    int held = 0, trials = 200;
    double width = 0;
    for (int t = 0; t < trials; t++)
        held += holds((uint64_t)t, &width);
    ok(shares && beyond > 1, "the shares of draws below, inside and above sum to 1");
    ok(held >= 178 && held < 200, "the interval of X_q holds in %d of %d experiments", held,
       trials);
    ok(width / trials > 0.3 && width / trials < 1.5,
       "the interval of X_q is %.2f octaves wide", width / trials);
}

static void test_advice(void)
{
    struct contest_result r = {.lat = {.below = 32, .above = 128},
                               .q = {.below = 256, .above = (double)NAN, .lo = 64, .hi = INFINITY}};
    struct contest_advice a;
    contest_advise(&r, 100, 8, 256, 512, 1, &a);
    ok(a.n == 2 && near(a.steps[0], 64, 0) && near(a.steps[1], 512, 0), "steps to add: 64, 512");
    ok(near(a.octaves, 2, 1e-12) && near(a.prompts, 400, 0) && a.at_least,
       "twice too wide: four times the prompts, at least");
    contest_advise(&r, 100, 8, 256, 256, 1, &a);
    ok(a.n == 1, "no more steps than tokens");
    contest_advise(&r, 100, 8, 256, 256, 0.5, &a);
    ok(near(a.octaves, 2, 1e-12) && near(a.prompts, 1600, 0), "four times too wide: 16 times");
    contest_advise(&r, 0, 8, 256, 256, 1, &a);
    ok(isnan(a.prompts) && a.n == 1, "no quality, no prompts");
}

int main(void)
{
    test_rise();
    test_cost();
    test_bracket();
    test_parity();
    test_coverage();
    test_advice();
    return tap_done();
}
