/* launch.c - reduces values of answers to one value for each launch, and these to one number; see
 * launch.h.
 *
 * Values are sorted within a launch before they are summed, so that a permuted stream of records
 * gives the same bits. Answers of one launch are never treated as independent: an interval that
 * treats them so contains the true value 56 times in 100, not 95 times. */
#include "lib/stat/launch.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LEVEL = 0.95;

/* Orders by value, then by weight. */
static int by_value(const void *a, const void *b)
{
    const struct launch_sample *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) /* exact: sorting */
                                : (x->weight > y->weight) - (x->weight < y->weight);
}

static int by_launch(const void *a, const void *b)
{
    const struct launch_sample *x = a, *y = b;
    return x->launch != y->launch ? (x->launch < y->launch ? -1 : 1) : by_value(a, b);
}

/* Quantile q of sorted samples, sample i counted weight[i] times. */
static double weighted_quantile(const struct launch_sample *sample, size_t n, double q)
{
    double total = 0, seen = 0;
    for (size_t i = 0; i < n; i++)
        total += sample[i].weight;
    for (size_t i = 0; i < n; i++) {
        seen += sample[i].weight;
        if (seen > q * total)
            return sample[i].value;
        if (!(seen < q * total) && i + 1 < n) /* exactly between two */
            return sample[i].value + (sample[i + 1].value - sample[i].value) / 2;
    }
    return sample[n - 1].value;
}

static void sums(const struct launch_sample *sample, size_t n, double *work, double *value,
                 double *weight)
{
    for (size_t i = 0; i < n; i++)
        work[i] = sample[i].value;
    *value = stat_sum(work, n);
    for (size_t i = 0; i < n; i++)
        work[i] = sample[i].weight;
    *weight = stat_sum(work, n);
}

static double launch_value_of(enum launch_kind kind, const struct launch_sample *sample, size_t n,
                              double *work)
{
    double value, weight;
    switch (kind) {
    case LAUNCH_WEIGHTED:
        return weighted_quantile(sample, n, 0.5);
    case LAUNCH_RATIO:
        sums(sample, n, work, &value, &weight);
        return value / weight;
    case LAUNCH_MAX:
        return sample[n - 1].value;
    case LAUNCH_MEDIAN:
        break;
    }
    for (size_t i = 0; i < n; i++)
        work[i] = sample[i].value;
    return stat_median(work, n);
}

/* r = sum of values / sum of weights over launches, with the interval r exp(+-t se / r), where
 * se = sqrt(n / (n - 1) sum (value_i - r weight_i)^2) / sum of weights.
 * Source: Cochran, Sampling Techniques, 3rd ed., 6.3 (without finite-population correction). */
static struct interval ratio(const struct launch_sample *sample, size_t n, double *work)
{
    double value, weight, squares = 0;
    sums(sample, n, work, &value, &weight);
    struct interval interval = {value / weight, NAN, NAN};
    if (n < 2 || !(interval.value > 0))
        return interval;
    for (size_t i = 0; i < n; i++) {
        double rest = sample[i].value - interval.value * sample[i].weight;
        squares += rest * rest;
    }
    double se = sqrt((double)n / (double)(n - 1) * squares) / weight;
    double half = stat_t_quantile(0.5 + LEVEL / 2, (double)(n - 1)) * se / interval.value;
    interval.lo = interval.value * exp(-half);
    interval.hi = interval.value * exp(half);
    return interval;
}

/* Replaces the samples of each launch by their sums, in place. Returns the number of launches. */
static size_t sum_launches(struct launch_sample *sample, size_t n, double *work)
{
    size_t m = 0;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && sample[j].launch == sample[i].launch; j++)
            continue;
        struct launch_sample total = {.launch = sample[i].launch};
        sums(sample + i, j - i, work, &total.value, &total.weight);
        sample[m++] = total; /* m <= i: no unread sample is overwritten */
    }
    return m;
}

static void set_extremes(struct launch_summary *summary, const struct launch_sample *sample,
                         size_t n)
{
    summary->min = INFINITY;
    summary->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        summary->min = fmin(summary->min, sample[i].value);
        summary->max = fmax(summary->max, sample[i].value);
    }
}

static const char *const methods[][2] = { /* for one launch, for several */
    [LAUNCH_MEDIAN] = {"median of one launch",
                       "geometric mean of launch medians, t interval of logs"},
    [LAUNCH_WEIGHTED] = {"token-weighted median of one launch",
                         "geometric mean of token-weighted launch medians, t interval of logs"},
    [LAUNCH_RATIO] = {"ratio of sums of one launch",
                      "ratio of sums, t interval over launches of its log"},
    [LAUNCH_MAX] = {"maximum", "maximum"}};

