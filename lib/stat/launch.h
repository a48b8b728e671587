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

/* What a batch had to do at least, and its first pass, which holds the prompts; NaN: not known. */
struct launch_work {
    double flops, bytes, prefill_flops, prefill_bytes, prefill_ns;
};
/* Of the device, over a batch; NaN: not known. */
struct launch_energy {
    double j, ticks;     /* by its counter, and how often that changed */
    double integral_j;   /* by power readings */
    double idle_w;       /* the launch: power with nothing to do */
    double looks, capped; /* at the clocks, and those under the power cap */
    int whole;           /* 1: the counter misses nothing: ticks alone say what it is worth */
};
/* One request's share of a batch, in order of time. */
struct launch_batch {
    int64_t launch, round, id;
    double ns, to_eos, slots;
    double requests;             /* 1; merged: how many */
    struct launch_energy energy; /* the same in all requests of a batch */
    struct launch_work work;     /* of the whole batch, in each of its requests */
};
/* Merges the requests of a batch (launch, round, id): its makespan counts once (the largest ns),
 * its tokens are added. In place; returns the number of batches. id < 0: a batch of its own. */
size_t launch_batches(struct launch_batch *b, size_t n);

/* Shares of what a machine can do: the flops or bytes of merged batches over their time, those of
 * the first passes alone, or of all others, as samples for LAUNCH_RATIO: work / (seconds * most).
 * most 1: rates. samples[n]; returns how many are known. */
enum launch_share { LAUNCH_FLOPS, LAUNCH_BYTES, LAUNCH_PREFILL_FLOPS, LAUNCH_DECODE_BYTES };
size_t launch_shares(const struct launch_batch *b, size_t n, enum launch_share share, double most,
                     struct launch_sample *samples);

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
