/* launch.h - summaries that respect the launch. A launch is one fresh process; repetitions in it
 * share its luck (addresses, clocks, heat), so the launch is the independent unit: with two or more
 * the headline is the geometric mean over launches, with one it is that launch's own value. From
 * five launches on it has an interval, Student's on the scale of logarithms: times, rates and bytes
 * are positive, so an interval that reaches below nought would be of no such thing.
 *
 * Source: Georges et al. OOPSLA'07; Kalibera and Jones ISMM'13.
 */
#ifndef STAT_LAUNCH_H
#define STAT_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/stat.h"

enum { LAUNCH_LEAST = 5 }; /* fewer launches give no interval */
#define LAUNCH_FEW "fewer than 5 launches"

enum launch_kind {
    LAUNCH_MEDIAN,   /* median of values */
    LAUNCH_WEIGHTED, /* median of values, each counted `weight` times */
    LAUNCH_RATIO,    /* sum of values / sum of weights (tokens / seconds) */
    LAUNCH_MAX       /* largest value */
};
struct launch_sample { int64_t launch; double value, weight; };
struct launch_value { int64_t launch; double value; };

struct launch_summary {
    struct interval at;  /* lo, hi NaN with `reason` */
    size_t n, launches;
    double min, max;     /* of values; NaN for ratios */
    const char *method, *reason; /* static; reason NULL when the interval is there */
};

/* Sorts the samples (so their order never matters; LAUNCH_RATIO folds them into launch totals) and
 * writes one value per launch, ascending, to values[n]. work[n]. n > 0. */
struct launch_summary launch_summarize(enum launch_kind kind, struct launch_sample *s, size_t n,
                                       struct launch_value *values, double *work);

/* Quantile q of the values as the summary counts them (weighted for LAUNCH_WEIGHTED, otherwise each
 * once). NaN when so few requests cannot carry a 95 % interval for q. Sorts. work[n]. */
double launch_percentile(enum launch_kind kind, struct launch_sample *s, size_t n, size_t requests,
                         double q, double *work);
/* Smallest n with a two-sided interval of `level` for quantile q: 1 - q^n - (1-q)^n >= level. */
size_t launch_needed(double q, double level);

/* A value with its place in time. */
struct launch_turn { int64_t launch, round, seq; double value; };
/* launch_steady over every launch, the level shared among them (Bonferroni): 0 when one drifts,
 * else 1 when one could be judged, else -1. Sorts. work[2 n]. */
int launch_turns_steady(struct launch_turn *t, size_t n, double level, double *work);

/* 1 steady, 0 not, -1 undecided (n < 8). x: one launch in the order it ran. Not steady: it drifts
 * (a line through it moves by 1 % or more over the window) or jumps (at some place, from one mean
 * to another that far away), beyond noise at `level` for both questions together. work[n]. */
int launch_steady(const double *x, size_t n, double level, double *work);

#endif
