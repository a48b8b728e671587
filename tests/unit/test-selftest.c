/* test-selftest.c - tests the statistics on simulated experiments whose truth is known: whether
 * intervals hold the truth as often as they say, whether differences are found as often as is
 * claimed, and whether nothing is found where there is nothing.
 *
 *     test-selftest               a few repetitions of each claim, as tests; each planted fault
 *                                 must break its claim
 *     test-selftest 2000 [FAULT [FIRST]]
 *                                 a table; exit 1 when a claim does not hold (make selftest).
 *                                 FIRST: the number of the first repetition (1)
 *
 * An experiment is launches of log-normal times. The effect of a launch is shared by its answers,
 * and the machine may drift over the run. Every number is a function of the repetition, so a table
 * repeats bit for bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "lib/stat/asgood.h"
#include "lib/stat/launch.h"
#include "lib/stat/ratio.h"
#include "tests/tap.h"
#include "tests/unit/selftest-worlds.h"

static const char *const fault_names[FAULTS] = {"none",  "pooled", "blocked", "raw",
                                                "means", "abba",   "kept"};

enum { ANSWERS = 10, MOST = 200 };

/* Returns 1 if the event happens in this repetition. A claim bounds the share of such
 * repetitions. */
typedef double (*event)(uint64_t seed, enum fault fault);

/* ---- launches ---- */

/* The log of a launch's time: its own noise, and drift (relative to the whole run, place 0..1). */
struct machine { double noise, drift; };

static double launch_log(struct rng *r, const struct machine *m, double place)
{
    return log(50e6) + m->noise * rng_normal(r) + m->drift * place;
}

/* Draws n launches of A and of B in the order A B B A ..., with B slower by `factor`. */
static void run_pair(struct rng *r, const struct machine *m, double factor, size_t n,
                     enum fault fault, struct launch_value *a, struct launch_value *b)
{
    size_t put[2] = {0, 0};
    for (size_t i = 0; i < 2 * n; i++) {
        int is_b = fault == BLOCKED ? i >= n : i % 4 == 1 || i % 4 == 2;
        double v = exp(launch_log(r, m, ((double)i + 0.5) / (2 * (double)n)));
        struct launch_value one = {(int64_t)i, is_b ? factor * v : v};
        (is_b ? b : a)[put[is_b]++] = one;
    }
}

static struct ratio pair(uint64_t seed, double noise, double drift, double factor, size_t n,
                         enum fault fault)
{
    struct rng r = {.seed = rng_derive(seed, "pair")};
    struct launch_value a[MOST], b[MOST];
    double work[2 * MOST];
    run_pair(&r, &(struct machine){noise, drift}, factor, n, fault, a, b);
    return ratio_of(a, n, b, n, 0.95, work);
}

/* Five launches of ten answers; the spread between launches equals the spread within. */
static double time_covers(uint64_t seed, enum fault fault)
{
    struct rng r = {.seed = rng_derive(seed, "time")};
    struct launch_sample s[5 * ANSWERS];
    struct launch_value v[5 * ANSWERS];
    double work[5 * ANSWERS];
    const struct machine m = {0.03, 0};
    for (size_t i = 0; i < 5; i++) {
        double mean = launch_log(&r, &m, 0);
        for (size_t k = 0; k < ANSWERS; k++) {
            size_t at = i * ANSWERS + k;
            s[at] = (struct launch_sample){(int64_t)(fault == POOLED ? at : i),
                                           exp(mean + 0.03 * rng_normal(&r)), 1};
        }
    }
    struct launch_summary x = launch_summarize(LAUNCH_MEDIAN, s, 5 * ANSWERS, v, work);
    return holds(x.at.lo, x.at.hi, 50e6);
}

/* Throughput of five launches of ten batches. */
static double rate_covers(uint64_t seed, enum fault fault)
{
    struct rng r = {.seed = rng_derive(seed, "rate")};
    struct launch_sample s[5 * ANSWERS];
    struct launch_value v[5 * ANSWERS];
    double work[5 * ANSWERS];
    for (size_t i = 0; i < 5 * ANSWERS; i++) {
        int64_t launch = (int64_t)(i / ANSWERS);
        double shared = rng_normal(&(struct rng){rng_derive(seed, "shared"), (uint64_t)launch, 0});
        double seconds = exp(0.03 * shared + 0.03 * rng_normal(&r));
        s[i] = (struct launch_sample){fault == POOLED ? (int64_t)i : launch, 64, seconds};
    }
    struct launch_summary x = launch_summarize(LAUNCH_RATIO, s, 5 * ANSWERS, v, work);
    return holds(x.at.lo, x.at.hi, 64 / exp(0.03 * 0.03)); /* E exp(N(0, s2)) = exp(s2 / 2) */
}

