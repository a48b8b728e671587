/* launch.h - a metric summarized over launches. A launch is one process. All repetitions in a
 * launch share its addresses, clocks and temperature, so the launch is the independent unit. The
 * value is the geometric mean over launches. From LAUNCH_LEAST launches on it has an interval:
 * Student's t on the logarithms of the launch values, because times, rates and bytes are positive.
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
    double min, max;     /* of all sample values; NaN for LAUNCH_RATIO */
    const char *method, *reason; /* static; reason NULL when the interval is there */
};

/* Summarizes sample[n], n > 0, and writes the values of the launches, ascending by launch, to
 * values[n]. Sorts sample, so that the order of records changes no digit; LAUNCH_RATIO sums sample
 * by launch in place. For LAUNCH_RATIO the value is the ratio of sums over all launches. A maximum
 * (LAUNCH_MAX) has no interval. work[n]. */
struct launch_summary launch_summarize(enum launch_kind kind, struct launch_sample *sample,
                                       size_t n, struct launch_value *values, double *work);

/* Quantile q of the values of all launches together, weighted for LAUNCH_WEIGHTED. NaN if there are
 * fewer than launch_needed(q, 0.95) requests. Sorts sample. work[n]. */
double launch_percentile(enum launch_kind kind, struct launch_sample *sample, size_t n,
                         size_t requests, double q, double *work);
/* The smallest n with 1 - q^n - (1-q)^n >= level. Fewer values give no distribution-free interval
 * for quantile q. At level 0.95: 29 values for p90, 59 for p95, 299 for p99. */
size_t launch_needed(double q, double level);

/* A value with its place in the run. */
struct launch_turn { int64_t launch, round, seq; double value; };
/* Calls launch_steady() for every launch; the launches share `level` (Bonferroni). Returns 0 if a
 * launch is not steady, else 1 if a launch could be judged, else -1. Sorts turn. work[2 n]. */
int launch_turns_steady(struct launch_turn *turn, size_t n, double level, double *work);

/* Is one launch steady? x[n]: its values in the order of the run. Returns 1: yes, 0: no, -1:
 * undecided (n < 8). A launch is not steady if a line through x changes by 1 % of the median or
 * more over the run, or if the means before and after some place differ by 1 % or more. Both
 * changes must exceed the noise, at `level` for both tests together. work[n]. */
int launch_steady(const double *x, size_t n, double level, double *work);
