/* points.h - metric and quality records as a table: one point a configuration, with its cost, what
 * was measured of it, and its quality prompt by prompt. The order of the records leaves no trace.
 *
 * Points that differ in one setting, the axis, are a series. Along a series points are ordered by
 * the computation that they cost, `at`, so that curves can be read between them:
 *
 *     steps     the denoising steps, where these are the axis
 *     passes    else the denoising passes that an answer took, as measured
 *     rows      where passes are the same for all: the positions that an answer took, as measured
 *
 * A point of another axis says nothing about how much it computes until it has run: a threshold of
 * 0.9 with 64 steps allowed that made 9 passes is a point of 9 passes.
 */
#ifndef ANALYSIS_POINTS_POINTS_H
#define ANALYSIS_POINTS_POINTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/places.h"
#include "lib/stat/launch.h"
#include "lib/stat/pooled.h"

enum points_work { POINTS_STEPS, POINTS_PASSES, POINTS_ROWS, POINTS_NONE /* none orders them */ };
extern const char *const points_work_names[]; /* "steps", "passes", "rows" */

struct point {
    const char *id;     /* about_point; borrowed from `about`, as all texts below */
    const char *config; /* what people call it */
    json_t *about;      /* what its records carry (about.h) */
    struct buf shape;   /* of the record that `about` took last */
    const char *workload;
    char *series;       /* identity of the sweep; owned */
    const char *axis;   /* NULL: none */
    const char *model, *device, *dtype, *quant, *contract; /* "" when not said */
    int is_diffusion;
    int is_rival;             /* of those: neither denoised nor latent */
    int random;               /* weights are, so no quality counts */
    int is_plain;             /* about_is_plain */
    double batch, length, steps, passes, rows; /* NaN: not said */
    enum points_work work; /* what `at` is, the same in a series */
    double at;             /* NaN: not known */
    double cost, cost_lo, cost_hi; /* NaN: none */
    double roof;           /* least time that the machine's limits allow / time taken; NaN */
    struct launch_value *launch; /* of the cost, ascending by launch; owned */
    size_t n_launch;
    int is_disturbed;            /* some timed batch of its cost was */
    double beside;               /* the other metric: its value, NaN, and those of its launches */
    struct launch_value *beside_launch;
    size_t n_beside;
    int64_t dropped;    /* its quality rows without a number */
};

struct point_row { /* one prompt's value */
    double value, tokens, bytes; /* bytes, tokens NaN: not said */
    double copies;               /* generations that ended in this answer */
    uint32_t point, metric, id;  /* places in v, metrics; of the id */
};

struct points {
    const char *cost_metric; /* set by the caller before the first record */
    const char *beside;      /* set likewise: another metric whose launches are wanted; NULL */
    const char *task;        /* set likewise: qualities of this task alone; NULL: all */
    const char *axis;        /* set likewise: the axis of all series; NULL: each point's own */
    int cost_higher;         /* from the records: 1 when more is better */
    struct point *v;
    size_t n, cap;
    struct point_row *rows;
    size_t n_rows, cap_rows;
    uint32_t *order;         /* [n_rows], after points_finish: rows by metric, point, id, value */
    struct places ids;       /* rows have them, after points_finish, in the order of their texts */
    const char **metrics;    /* names met; direction of each: 1 more is better, -1 not said */
    int *higher;
    unsigned char *binary;   /* of each: all its values are 0 or 1, right or wrong */
    size_t n_metrics, cap_metrics, cap_higher, cap_binary;
    struct places index;      /* point and workload: the place in v, before points_finish */
    struct buf text;
    int64_t dropped;          /* rows whose value is null */
    size_t set_aside;         /* measurements of a point on fewer prompts than another of it */
};

/* Takes a `metric` record of cost_metric or a per-prompt `quality` record. 1 taken, 0 another, -1
 * malformed (EXIT_BAD_DATA). */
int points_take(struct points *p, const json_t *record, struct err *e);
/* The numbers of a metric record, or of one of quality, are in the range of such things, and its
 * interval ends behind its beginning. -1: EXIT_BAD_DATA with the member. */
int points_check_cost(const json_t *record, struct err *e);
int points_check_quality(const json_t *record, struct err *e);
/* Makes a point of a record that has its settings but no number of ours: a generation. */
void points_meet(struct points *p, const json_t *record);
/* Keeps the workload of most prompts of each point (of equals the first by identity), joins points
 * to series and orders these, then puts everything into an order of its own: points by
 * device, batch, length, model, axis, series, work. */
void points_finish(struct points *p);
/* Puts the rows into their order, for points_finish. */
void points_order(struct points *p);
/* 1 when the points have one device, batch size, length and contract. */
int points_same_group(const struct point *a, const struct point *b);
/* 1 when both are of one series; its points stand together. */
int points_same_series(const struct point *a, const struct point *b);
/* How well `rival` suits as what `of` is held against, 0 best: a plain point before others, and of
 * these one of the same number format. */
enum { POINTS_RANKS = 4 };
int points_rank(const struct point *of, const struct point *rival);
/* The value along its axis; NULL: it has none. Borrowed. */
const json_t *points_value(const struct point *p);

/* Place of a metric in `metrics`, n_metrics when it was not met. */
size_t points_metric(const struct points *p, const char *name);

/* 1: answers are right or wrong by this metric, so that a prompt has a share of right ones. */
int points_is_binary(const struct points *p, const char *metric);

/* The rows of a metric over the points from..from+n-1 into num, den, there[n][ids.n] and has[n],
 * all zero before: num / den is the mean of a prompt's answers, each as often as it was given, and
 * den 1 by prompt, else the weight of one of them. Rows without the weight and points of random
 * weights are left out. */
void points_pool(const struct points *p, const char *metric, enum pooled_weight weight, size_t from,
                 size_t n, double *num, double *den, unsigned char *there, unsigned char *has);
void points_free(struct points *p);

#endif
