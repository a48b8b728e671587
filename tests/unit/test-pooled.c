/* test-pooled.c - tests qualities of a whole set of prompts: ratios of sums, and bootstrap draws
 * with the bits of a plain sum. */
#include "lib/stat/pooled.h"

#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"
#include "tests/tap.h"

static int near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(fabs(b), 1);
}

static void test_pooled(void)
{
    /* 2 points, 3 prompts; the second point lacks prompt 1. */
    double num[] = {1, 2, 3, 4, 0, 6}, den[] = {1, 1, 2, 2, 0, 2};
    unsigned char there[] = {1, 1, 1, 1, 0, 1}, has[] = {1, 1};
    size_t left;
    size_t n = pooled_common(num, den, there, has, 2, 3, &left);
    ok(n == 2 && left == 1 && near(num[1], 3, 0) && near(num[2], 4, 0) && near(num[3], 6, 0),
       "prompts that all have are kept");
    double value[2], draw[1], work[2 * 2 * 3];
    uint32_t index[2];
    pooled_draws(num, den, has, 2, 2, POOLED_EXPONENTIAL, 1, 0, value, draw, index, work);
    ok(near(value[0], exp(4.0 / 3), 1e-15) && near(value[1], exp(10.0 / 4), 1e-15),
       "perplexity is pooled, not averaged");
    struct pooled_margin m;
    ok(!pooled_margin_parse("judge_ppl=1%,accuracy=0.02", "accuracy", &m) && near(m.by, 0.02, 0) &&
       !m.relative && near(pooled_worsened(0.5, &m, 1), 0.48, 1e-15), "a margin by name");
    ok(!pooled_margin_parse("0.5,bleu=0.3,accuracy=0.02", "rouge", &m) && near(m.by, 0.5, 0) &&
           !pooled_margin_parse("0.5,acc=0.3,rouge=0.02", "accuracy", &m) && near(m.by, 0.5, 0) &&
           !pooled_margin_parse("0.5,roug2=0.3", "rouge", &m) && near(m.by, 0.5, 0),
       "a margin of another name does not apply, even if the name is shorter or as long");
    ok(!pooled_margin_parse("1%", "judge_ppl", &m) && m.relative &&
       near(pooled_worsened(20, &m, 0), 20.2, 1e-15), "a relative margin");
    ok(pooled_margin_parse("x", "a", &m) && pooled_margin_parse("-1", "a", &m) &&
       pooled_margin_parse("a=", "a", &m) && pooled_margin_parse("1,,2", "a", &m),
       "malformed margins are refused");
}

/* Draws computed one number after the other; pooled_draws must give the same bits. */
static double pooled_plainly(const double *num, const double *den, size_t n, uint64_t seed,
                             uint64_t draw, enum pooled_transform transform)
{
    struct rng r = {.seed = seed, .stream = draw};
    double value = 0, weight = 0;
    for (size_t k = 0; k < n; k++) {
        size_t at = rng_below(&r, n);
        value += num[at];
        weight += den[at];
    }
    double mean = weight > 0 ? value / weight : (double)NAN;
    return transform == POOLED_EXPONENTIAL ? exp(mean)
           : transform == POOLED_BITS      ? mean / log(2)
                                           : mean;
}

static void test_pooled_draws(void)
{
    enum { FEW = 300, MOST = 2500, POINTS = 13, DRAWS = 40 };
    static double num[POINTS * MOST], den[POINTS * MOST], work[2 * POINTS * (MOST + 1)];
    static double value[POINTS], draw[DRAWS * POINTS];
    static uint32_t index[MOST];
    struct rng r = {.seed = 9};
    int wrong = 0;
    for (int round = 0; round < 80; round++) {
        int many = round >= 60, right = round % 4 > 1; /* right: answers, not values */
        size_t n = round < 6 ? (size_t)round
                   : many    ? 1000 + rng_below(&r, MOST - 1000)
                             : 1 + rng_below(&r, FEW);
        size_t points = 1 + rng_below(&r, POINTS);
        unsigned char has[POINTS];
        enum pooled_transform t = (enum pooled_transform)(round % 3);
        for (size_t i = 0; i < points; i++)
            has[i] = rng_below(&r, 5) > 0;
        for (size_t i = 0; i < points * n; i++) {
            num[i] = !has[i / n] ? 0 : right ? (double)rng_below(&r, 2) : rng_uniform(&r) - 0.3;
            int half = round % 8 == 7; /* the first point has weights of 1, the others of 1 to 9 */
            int ones = half ? i < n : round % 2;
            den[i] = !has[i / n] ? 0 : ones ? 1 : (double)(rng_below(&r, 9) + (half ? 1 : 0));
        }
        pooled_draws(num, den, has, points, n, t, 7, DRAWS, value, draw, index, work);
        for (size_t k = 0; k < DRAWS * points; k++) {
            size_t i = k % points;
            double v = has[i] ? pooled_plainly(num + i * n, den + i * n, n, 7, k / points, t)
                              : (double)NAN;
            wrong += isnan(v) ? !isnan(draw[k]) : memcmp(&v, &draw[k], sizeof v) != 0;
        }
    }
    ok(!wrong, "draws of several points side by side, to the bit (%d differ)", wrong);
}

static void test_columns(void)
{
    enum { N = 97, MOST = 27 };
    double rows[N * MOST], sum[MOST];
    uint32_t index[N];
    struct rng r = {.seed = 4};
    int wrong = 0;
    for (size_t i = 0; i < N * MOST; i++)
        rows[i] = rng_normal(&r);
    bootstrap_draw(3, 1, N, index);
    for (size_t width = 1; width <= MOST; width++)
        for (int all = 0; all < 2; all++) {
            bootstrap_sums(rows, width, all ? NULL : index, N, sum);
            for (size_t k = 0; k < width; k++) {
                double s = 0;
                for (size_t i = 0; i < N; i++)
                    s += rows[(all ? i : index[i]) * width + k];
                wrong += memcmp(&s, &sum[k], sizeof s) != 0;
            }
        }
    ok(!wrong, "sums of 1 to %d columns, each in its order", MOST);
}

int main(void)
{
    test_pooled();
    test_pooled_draws();
    test_columns();
    return tap_done();
}
