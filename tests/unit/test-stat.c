/* test-stat.c - compares sums, intervals, lines, launches and events with published or hand-made
 * values. */
#include "lib/stat/batches.h"
#include "lib/stat/stat.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"
#include "lib/stat/events.h"
#include "lib/stat/trend.h"
#include "lib/stat/launch.h"
#include "lib/stat/pooled.h"
#include "lib/stat/proportion.h"
#include "lib/stat/ratio.h"
#include "tests/tap.h"

static int near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance * fmax(1, fabs(b));
}

static void test_sums(void)
{
    static double x[1000000];
    for (size_t i = 0; i < 1000000; i++)
        x[i] = 0.1;
    ok(near(stat_sum(x, 1000000), 100000, 1e-15), "a million tenths");
    double big[] = {1e16, 1, -1e16};
    ok(near(stat_sum(big, 3), 1, 0), "1e16 + 1 - 1e16 is 1");
    double two[] = {2, 4};
    ok(near(stat_sd(two, 2), sqrt(2), 1e-15), "sd with n - 1");
    ok(isnan(stat_sd(two, 1)) && isnan(stat_mean(two, 0)) && isnan(stat_median(two, 0)),
       "undefined is NaN");
    double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2};
    ok(near(stat_median(odd, 3), 3, 0) && near(stat_median(even, 4), 2.5, 0), "medians");
    double one[] = {7, NAN};
    ok(near(stat_median(one, 1), 7, 0), "the median of one value reads no value behind it");
}

static void test_t(void)
{
    /* Printed tables of Student's distribution. */
    ok(near(stat_t_quantile(0.975, 1), 12.70620474, 1e-8), "t, 1 degree");
    ok(near(stat_t_quantile(0.975, 4), 2.776445105, 1e-8), "t, 4 degrees");
    ok(near(stat_t_quantile(0.95, 30), 1.697260887, 1e-8), "t, 30 degrees");
    ok(near(stat_t_quantile(0.975, INFINITY), 1.959963985, 1e-8), "normal");
    ok(near(stat_t_quantile(0.025, 4), -2.776445105, 1e-8), "t is symmetric");
    double x[] = {10, 12, 14};
    struct interval v = stat_t(x, 3, 0.95);
    ok(near(v.value, 12, 0) && near(v.hi - 12, 4.302652730 * 2 / sqrt(3), 1e-8), "t interval");
    v = stat_t(x, 1, 0.95);
    ok(near(v.value, 10, 0) && isnan(v.lo) && isnan(v.hi), "one value has no t interval");
}

/* Tests the ranks of the interval in 1..n. */
static int ranks(size_t n, double q, int lo, int hi)
{
    double *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(n - i);
    struct interval v = stat_quantile(x, n, q, 0.95);
    free(x);
    if (!lo)
        return isnan(v.lo) && isnan(v.hi);
    return near(v.lo, lo, 0) && near(v.hi, hi, 0);
}

static void test_quantile(void)
{
    ok(ranks(5, 0.5, 0, 0), "median of 5 has no interval");
    ok(ranks(6, 0.5, 1, 6), "median of 6: ranks 1..6");
    ok(ranks(9, 0.5, 2, 8), "median of 9: ranks 2..8");
    ok(ranks(10, 0.5, 2, 9), "median of 10: ranks 2..9");
    ok(ranks(15, 0.5, 4, 12), "median of 15: ranks 4..12");
    ok(ranks(20, 0.5, 6, 15), "median of 20: ranks 6..15");
    ok(ranks(30, 0.5, 10, 21), "median of 30: ranks 10..21");
    ok(ranks(28, 0.9, 0, 0) && !ranks(29, 0.9, 0, 0), "p90 needs 29");
    ok(ranks(58, 0.95, 0, 0) && !ranks(59, 0.95, 0, 0), "p95 needs 59");
    ok(ranks(298, 0.99, 0, 0) && !ranks(299, 0.99, 0, 0), "p99 needs 299");
    ok(launch_needed(0.9, 0.95) == 29 && launch_needed(0.95, 0.95) == 59 &&
       launch_needed(0.99, 0.95) == 299, "the same limits from the formula");
    int held = 0, trials = 2000;
    struct rng r = {.seed = 4};
    for (int t = 0; t < trials; t++) {
        double x[40];
        for (int i = 0; i < 40; i++)
            x[i] = -log(1 - rng_uniform(&r)); /* exponential: skewed */
        struct interval v = stat_quantile(x, 40, 0.5, 0.95);
        held += v.lo <= log(2) && log(2) <= v.hi;
    }
    ok(held >= 0.94 * trials, "the median's interval holds in %d of %d skewed samples", held,
       trials);
}