static double pairs_cover(uint64_t seed, enum fault fault)
{
    struct ratio r = pair(seed, 0.02, 0, 1.3, 5, fault);
    return holds(r.lo, r.hi, 1.3);
}

/* Six launches of A, and nine of B, which is three times as noisy. */
static double welch_covers(uint64_t seed, enum fault fault)
{
    struct rng r = {.seed = rng_derive(seed, "welch")};
    struct launch_value a[6], b[9];
    double work[15];
    (void)fault;
    for (int i = 0; i < 6; i++)
        a[i] = (struct launch_value){i, exp(0.01 * rng_normal(&r))};
    for (int i = 0; i < 9; i++)
        b[i] = (struct launch_value){i, 1.3 * exp(0.03 * rng_normal(&r))};
    struct ratio x = ratio_of(a, 6, b, 9, 0.95, work);
    return holds(x.lo, x.hi, 1.3);
}

static double drift_covers(uint64_t seed, enum fault fault)
{
    struct ratio r = pair(seed, 0.01, 0.03, 1.3, 8, fault);
    return holds(r.lo, r.hi, 1.3);
}

/* The error in percent; its mean over repetitions is the bias. */
static double drift_bias(uint64_t seed, enum fault fault)
{
    return 100 * log(pair(seed, 0.01, 0.03, 1.3, 20, fault).value / 1.3);
}

static double verdict_is(uint64_t seed, enum fault fault, double factor, size_t n,
                         enum ratio_verdict wanted)
{
    struct ratio r = pair(seed, 0.01, 0, factor, n, fault);
    return ratio_verdict(&r, RATIO_ZONE) == wanted;
}

static double same_is_same(uint64_t seed, enum fault fault)
{
    return verdict_is(seed, fault, 1, 12, RATIO_SAME);
}

static double same_differs(uint64_t seed, enum fault fault)
{
    return verdict_is(seed, fault, 1, 5, RATIO_ABOVE) || verdict_is(seed, fault, 1, 5, RATIO_BELOW);
}

static double edge_is_same(uint64_t seed, enum fault fault)
{
    return verdict_is(seed, fault, 1 + RATIO_ZONE, 12, RATIO_SAME);
}

static double two_found(uint64_t seed, enum fault fault)
{
    return verdict_is(seed, fault, 1.02, 12, RATIO_ABOVE);
}

static double five_found(uint64_t seed, enum fault fault)
{
    return verdict_is(seed, fault, 1.05, 5, RATIO_ABOVE);
}

/* Launches are added until the half-width is under 2 %, looking after each addition. */
static double stopped(uint64_t seed, double noise)
{
    size_t n = LAUNCH_LEAST, more;
    for (;; n += more) {
        struct ratio r = pair(seed, noise, 0, 1.3, n, SOUND);
        more = ratio_more(&r, 0.02);
        if (!more || n + more > MOST)
            return holds(r.lo, r.hi, 1.3);
    }
}

static double soon_covers(uint64_t seed, enum fault fault)
{
    (void)fault;
    return stopped(seed, 0.01);
}

static double late_covers(uint64_t seed, enum fault fault)
{
    (void)fault;
    return stopped(seed, 0.03);
}

/* A grid of twelve ratios, all equal to 1. Returns 1 if any difference is found. */
static double grid_finds(uint64_t seed, enum fault fault)
{
    double p[12], holm[12];
    size_t order[12];
    int found = 0;
    for (uint64_t i = 0; i < 12; i++)
        p[i] = pair(12 * seed + i, 0.01, 0, 1, 5, SOUND).p;
    ratio_holm(p, 12, holm, order);
    for (int i = 0; i < 12; i++)
        found |= (fault == RAW ? p : holm)[i] < 0.05;
    return found;
}

/* Forty answers of a steady launch, and of one that is 5 % slower from its 25th answer on. */
static double steady(uint64_t seed, double jump)
{
    struct rng r = {.seed = rng_derive(seed, "steady")};
    double x[40], work[40];
    for (int i = 0; i < 40; i++)
        x[i] = (i < 24 ? 1 : 1 + jump) * exp(0.02 * rng_normal(&r));
    return launch_steady(x, 40, 0.95, work);
}