struct launch_summary launch_summarize(enum launch_kind kind, struct launch_sample *sample,
                                       size_t n, struct launch_value *values, double *work)
{
    assert(n > 0);
    struct launch_summary summary = {.n = n, .min = NAN, .max = NAN};
    qsort(sample, n, sizeof *sample, by_launch);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && sample[j].launch == sample[i].launch; j++)
            continue;
        values[summary.launches].launch = sample[i].launch;
        values[summary.launches++].value = launch_value_of(kind, sample + i, j - i, work);
    }
    if (kind != LAUNCH_RATIO)
        set_extremes(&summary, sample, n);
    summary.method = methods[kind][summary.launches > 1];
    if (kind == LAUNCH_MAX) {
        summary.at = (struct interval){summary.max, NAN, NAN};
        summary.reason = "a maximum has no interval";
        return summary;
    }
    if (kind == LAUNCH_RATIO) {
        summary.at = ratio(sample, sum_launches(sample, n, work), work);
    } else {
        for (size_t i = 0; i < summary.launches; i++)
            work[i] = values[i].value;
        summary.at = stat_log_t(work, summary.launches, LEVEL);
    }
    summary.reason = summary.launches < LAUNCH_LEAST ? LAUNCH_FEW
                     : isnan(summary.at.lo)          ? "a launch without a value above 0"
                                                     : NULL;
    if (summary.reason)
        summary.at.lo = summary.at.hi = NAN;
    return summary;
}

size_t launch_needed(double q, double level)
{
    size_t n = 1;
    while (1 - pow(q, (double)n) - pow(1 - q, (double)n) < level)
        n++;
    return n;
}

double launch_percentile(enum launch_kind kind, struct launch_sample *sample, size_t n,
                         size_t requests, double q, double *work)
{
    if (!n || requests < launch_needed(q, LEVEL))
        return NAN;
    qsort(sample, n, sizeof *sample, by_value);
    if (kind == LAUNCH_WEIGHTED)
        return weighted_quantile(sample, n, q);
    for (size_t i = 0; i < n; i++)
        work[i] = sample[i].value;
    return stat_quantile(work, n, q, LEVEL).value;
}

/* 1: the values shift at some place: the mean before the place differs from the mean after it by
 * 1 % of the median or more, and by more than noise (Bonferroni over all places). At least a
 * quarter of the values, and at least 4, lie on each side of the place.
 * Source: Hawkins 1977 (the scan over all places of a shift). */
static int has_jump(const double *x, size_t n, double level, double median)
{
    size_t side = n / 4 > 4 ? n / 4 : 4, places = n - 2 * side + 1;
    double t = stat_t_quantile(1 - (1 - level) / 2 / (double)places, (double)(n - 2));
    double mean = stat_mean(x, n), all = pow(stat_sd(x, n), 2) * (double)(n - 1), before = 0;
    for (size_t k = 1; k + side <= n; k++) { /* running sums: n may be a million */
        double p = (double)k, q = (double)(n - k);
        before += x[k - 1] - mean;
        double shift = fabs(before) * (1 / p + 1 / q);
        double pooled = fmax(all - shift * fabs(before), 0) / (double)(n - 2);
        if (k >= side && shift >= 0.01 * fabs(median) && shift > t * sqrt(pooled * (1 / p + 1 / q)))
            return 1;
    }
    return 0;
}

int launch_steady(const double *x, size_t n, double level, double *work)
{
    if (n < 8)
        return -1;
    double slope, se, half = (1 + level) / 2; /* two questions share the level */
    stat_slope(x, n, &slope, &se);
    memcpy(work, x, n * sizeof *x);
    double median = stat_median(work, n), t = stat_t_quantile(0.5 + half / 2, (double)(n - 2));
    int drifts = fabs(slope) * (double)n >= 0.01 * fabs(median) && fabs(slope) > t * se;
    return !drifts && !has_jump(x, n, half, median);
}

static int by_turn(const void *a, const void *b)
{
    const struct launch_turn *x = a, *y = b;
    if (x->launch != y->launch)
        return x->launch < y->launch ? -1 : 1;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

int launch_turns_steady(struct launch_turn *turn, size_t n, double level, double *work)
{
    int verdict = -1;
    size_t launches = 0;
    if (n)
        qsort(turn, n, sizeof *turn, by_turn);
    for (size_t i = 0; i < n; i++)
        launches += i == 0 || turn[i].launch != turn[i - 1].launch;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && turn[j].launch == turn[i].launch; j++)
            work[j - i] = turn[j].value;
        int one = launch_steady(work, j - i, 1 - (1 - level) / (double)launches, work + n);
        verdict = one < 0 || verdict == 0 ? verdict : one;
    }
    return verdict;
}