static double loss(const double *x, const double *y, size_t n, double a, double b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += fabs(y[i] - a - b * x[i]);
    return sum;
}

static void test_lines(void)
{
    double x[] = {16, 32, 64, 128, 256}, y[5], a, b;
    for (int i = 0; i < 5; i++)
        y[i] = 7 + 3 * x[i];
    y[3] += 500; /* one launch was disturbed */
    stat_line(x, y, 5, &a, &b);
    ok(near(a, 7, 1e-12) && near(b, 3, 1e-12), "the line ignores an outlier");
    int best = 1;
    struct rng r = {.seed = 9};
    for (int t = 0; t < 50; t++) { /* no line through two of the points may be better */
        double u[12], v[12];
        for (int i = 0; i < 12; i++) {
            u[i] = floor(8 * rng_uniform(&r));
            v[i] = rng_normal(&r);
        }
        stat_line(u, v, 12, &a, &b);
        for (int i = 0; i < 12; i++)
            for (int j = 0; j < i; j++)
                if (u[i] != u[j]) { /* exact: whole numbers */
                    double s = (v[i] - v[j]) / (u[i] - u[j]);
                    best = best && loss(u, v, 12, a, b) <=
                                       loss(u, v, 12, v[i] - s * u[i], s) + 1e-12;
                }
    }
    ok(best, "the line is the best of all lines through two points");
    double one[] = {3, 3, 3}, up[] = {1, 5, 2};
    stat_line(one, up, 3, &a, &b);
    ok(near(b, 0, 0) && near(a, 2, 0), "points of one abscissa give a flat line at their median");
    double s, se, drift[] = {1, 2, 3, 4};
    stat_slope(drift, 4, &s, &se);
    ok(near(s, 1, 1e-15) && near(se, 0, 1e-12), "slope of 1, 2, 3, 4");
}

static void test_isotonic(void)
{
    double y[] = {1, 3, 2, 2, 5}, work[10];
    stat_isotonic(y, 5, work);
    double third = 7.0 / 3;
    ok(near(y[0], 1, 0) && near(y[1], third, 1e-15) && near(y[2], third, 1e-15) &&
       near(y[3], third, 1e-15) && near(y[4], 5, 0), "violators are pooled");
    double down[] = {3, 2, 1};
    stat_isotonic(down, 3, work);
    ok(near(down[0], 2, 1e-15) && near(down[2], 2, 1e-15), "a falling curve becomes its mean");
}

static void test_bootstrap(void)
{
    uint32_t a[50], b[50];
    bootstrap_draw(7, 3, 50, a);
    bootstrap_draw(7, 4, 50, b);
    int moved = memcmp(a, b, sizeof a) != 0;
    bootstrap_draw(7, 3, 50, b);
    ok(moved && !memcmp(a, b, sizeof a), "a draw is a function of its name");
    int wrong = 0;
    const size_t counts[] = {1, 2, 3, 7, 16, 17, 64, 590, 1 << 20, (1 << 20) + 7};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        struct rng r = {.seed = 7, .stream = k};
        uint32_t *at = malloc(counts[k] * sizeof *at);
        bootstrap_draw(7, k, counts[k], at);
        for (size_t i = 0; i < counts[k]; i++)
            wrong += at[i] != rng_below(&r, counts[k]);
        free(at);
    }
    ok(!wrong, "places are those of rng_below (%d differ)", wrong);
    double d[1000];
    for (int i = 0; i < 1000; i++)
        d[i] = i < 30 ? -INFINITY : i >= 990 ? INFINITY : (double)i;
    struct interval v = bootstrap_interval(500, d, 1000, 0.95);
    ok(v.lo <= -INFINITY && near(v.hi, 974, 0), "an interval may be open on one side");
    v = bootstrap_wilson(15, 20, 0.95);
    ok(near(v.value, 0.75, 0) && near(v.lo, 0.5312997, 1e-6) && near(v.hi, 0.8881383, 1e-6),
       "Wilson's interval, 15 of 20");
    v = bootstrap_wilson(0, 10, 0.95);
    ok(near(v.lo, 0, 0) && near(v.hi, 0.2775328, 1e-6), "Wilson's interval, 0 of 10");
}