static double steady_alarm(uint64_t seed, enum fault fault)
{
    (void)fault;
    return !(steady(seed, 0) > 0);
}

static double jump_found(uint64_t seed, enum fault fault)
{
    (void)fault;
    return !(steady(seed, 0.05) > 0);
}

/* ---- crossovers ---- */

/* The chance of a right answer at each step count, with shapes that no curve of the estimator
 * describes. The rival is right with rival_share. A prompt is hard or easy for both. */
enum shape { SATURATES, BENDS, NEAR_ONE, NEVER, SHAPES };
static const double rival_share[SHAPES] = {0.85, 0.85, 0.97, 0.85};
static const double shares[SHAPES][STEPS] = {{0.40, 0.70, 0.80, 0.80, 0.80, 0.80},
                                             {0.10, 0.30, 0.799, 0.86, 0.86, 0.86},
                                             {0.80, 0.90, 0.919, 0.95, 0.97, 0.97},
                                             {0.50, 0.60, 0.70, 0.75, 0.78, 0.80}};
/* The first step count that is as good with a margin of 5 points; STEPS: none is. */
static const size_t truth[SHAPES] = {STEPS, 3, 3, STEPS};

/* Returns 1 if X_q is found too early, with 300 prompts. */
static double falsely_good(uint64_t seed, enum fault fault, enum shape shape)
{
    static double right[POINTS][PROMPTS_TESTED], one[PROMPTS_TESTED], work[2 * PROMPTS_TESTED];
    const struct asgood_kind kind = {POOLED_PLAIN, 1, 1};
    const struct pooled_margin margin = {0.05, 0};
    struct asgood test[STEPS];
    answer(seed, shares[shape], rival_share[shape], right[0]);
    for (size_t k = 0; k < PROMPTS_TESTED; k++)
        one[k] = 1;
    for (size_t i = 0; i < STEPS; i++)
        test[i] = asgood_test((struct asgood_side){right[i], one},
                              (struct asgood_side){right[RIVAL], one}, PROMPTS_TESTED, &kind,
                              &margin, work);
    size_t first = asgood_sequence(test, STEPS).first;
    for (size_t i = 0; fault == MEANS && i < STEPS; i++) /* the fault: compares means, no test */
        if (stat_mean(right[i], PROMPTS_TESTED) >= stat_mean(right[RIVAL], PROMPTS_TESTED) - 0.05) {
            first = i;
            break;
        }
    return first < truth[shape];
}

static double saturated_good(uint64_t seed, enum fault fault)
{
    return falsely_good(seed, fault, SATURATES);
}

static double bent_good(uint64_t seed, enum fault fault)
{
    return falsely_good(seed, fault, BENDS);
}

static double near_one_good(uint64_t seed, enum fault fault)
{
    return falsely_good(seed, fault, NEAR_ONE);
}

static double never_good(uint64_t seed, enum fault fault)
{
    return falsely_good(seed, fault, NEVER);
}

/* Nine methods, all 1.3 times as slow as the rival; ten launches of twelve prompts; launches with
 * heavy tails (t with 3 degrees of freedom). Returns 1 if the interval of the fastest holds 1.3. */
static double fastest_covers(uint64_t seed, enum fault fault)
{
    enum { METHODS = 9, LAUNCHES = 10, TEXTS = 12 };
    double base[LAUNCHES * TEXTS], other[LAUNCHES * TEXTS], work[LAUNCHES * TEXTS + 64];
    struct rng r = {.seed = rng_derive(seed, "fastest")};
    struct ratio best = {.value = INFINITY};
    const double level = ratio_level(0.95, fault == RAW ? 1 : METHODS);
    for (size_t i = 0; i < LAUNCHES * TEXTS; i++)
        base[i] = exp(0.02 * rng_normal(&r));
    for (int m = 0; m < METHODS; m++) {
        for (size_t l = 0; l < LAUNCHES; l++) {
            double luck = 0.02 * tailed(&r, 1);
            for (size_t p = 0; p < TEXTS; p++)
                other[l * TEXTS + p] = 1.3 * exp(luck + 0.03 * rng_normal(&r));
        }
        struct paired_cells c = {LAUNCHES, TEXTS, base, other};
        struct ratio one = paired_ratio(&c, level, work).ratio;
        if (one.value < best.value)
            best = one;
    }
    return holds(best.lo, best.hi, 1.3);
}

