/* launch.h - a metric summarized over launches. A launch is one process. Its repetitions share its
 * luck (addresses, clocks, temperature), so the launch is the independent unit. The value is the
 * geometric mean over launches; from LAUNCH_LEAST launches on it has an interval: Student's t on
 * the logarithms of the launch values, because times, rates and bytes are positive.
 *
 * Source: Georges et al. OOPSLA'07; Kalibera and Jones ISMM'13. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/stat/stat.h"

enum { LAUNCH_LEAST = 5 }; /* fewer launches give no interval */
#define LAUNCH_FEW "fewer than 5 launches"

/* The value of one launch. */
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

/* Summarizes sample[n], n > 0, and writes the values of the launches, ascending by launch, to
 * values[n]. Sorts sample, so that the order of records changes no digit; LAUNCH_RATIO sums sample
 * by launch in place. The interval of LAUNCH_RATIO is that of a ratio of sums over launches.
 * work[n]. */
struct launch_summary launch_summarize(enum launch_kind kind, struct launch_sample *sample,
                                       size_t n, struct launch_value *values, double *work);

/* Quantile q of the values of all launches together (weighted for LAUNCH_WEIGHTED). NaN below
 * launch_needed(q, 0.95) requests. Sorts sample. work[n]. */
double launch_percentile(enum launch_kind kind, struct launch_sample *sample, size_t n,
                         size_t requests, double q, double *work);
/* The smallest n with 1 - q^n - (1-q)^n >= level: fewer values give no distribution-free interval
 * for quantile q. 29 for p90, 59 for p95, 299 for p99 at 0.95. */
size_t launch_needed(double q, double level);

/* A value with its place in the run. */
struct launch_turn { int64_t launch, round, seq; double value; };
/* launch_steady() for every launch, with `level` shared among them (Bonferroni): 0 when one is not
 * steady, else 1 when one could be judged, else -1. Sorts turn. work[2 n]. */
int launch_turns_steady(struct launch_turn *turn, size_t n, double level, double *work);

/* Is one launch steady? x[n] in the order of the run. 1 yes, 0 no, -1 undecided (n < 8). Not
 * steady: a line through x changes by 1 % or more over the run, or the means before and after some
 * place differ by 1 % or more, beyond noise at `level` for both questions together. work[n]. */
int launch_steady(const double *x, size_t n, double level, double *work);
