/* test-asgood.c - tests the statistics behind "as good from so many steps on". */
#include <math.h>

#include "lib/stat/asgood.h"
#include "lib/stat/proportion.h"
#include "tests/tap.h"

enum { N = 100 };
static double one[N], a[N], b[N], work[2 * N];
static const struct asgood_kind right = {POOLED_PLAIN, 1, 1}, plain = {POOLED_PLAIN, 1, 0},
                                less = {POOLED_PLAIN, 0, 0}, ppl = {POOLED_EXPONENTIAL, 0, 0};

static struct asgood test(const struct asgood_kind *k, double by, int relative, size_t n)
{
    struct pooled_margin m = {by, relative};
    return asgood_test((struct asgood_side){a, one}, (struct asgood_side){b, one}, n, k, &m, work);
}

static void test_shares(void)
{
    for (int i = 0; i < N; i++)
        a[i] = b[i] = i < 70;
    struct asgood t = test(&right, 0.06, 0, N);
    ok(asgood_is_shown(t.good) && t.worse > 0.9, "the same answers: within 6 points, p %.3f",
       t.good);
    t = test(&right, 0.02, 0, N);
    ok(!asgood_is_shown(t.good), "not within 2 points by 100 prompts, however alike: p %.3f",
       t.good);
    t = test(&right, 0, 0, N);
    ok(!asgood_is_shown(t.good), "without a margin equality proves nothing: p %.3f", t.good);
    t = test(&right, 0.05, 0, 29);
    ok(isnan(t.good) && isnan(t.worse), "29 prompts are too few");
    for (int i = 0; i < N; i++)
        a[i] = i < 40;
    t = test(&right, 0.05, 0, N);
    ok(asgood_is_shown(t.worse) && t.good > 0.9, "30 points less is worse, p %.2g", t.worse);
    struct proportion_pairs p = proportion_count(b, a, N);
    struct interval v = proportion_difference(&p, 0.95);
    t = test(&right, -v.lo + 1e-6, 0, N);
    ok(t.good > 0.025 && t.good < 0.04, "the test ends a prompt short of Tango's interval: p %.5f",
       t.good);
}

/* Compares with the paired t test of values. */
static void test_values(void)
{
    double mean = 0, square = 0;
    for (int i = 0; i < N; i++) {
        b[i] = 2 + sin(i);
        a[i] = b[i] - 0.1 + 0.3 * cos(7.1 * i);
        mean += (a[i] - b[i]) / N;
    }
    for (int i = 0; i < N; i++)
        square += pow(a[i] - b[i] - mean, 2) / (N - 1);
    double t = (mean + 0.15) / sqrt(square / N), p = stat_t_outside(t, N - 1) / 2;
    ok(fabs(test(&plain, 0.15, 0, N).good - (t > 0 ? p : 1 - p)) < 1e-9, "values: paired t");
    ok(fabs(test(&plain, 0.15, 0, N).good + test(&plain, 0.15, 0, N).worse - 1) < 1e-12,
       "the two questions are opposite");
    ok(asgood_is_shown(test(&less, 0.01, 0, N).good), "where less is better it is as good");
    for (int i = 0; i < N; i++)
        a[i] = b[i];
    ok(isnan(test(&plain, 0.1, 0, N).good), "no spread is no certainty");
}

static void test_perplexity(void)
{
    for (int i = 0; i < N; i++) {
        one[i] = 20 + i % 7;
        b[i] = one[i] * (1 + 0.1 * sin(i));
        a[i] = one[i] * (1.02 + 0.1 * sin(i) + 0.02 * cos(3 * i));
    }
    ok(asgood_is_shown(test(&ppl, 0.05, 1, N).good), "a perplexity 2 %% higher is within 5 %%");
    ok(asgood_is_shown(test(&ppl, 0.01, 1, N).worse),
       "a perplexity 2 %% higher is not within 1 %%");
    double by = 0.03 * exp(1.0); /* the perplexity is e */
    ok(fabs(test(&ppl, by, 0, N).good - test(&ppl, 0.03, 1, N).good) < 1e-3,
       "the margin in units of the perplexity says the same");
    const struct asgood_kind more = {POOLED_EXPONENTIAL, 1, 0};
    ok(isnan(test(&more, 1, 1, N).good), "a margin of all of the rival's quality tests nothing");
    for (int i = 0; i < N; i++)
        one[i] = 1;
}

static void test_order(void)
{
    const struct asgood t[] = {{0.9, 0.01}, {0.01, 0.9}, {0.2, 0.01}, {0.02, 0.9}, {0.001, 1}};
    struct asgood_place p = asgood_sequence(t, 5);
    ok(p.first == 3 && p.worse == 1, "the sequence ends at the first that fails: %zu, %zu", p.first,
       p.worse);
    p = asgood_sequence(t, 3);
    ok(p.first == 3, "no place is found when the most steps fail");
    p = asgood_sequence(t, 0);
    ok(p.first == 0 && p.worse == 0, "no counts: no result");
    const struct asgood no[] = {{NAN, NAN}};
    p = asgood_sequence(no, 1);
    ok(p.first == 1 && p.worse == 0, "no test shows nothing");
}

int main(void)
{
    for (int i = 0; i < N; i++)
        one[i] = 1;
    test_shares();
    test_values();
    test_perplexity();
    test_order();
    return tap_done();
}