/* ---- claims ---- */

static const struct claim {
    const char *what;
    double lo, hi;  /* bounds of the mean of the event */
    event happens;
    double spread;  /* standard deviation of one repetition, for runs of fewer than 2000 */
    enum fault fault; /* the fault that breaks the claim; SOUND: none */
    uint64_t more;    /* factor of the 2000 repetitions; 0 counts as 1 */
} claims[] = {
    {"interval of a time holds it, 5 launches", 0.93, 0.97, time_covers, 0.22, POOLED, 0},
    {"interval of a throughput holds it, 5 launches", 0.93, 0.97, rate_covers, 0.22, POOLED, 0},
    {"interval of a ratio holds it, 5 pairs", 0.93, 0.97, pairs_cover, 0.22, SOUND, 0},
    {"the same, 6 and 9 launches apart", 0.93, 0.97, welch_covers, 0.22, SOUND, 0},
    {"the same, 8 pairs, the machine drifts by 3 %", 0.93, 0.97, drift_covers, 0.22, BLOCKED, 0},
    {"the same, sampled until within 2 %, noise 1 %", 0.93, 0.97, soon_covers, 0.22, SOUND, 0},
    {"the same, sampled until within 2 %, noise 3 %", 0.93, 0.97, late_covers, 0.22, SOUND, 0},
    {"bias of a ratio in %, drift of 3 %", -0.05, 0.05, drift_bias, 0.32, BLOCKED, 0},
    {"A/A, 12 pairs, noise 1 %: SAME", 0.95, 1, same_is_same, 0.22, SOUND, 0},
    {"A/A, 5 pairs: FASTER or SLOWER", 0, 0.05, same_differs, 0.2, SOUND, 0},
    {"a handicap of 2 %, 12 pairs: SAME", 0, 0.04, edge_is_same, 0.16, SOUND, 0},
    {"a handicap of 2 %, 12 pairs: SLOWER", 0.95, 1, two_found, 0.22, SOUND, 0},
    {"a handicap of 5 %, 5 pairs: SLOWER", 0.95, 1, five_found, 0.22, SOUND, 0},
    {"12 ratios of nothing: one is found by Holm's p", 0, 0.06, grid_finds, 0.22, RAW, 0},
    {"a steady launch is called unsteady", 0, 0.05, steady_alarm, 0.2, SOUND, 0},
    {"a jump of 5 % within a launch is found", 0.95, 1, jump_found, 0.22, SOUND, 0},
    {"cells: ratio held, 8 launches of 20 prompts", 0.93, 0.97, crossed_covers, 0.22, POOLED, 0},
    {"cells: ratio held, 5 launches of 20 prompts", 0.93, 0.97, few_cover, 0.22, POOLED, 0},
    {"cells: the same, launches alone spread", 0.93, 0.97, noisy_covers, 0.22, POOLED, 0},
    {"cells: the same, heavy tails of launches", 0.93, 0.97, heavy_covers, 0.22, POOLED, 0},
    {"cells: the same, B hit in some and marked", 0.93, 0.97, hit_covers, 0.22, KEPT, 0},
    {"cells: the same, a load over half of the run", 0.93, 0.97, loaded_covers, 0.22, BLOCKED, 0},
    {"cells, A/A: FASTER or SLOWER", 0, 0.05, alike_differs, 0.2, POOLED, 0},
    {"cells, A/A: the same, heavy tails", 0, 0.05, heavy_differs, 0.2, POOLED, 0},
    {"cells, A/A: the same, a period of four turns", 0, 0.05, step_differs, 0.2, ABBA, 0},
    {"cells, A/A: the same, B hit in some and marked", 0, 0.05, hit_differs, 0.2, KEPT, 60},
    {"cells, A/A: the same, a load over half", 0, 0.05, loaded_differs, 0.2, BLOCKED, 0},
    {"gate of 2 %, 12 launches: a build slower by 2 %", 0.95, 1, slow_build_stopped, 0.22, SOUND,
     0},
    {"gate of 2 %: an equal build is called slower", 0, 0.002, equal_build_stopped, 0.03, SOUND, 0},
    {"the same, launches spread by 3 %", 0, 0.002, noisy_build_stopped, 0.03, POOLED, 0},
    {"the same, a load over half of the run", 0, 0.002, loaded_build_stopped, 0.03, BLOCKED, 0},
    {"interval of X_lat holds it, 5 launches", 0.93, 0.97, lat5_covers, 0.22, POOLED, 0},
    {"interval of X_lat holds it, 8 launches", 0.93, 0.97, lat8_covers, 0.22, SOUND, 0},
    {"interval of X_lat holds it, 12 launches", 0.93, 0.97, lat12_covers, 0.22, SOUND, 0},
    {"as good from 20 on: X_q below 32", 0, 0.025, early_20, 0.16, MEANS, 0},
    {"the same: lo..hi of X_q holds 32 (95 % or more)", 0.95, 1, quality_covers, 0.22, MEANS, 0},
    {"the same: est_lo..est_hi holds 20 (95 % or more)", 0.95, 1, estimate_covers, 0.22, MEANS, 0},
    {"X_par claimed where it costs as much", 0, 0.025, parity_claimed, 0.16, POOLED, 0},
    {"saturated below the margin: called as good", 0, 0.025, saturated_good, 0.16, MEANS, 0},
    {"a curve that bends: X_q too early", 0, 0.025, bent_good, 0.16, MEANS, 0},
    {"shares near 1: X_q too early", 0, 0.025, near_one_good, 0.16, MEANS, 0},
    {"never as good: called as good", 0, 0.025, never_good, 0.16, MEANS, 0},
    {"the fastest of nine methods, heavy tails: held", 0.975, 1, fastest_covers, 0.1, RAW, 0},
};
enum { CLAIMS = sizeof claims / sizeof *claims };