static void test_events(void)
{
    double t[] = {10, 30, 60, 60, 90}, k[] = {1, 4, 0, 1, 2}, gap[5], weight[5];
    size_t n = events_cut(t, k, 5, 7);
    ok(n == 4 && near(k[3], 1, 0), "tokens behind the stop id and empty emissions are cut");
    ok(near(events_tpot(t, k, n), 80.0 / 6, 1e-15), "time per token after the first emission");
    size_t m = events_gaps(t, k, n, gap, weight);
    ok(m == 3 && near(gap[0], 5, 0) && near(weight[0], 4, 0) && near(gap[2], 30, 0),
       "a gap is shared by the tokens that end it");
    ok(isnan(events_tpot(t, k, 1)) && events_gaps(t, k, 1, gap, weight) == 0 &&
       events_gaps(t, k, 0, gap, weight) == 0, "all at once has none");
}

static void test_launches(void)
{
    struct launch_sample s[40];
    struct launch_value v[40];
    double work[80];
    for (int i = 0; i < 40; i++)
        s[i] = (struct launch_sample){i % 2, 100 + i % 2 * 10 + (i / 2) % 5, 1};
    struct launch_summary r = launch_summarize(LAUNCH_MEDIAN, s, 40, v, work);
    ok(r.launches == 2 && near(r.at.value, sqrt(102 * 112), 1e-15) && near(v[0].value, 102, 0) &&
       near(v[1].value, 112, 0), "headline is the geometric mean of launch medians");
    ok(isnan(r.at.lo) && !strcmp(r.reason, "fewer than 5 launches"), "no interval of two launches");
    r = launch_summarize(LAUNCH_MEDIAN, s, 20, v, work);
    ok(r.launches == 1 && isnan(r.at.lo) && !strcmp(r.reason, "fewer than 5 launches"),
       "no interval of the answers of one launch");
    struct launch_sample rate[] = {{1, 10, 1}, {1, 90, 3}, {2, 100, 2}};
    r = launch_summarize(LAUNCH_RATIO, rate, 3, v, work);
    ok(near(r.at.value, 200.0 / 6, 1e-15) && near(v[0].value, 25, 0) && near(v[1].value, 50, 0),
       "a rate is the ratio of sums");
    struct launch_sample token[] = {{1, 5, 4}, {1, 50, 1}, {1, 7, 2}};
    r = launch_summarize(LAUNCH_WEIGHTED, token, 3, v, work);
    ok(near(r.at.value, 5, 0), "a gap counts once for each of its tokens");
    struct launch_sample even[] = {{1, 5, 2}, {1, 7, 1}, {1, 9, 1}};
    r = launch_summarize(LAUNCH_WEIGHTED, even, 3, v, work);
    ok(near(r.at.value, 6, 0), "half of the tokens on each side: the median lies between two gaps");
}

/* Tests samples in every order. */
static void test_sorting(void)
{
    enum { N = 3000, SHAPES = 6 };
    static struct launch_sample s[N];
    static struct launch_value v[N];
    static double work[N];
    struct rng r = {.seed = 3};
    int good = 1;
    for (int shape = 0; shape < SHAPES; shape++) {
        double organ[] = {0, 0, 0, 0, 0, 0};
        for (int i = 0; i < N; i++) {
            organ[0] = i;
            organ[1] = N - i;
            organ[2] = i < N / 2 ? i : N - i;
            organ[3] = (double)rng_below(&r, 1000000);
            organ[4] = (double)rng_below(&r, 3);
            organ[5] = 7;
            s[i] = (struct launch_sample){i % 3, organ[shape], 1};
        }
        for (int times = 0; times < 2; times++) { /* percentiles sort all, summaries launches */
            (void)launch_percentile(LAUNCH_MEDIAN, s, N, N, 0.9, work);
            for (int i = 1; i < N; i++)
                good &= s[i - 1].value <= s[i].value;
            good &= launch_summarize(LAUNCH_MEDIAN, s, N, v, work).launches == 3;
            for (int i = 1; i < N; i++)
                good &= s[i - 1].launch < s[i].launch ||
                        (s[i - 1].launch == s[i].launch && s[i - 1].value <= s[i].value);
        }
    }
    ok(good, "rising, falling, both, by chance, many alike, all alike: put in order");
}

