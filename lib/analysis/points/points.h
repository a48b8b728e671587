/* points.h - metric and quality records as a table: one point for each configuration, with its cost
 * and its quality prompt by prompt. The order of the records does not matter.
 *
 * Points that differ in one setting, the axis, form a series. A series is ordered by the
 * computation of its points, `at`, so that curves can be read between them:
 *
 *     steps     the denoising steps, if steps are the axis
 *     passes    else the denoising passes of an answer, as measured
 *     rows      if passes are the same for all: the positions computed for an answer, as measured
 *
 * Other settings do not tell the computation before a run: a threshold of 0.9 with at most 64 steps
 * that took 9 passes is a point of 9 passes. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/places.h"
#include "lib/stat/launch.h"
#include "lib/stat/pooled.h"

enum points_work { POINTS_STEPS, POINTS_PASSES, POINTS_ROWS, POINTS_NONE /* no order */ };
extern const char *const points_work_names[]; /* "steps", "passes", "rows" */

struct point {
    const char *id;     /* about_point(); borrowed from `about`, as all texts below */
    const char *config; /* label */
    json_t *about;      /* the settings of its records (about.h); owned */
    struct buf shape;   /* member names of the record that `about` took last */
    const char *workload;
    char *series;       /* identity of the sweep; owned */
    const char *axis;   /* NULL: none */
    const char *stack;  /* about_stack(): "": this engine */
    const char *model, *device, *dtype, *quant, *contract; /* "" when unknown */
    int is_diffusion;
    int is_rival;             /* 1: autoregressive and not latent */
    int random;               /* 1: random weights, so no quality counts */
    int is_plain;             /* about_is_plain() */
    double batch, length, steps, passes, rows; /* NaN: unknown */
    double rate;              /* prompts that arrive per second; 0: none does */
    enum points_work work; /* the unit of `at`; the same in a series */
    double at;             /* NaN: unknown */
    double cost, cost_lo, cost_hi; /* NaN: none */
    struct launch_value *launch; /* values of the cost, ascending by launch; owned */
    size_t n_launch;
    int is_disturbed;            /* 1: a timed batch of its cost was disturbed */
    double beside;               /* the metric `beside`, NaN: none; its launch values, owned */
    struct launch_value *beside_launch;
    size_t n_beside;
    int64_t dropped;    /* quality records without a number */
};

struct point_row { /* the value of one prompt */
    double value, tokens, bytes; /* tokens, bytes NaN: unknown */
    double copies;               /* generations with this answer */
    uint32_t point, metric, id;  /* places in v, metrics, ids */
};

struct points {
    const char *cost_metric; /* set by the caller before the first record, as the next three */
    const char *beside;      /* another metric whose launch values are kept; NULL */
    const char *task;        /* only qualities of this task; NULL: all */
    const char *axis;        /* the axis of all series; NULL: that of each point */
    int cost_higher;         /* from the records: 1 when more is better */
    struct point *v;
    size_t n, cap;
    struct point_row *rows;
    size_t n_rows, cap_rows;
    uint32_t *order;         /* [n_rows], after points_finish: rows by metric, point, id, value */
    struct places ids;       /* rows have them, after points_finish, in the order of their texts */
    const char **metrics;    /* names; direction of each: 1 more is better, -1 unknown */
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
int points_take(struct points *points, const json_t *record, struct err *e);
/* Checks the numbers of a metric or quality record: their range, and lo <= hi. -1: EXIT_BAD_DATA,
 * with the member. */
int points_check_cost(const json_t *record, struct err *e);
int points_check_quality(const json_t *record, struct err *e);
/* Adds the point of a generation record, which has settings but no metric. */
void points_meet(struct points *points, const json_t *record);
/* Keeps for each point the workload with the most prompts (of equals the first by name), joins
 * points to series and sorts: points by stack, device, batch, length, rate, contract, model, axis,
 * series, work. */
void points_finish(struct points *points);
/* Sorts the rows; part of points_finish. */
void points_order(struct points *points);
/* 1: the same software stack, device, batch size, length, rate of arrivals and contract. */
int points_same_group(const struct point *a, const struct point *b);
/* 1: the same model in the same number formats. */
int points_same_system(const struct point *a, const struct point *b);
/* 1: the same series. The points of a series are adjacent. */
int points_same_series(const struct point *a, const struct point *b);
/* How well `rival` suits as the rival of `of`; 0 is best: plain points first, then those of the
 * same number format. */
enum { POINTS_RANKS = 4 };
int points_rank(const struct point *of, const struct point *rival);
/* The value of its axis; NULL: none. Borrowed. */
const json_t *points_value(const struct point *point);

/* The place of a metric in `metrics`; n_metrics: not there. */
size_t points_metric(const struct points *points, const char *name);

/* 1: every value of the metric is 0 or 1 (right or wrong). */
int points_is_binary(const struct points *points, const char *metric);

/* Sums the rows of a metric of points from..from+n-1 into num, den, there [n][ids.n] and has[n],
 * all zero before. num / den is the mean over the answers of a prompt, weighted by copies; den is 1
 * (POOLED_BY_PROMPT) or the mean weight of an answer. Rows without the weight and points of random
 * weights are left out. */
void points_pool(const struct points *points, const char *metric, enum pooled_weight weight,
                 size_t from, size_t n, double *num, double *den, unsigned char *there,
                 unsigned char *has);
void points_free(struct points *points);
