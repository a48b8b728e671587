/* points.h - reads metric and quality records into a table: one point for each configuration, with
 * its cost and its quality prompt by prompt. The order of the records does not matter.
 *
 * Points that differ in one setting, the axis, form a series. A series is ordered by the
 * computation of its points, `at`, so that curves can be read between them. `at` is:
 *
 *     steps     the denoising steps, if steps are the axis
 *     passes    else the denoising passes of an answer, as measured
 *     rows      if all points have the same passes: the positions computed for an answer, as
 *               measured
 *
 * No other setting tells the computation before a run. For example, a threshold of 0.9 with at most
 * 64 steps that took 9 passes is a point of 9 passes. */
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

/* Which LLaMA is the rival of a diffusion point: the plain point, the fastest one, or each of them.
 * The member `rival` of a crossover record is "plain"; "fastest"; "both", if the plain point is the
 * fastest of several; or "other", if there is no plain point. */
enum points_rivals { POINTS_PLAIN, POINTS_FASTEST, POINTS_BOTH };

struct point {
    const char *id;     /* about_point(); borrowed from `about`, as all texts below */
    const char *config; /* label */
    json_t *about;      /* the settings of its records (about.h); owned */
    struct buf shape;   /* member names of the last record that was added to `about` */
    const char *workload;
    const char *prompts; /* the workload; if it is unknown, the only one of its group */
    char *series;       /* identity of the sweep; owned */
    const char *axis;   /* NULL: none */
    const char *stack;  /* about_stack(): "": this engine */
    const char *model, *device, *dtype, *quant, *contract; /* "" when unknown */
    int is_diffusion;
    int is_rival;             /* 1: autoregressive and not latent */
    int random;               /* 1: random weights, so no quality counts */
    int is_plain;             /* about_is_plain() */
    double batch, length, steps, passes, rows; /* NaN: unknown */
    double rate;              /* prompts that arrive per second; 0: none arrive */
    enum points_work work; /* the unit of `at`; all points of a series have the same */
    double at;             /* NaN: unknown */
    double cost, cost_lo, cost_hi; /* NaN: none */
    struct launch_value *launch; /* values of the cost, ascending by launch; owned */
    size_t n_launch;
    int is_disturbed;            /* 1: a timed batch of its cost was disturbed */
    double beside;               /* value of the metric points->beside; NaN: none */
    struct launch_value *beside_launch; /* [n_beside]: its values by launch; owned */
    size_t n_beside;
    int64_t dropped;    /* quality records without a number */
};

struct point_row { /* the value of one prompt */
    double value, tokens, bytes; /* tokens, bytes: scored ones; NaN: unknown */
    double copies;               /* number of generations with this answer */
    uint32_t point, metric, id;  /* indices in points->v, metrics, ids */
};

struct points {
    /* The caller sets the first four members before the first record. */
    const char *cost_metric;
    const char *beside;      /* another metric whose launch values are kept; NULL: none */
    const char *task;        /* only qualities of this task; NULL: all */
    const char *axis;        /* the axis of all series; NULL: each point names its axis */
    int cost_higher;         /* from the records: 1: more is better */
    struct point *v;
    size_t n, cap;
    struct point_row *rows;
    size_t n_rows, cap_rows;
    uint32_t *order;         /* [n_rows], after points_finish: rows by metric, point, id, value */
    struct places ids;       /* ids of prompts; after points_finish, row.id is in text order */
    const char **metrics;    /* [n_metrics]: names */
    int *higher;             /* [n_metrics]: scale_higher() */
    unsigned char *binary;   /* [n_metrics]: 1: all values are 0 or 1 (wrong or right) */
    size_t n_metrics, cap_metrics, cap_higher, cap_binary;
    struct places index;      /* point and workload -> place in v, before points_finish */
    struct buf text;
    int64_t dropped;          /* records whose value is null */
    size_t set_aside;         /* measurements that another one of their point, with more prompts,
                                 replaces */
};

/* Takes a `metric` record of cost_metric or a per-prompt `quality` record. 1: taken; 0: a record of
 * another kind or metric; -1: malformed (EXIT_BAD_DATA). */
int points_take(struct points *points, const json_t *record, struct err *e);
/* Adds the point of a generation record, which has settings but no metric. */
void points_meet(struct points *points, const json_t *record);
/* To be called after the last record. Keeps for each point the workload with the most prompts (on a
 * tie the first by name) and joins points to series. Sorts points by stack, device, batch, length,
 * rate, contract, prompts, model, axis, series, work. */
void points_finish(struct points *points);
/* Sets points->order; part of points_finish(). */
void points_order(struct points *points);
/* 1: the same software stack, device, batch size, length, rate of arrivals and contract. */
int points_same_place(const struct point *a, const struct point *b);
/* 1: also the same set of prompts. */
int points_same_group(const struct point *a, const struct point *b);
/* 1: the same model in the same number formats. */
int points_same_system(const struct point *a, const struct point *b);
/* 1: the same series. The points of a series are adjacent. */
int points_same_series(const struct point *a, const struct point *b);
/* 1: the prompts of both went through the same chat template, or through none. */
int points_same_template(const struct point *a, const struct point *b);
/* How well `rival` suits as the rival of `of`, from 0 (best) to POINTS_RANKS - 1. Points with the
 * chat template of `of` come before others; among equals plain points, then points with the number
 * formats of `of`. */
enum { POINTS_RANKS = 8 };
int points_rank(const struct point *of, const struct point *rival);
/* The value of the point along its axis; NULL: none. Borrowed. */
const json_t *points_value(const struct point *point);

/* The index of a metric in `metrics`; n_metrics: no row has this metric. */
size_t points_metric(const struct points *points, const char *name);

/* 1: every value of the metric is 0 or 1 (right or wrong). */
int points_is_binary(const struct points *points, const char *metric);

/* Sums the rows of a metric for points from..from+n-1. Fills num, den and there, all [n][ids.n],
 * and has[n]; all must be zero before. num is the mean value over the answers to a prompt, weighted
 * by copies. den is 1 (POOLED_BY_PROMPT) or the mean weight (tokens, bytes) of these answers.
 * there: 1: the point has the prompt. has: 1: the point has the metric. Rows without the weight,
 * and points of random weights, are left out. */
void points_pool(const struct points *points, const char *metric, enum pooled_weight weight,
                 size_t from, size_t n, double *num, double *den, unsigned char *there,
                 unsigned char *has);
void points_free(struct points *points);