static struct batches_one request(double round, double id, double ns, double to_eos, double joule)
{
    return (struct batches_one){{
        [BATCHES_LAUNCH] = 1, [BATCHES_ROUND] = round, [BATCHES_ID] = id, [BATCHES_NS] = ns,
        [BATCHES_TO_EOS] = to_eos, [BATCHES_SLOTS] = 8, [BATCHES_TEXT] = 3 * to_eos,
        [BATCHES_REQUESTS] = 1, [BATCHES_J] = joule}};
}

static void test_batches(void)
{
    const struct batches_one of[] = {request(0, 3, 50, 5, 2), request(1, 3, 40, 1, 0),
                                     request(0, 3, 60, 7, 2), request(0, -1, 9, 1, 0),
                                     request(0, -1, 9, 1, 0)};
    struct batches b = {0};
    struct launch_sample s[4];
    for (size_t i = 0; i < 5; i++)
        batches_add(&b, &of[i]);
    batches_finish(&b);
    ok(b.n == 4 && near(batches_get(&b, BATCHES_NS, 2), 60, 0) &&
           near(batches_get(&b, BATCHES_TO_EOS, 2), 12, 0) &&
           near(batches_get(&b, BATCHES_J, 2), 2, 0) &&
           near(batches_get(&b, BATCHES_REQUESTS, 2), 2, 0),
       "a batch's makespan and energy count once, its requests all; no id, a batch of its own");
    ok(batches_rates(&b, BATCHES_TEXT, NULL) == 4 && batches_rates(&b, BATCHES_TEXT, s) == 4 &&
           near(s[2].value, 36, 0) && near(s[2].weight, 60e-9, 1e-15) && s[3].launch == 1,
       "bytes of text are added, and stand over the makespan");
    batches_free(&b);
}

/* Two of three batches have readings of the clocks. */
static void test_capped(void)
{
    struct batches b = {0};
    struct launch_sample s[3];
    for (int i = 0; i < 3; i++) {
        struct batches_one one = request(i, i, 50, 5, 2);
        one.of[BATCHES_LOOKS] = 10.0 * i;
        one.of[BATCHES_CAPPED] = 3.0 * i;
        batches_add(&b, &one);
    }
    batches_finish(&b);
    ok(batches_capped(&b, NULL) == 2 && batches_capped(&b, s) == 2 && near(s[0].value, 3, 0) &&
           near(s[0].weight, 10, 0) && near(s[1].value, 6, 0) && near(s[1].weight, 20, 0),
       "readings at the power cap stand over all readings; a batch without readings is left out");
    batches_free(&b);
}

/* First-token times like these once had an interval that began at -521 us. */
static void test_positive(void)
{
    struct launch_sample s[10];
    struct launch_value v[10];
    double work[10], time[] = {400, 450, 500, 700, 2855};
    for (int i = 0; i < 5; i++)
        s[i] = (struct launch_sample){i, time[i], 1};
    struct launch_summary r = launch_summarize(LAUNCH_MEDIAN, s, 5, v, work);
    ok(r.at.lo > 0 && r.at.lo < r.at.value && r.at.value < r.at.hi && !r.reason,
       "times have an interval above 0: %.0f [%.0f, %.0f]", r.at.value, r.at.lo, r.at.hi);
    /* of the logs the mean is log(100), the sd log(2); half the width is t(4) log(2) / sqrt(5) */
    double two = 2 / sqrt(2.5), t = 2.7764451051978;
    for (int i = 0; i < 5; i++)
        s[i] = (struct launch_sample){i, 100 * pow(two, i - 2), 1};
    r = launch_summarize(LAUNCH_MEDIAN, s, 5, v, work);
    double half = t * log(two) * sqrt(2.5) / sqrt(5);
    ok(near(r.at.value, 100, 1e-12) && near(log(r.at.hi / 100), half, 1e-10) &&
       near(log(100 / r.at.lo), half, 1e-10), "Student's, of the logarithms");
    for (int i = 0; i < 5; i++)
        s[i] = (struct launch_sample){i, 16, 1};
    r = launch_summarize(LAUNCH_MEDIAN, s, 5, v, work);
    ok(r.at.value >= 16 && r.at.value <= 16 && r.at.lo >= 16 && r.at.hi <= 16,
       "a count that is always 16 is 16 to the last bit");
    s[3].value = 0;
    r = launch_summarize(LAUNCH_MEDIAN, s, 5, v, work);
    ok(near(r.at.value, 12.8, 1e-15) && isnan(r.at.lo) && strstr(r.reason, "above 0"),
       "nought has no logarithm");
    for (int i = 0; i < 5; i++)
        s[i] = (struct launch_sample){i, 64, i == 4 ? 20 : 1};
    r = launch_summarize(LAUNCH_RATIO, s, 5, v, work);
    ok(near(r.at.value, 320.0 / 24, 1e-15) && r.at.lo > 0 && r.at.hi > r.at.value,
       "a throughput is sum over sum, with an interval above nought");
}