/* The number of the first repetition, and how many: other numbers are other experiments. */
struct trial { uint64_t first, repetitions; };

static double mean_of(const struct claim *c, struct trial t, enum fault fault)
{
    const uint64_t repetitions = t.repetitions * (c->more && t.repetitions >= 2000 ? c->more : 1);
    double sum = 0;
    for (uint64_t i = 0; i < repetitions; i++)
        sum += c->happens(t.first + i, fault);
    return sum / (double)repetitions;
}

/* Returns 1 if the mean is within the bounds. With fewer repetitions than 2000 the bounds are wider
 * by three standard errors. */
static int is_within(const struct claim *c, double got, uint64_t repetitions)
{
    double slack = repetitions < 2000 ? 3 * c->spread / sqrt((double)repetitions) : 0;
    return c->lo - slack <= got && got <= c->hi + slack;
}

static int table(struct trial t, enum fault fault)
{
    int bad = 0;
    printf("%-50s %16s %8s\n", "what", "expected", "got");
    for (size_t i = 0; i < CLAIMS; i++) {
        const struct claim *c = &claims[i];
        double got = mean_of(c, t, fault);
        int held = is_within(c, got, t.repetitions);
        bad |= !held;
        printf("%-50s %6.3f .. %6.3f %8.4f  %s\n", c->what, c->lo, c->hi, got,
               held ? "ok" : "FAIL");
        fflush(stdout);
    }
    return bad;
}

static void test_claims(struct trial t)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        const struct claim *c = &claims[i];
        double got = mean_of(c, t, SOUND);
        ok(is_within(c, got, t.repetitions), "%s: %.3f", c->what, got);
        if (c->fault == SOUND)
            continue;
        got = mean_of(c, t, c->fault);
        ok(!is_within(c, got, t.repetitions), "planted fault '%s' breaks it: %.3f",
           fault_names[c->fault], got);
    }
}

int main(int argc, char **argv)
{
    struct trial t = {1, 70};
    enum fault fault = SOUND;
    int bad = argc > 4;
    if (argc < 2) {
        test_claims(t);
        return tap_done();
    }
    for (int i = 1; i < argc && !bad; i += 2) {
        char *end;
        unsigned long long n = strtoull(argv[i], &end, 10);
        bad = *end || !n || n > 1000000;
        *(i == 1 ? &t.repetitions : &t.first) = n;
    }
    while (argc > 2 && fault < FAULTS && strcmp(argv[2], fault_names[fault]))
        fault++;
    if (bad || fault == FAULTS) {
        fprintf(stderr, "test-selftest: expected a number of repetitions; none, pooled, blocked, "
                        "raw, means, abba or kept; the number of the first repetition\n");
        return 64;
    }
    return table(t, fault);
}