static void fill(struct launch_value *v, int64_t first, int64_t step, const double *x, int n)
{
    for (int i = 0; i < n; i++)
        v[i] = (struct launch_value){first + i * step, x[i]};
}

static void test_ratio(void)
{
    struct launch_value a[6], b[6];
    double work[12], x[] = {100, 110, 120, 130, 140, 150}, y[6];
    for (int i = 0; i < 6; i++)
        y[i] = x[i] * (i % 2 ? 1.26 : 1.24);
    fill(a, 0, 2, x, 6);
    fill(b, 1, 2, y, 6);
    struct ratio r = ratio_of(a, 6, b, 6, 0.95, work);
    ok(r.paired && near(r.value, sqrt(1.26 * 1.24), 1e-12) && r.hi - r.lo < 0.03 &&
       ratio_verdict(&r, RATIO_ZONE) == RATIO_ABOVE && r.p < 1e-6,
       "neighbours are pairs: %.4f [%.4f, %.4f], p %.1e", r.value, r.lo, r.hi, r.p);
    fill(b, 100, 2, y, 6);
    struct ratio w = ratio_of(a, 6, b, 6, 0.95, work);
    ok(!w.paired && near(w.value, r.value, 1e-12) && w.hi - w.lo > 0.2,
       "strangers are not: [%.3f, %.3f]", w.lo, w.hi);
    r = ratio_of(a, 4, b, 4, 0.95, work);
    ok(isnan(r.lo) && isnan(r.p) && !strcmp(r.reason, "fewer than 5 launches") &&
       ratio_more(&r, 0.02) == 1 && ratio_verdict(&r, RATIO_ZONE) == RATIO_UNDECIDED,
       "four launches decide nothing");
    r = ratio_of(a, 6, a, 6, 0.95, work);
    ok(ratio_verdict(&r, RATIO_ZONE) == RATIO_SAME && near(r.p, 1, 0) && !ratio_more(&r, 0.02),
       "equal samples have the verdict SAME");
    r = ratio_of(NULL, 0, a, 6, 0.95, work);
    ok(isnan(r.value) && r.reason, "a ratio without values of the first side is not a number");
}

/* An A/A test once passed with an interval from 0.09 to 1.95; it must not. */
static void test_wide(void)
{
    struct launch_value a[5], b[5];
    double work[10], x[] = {100, 95, 210, 100, 90}, y[] = {105, 180, 90, 100, 130};
    fill(a, 0, 2, x, 5);
    fill(b, 1, 2, y, 5);
    struct ratio r = ratio_of(a, 5, b, 5, 0.95, work);
    size_t n = ratio_deciding(&r, RATIO_ZONE);
    ok(ratio_verdict(&r, RATIO_ZONE) == RATIO_UNDECIDED && r.lo > 0 && n > 50,
       "wide is undecided: %.2f [%.2f, %.2f]; %zu launches would decide", r.value, r.lo, r.hi, n);
    ok(ratio_more(&r, 0.02) == 5, "no more are asked for at once than there are");
    ok(!ratio_more(&r, 2 * r.half), "five launches are enough for exactly twice their half-width");
    double p[] = {0.04, NAN, 0.01, 0.03, 0.9}, holm[5];
    size_t order[5];
    ratio_holm(p, 5, holm, order);
    ok(near(holm[2], 0.04, 1e-15) && near(holm[3], 0.09, 1e-15) && near(holm[0], 0.09, 1e-15) &&
       near(holm[4], 0.9, 1e-15) && isnan(holm[1]), "Holm's p values");
}

static void test_steady(void)
{
    double x[20], work[20];
    struct rng r = {.seed = 3};
    for (int i = 0; i < 20; i++)
        x[i] = 100 + rng_normal(&r);
    ok(launch_steady(x, 20, 0.95, work) == 1, "noise is steady");
    for (int i = 0; i < 20; i++)
        x[i] += i;
    ok(launch_steady(x, 20, 0.95, work) == 0, "a drift is not steady");
    ok(launch_steady(x, 7, 0.95, work) == -1, "seven values are too few to tell");
    double y[80], room[80], slope, se;
    for (int i = 0; i < 80; i++) /* a jump at the 20th, then a slow return to the start */
        y[i] = (i < 20 ? 100 : 108 - 0.1375 * (i - 20)) + 0.2 * rng_normal(&r);
    stat_slope(y, 80, &slope, &se);
    ok(fabs(slope) < 2 * se && launch_steady(y, 80, 0.95, room) == 0,
       "a jump that a line does not show is not steady");
}

static void test_proportions(void)
{
    /* Soft contact lenses, Tango 1998: 44 patients, of whom 1 differs. The other rows: a maximized
     * score statistic, solved numerically, and binomtest of scipy. */
    static const struct { struct proportion_pairs p; double lo, hi, test; } known[] = {
        {{1, 0, 44, 1, 0}, -0.1180770970, 0.0593932311, 1},
        {{45, 30, 200, 45, 30}, -0.1594653071, 0.0100171402, 0.105342268875},
        {{12, 0, 30, 12, 0}, -0.5767963975, -0.2410812496, 0.00048828125},
        {{5, 5, 10, 5, 5}, -0.5268138190, 0.5268138190, 1}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct interval v = proportion_difference(&known[i].p, 0.95);
        ok(near(v.lo, known[i].lo, 1e-9) && near(v.hi, known[i].hi, 1e-9), "Tango, case %zu", i);
        ok(near(proportion_mcnemar(&known[i].p), known[i].test, 1e-11), "McNemar, case %zu", i);
    }
    double base[] = {1, 1, 0, 0}, other[] = {1, 0, 1, 1}, share[] = {1, 0.75, 0.5, 0};
    struct proportion_pairs p = proportion_count(base, other, 4);
    ok(near(p.first, 1, 0) && near(p.second, 2, 0) && near(p.n, 4, 0),
       "prompts that only one side answers right");
    p = proportion_count(base, share, 4);
    ok(near(p.first, 0.25, 0) && near(p.second, 0.5, 0) && near(p.at_first, 1, 0) &&
           near(p.at_second, 1, 0), "shares of right answers");
    /* the test at a supposed difference: Tango 1998, example of non-inferiority */
    p = known[0].p;
    struct proportion_pairs ten = {10, 0, 440, 10, 0};
    ok(near(proportion_above(&p, known[0].lo), stat_t_quantile(0.975, INFINITY), 1e-6) &&
           near(proportion_above(&ten, -0.1), sqrt(10) * proportion_above(&p, -0.1), 1e-9),
       "how far above a margin: at the end of the interval, and with ten times the prompts");
}

static void test_fit(void)
{
    const double x[] = {1, 2, 3, 4, 5}, y[] = {1.1, 1.9, 3.2, 3.9, 5.1};
    struct trend f = trend_fit(x, y, 5, 0.95);
    ok(near(f.slope, 1, 1e-12) && near(f.at, 0.04, 1e-12), "a trend is fitted by least squares");
    ok(near(f.lo, 0.84409260836, 1e-9) && near(f.hi, 1.15590739164, 1e-9),
       "the slope of a trend has its t interval");
    f = trend_fit(x, y, 2, 0.95);
    ok(near(f.slope, 0.8, 1e-12) && isnan(f.lo), "two points have a slope and no interval");
    const double same[] = {2, 2, 2};
    ok(isnan(trend_fit(same, y, 3, 0.95).slope), "points at one place have no slope");
    double ppl = pooled_scale(8, POOLED_EXPONENTIAL, 0), plain = pooled_scale(0.5, POOLED_PLAIN, 1);
    ok(near(ppl, -log(8), 1e-12) && near(plain, 0.5, 0), "a quality on its scale");
}

int main(void)
{
    test_sums();
    test_t();
    test_quantile();
    test_lines();
    test_isotonic();
    test_fit();
    test_bootstrap();
    test_events();
    test_launches();
    test_sorting();
    test_batches();
    test_capped();
    test_positive();
    test_ratio();
    test_wide();
    test_steady();
    test_proportions();
    return tap_done();
}
