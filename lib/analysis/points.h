/* points.h - metric and quality records as a table: one point a configuration, with its cost, the
 * figures behind it, and its quality prompt by prompt. The order of the records leaves no trace.
 */
#ifndef ANALYSIS_POINTS_H
#define ANALYSIS_POINTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

struct point {
    const char *config; /* borrowed from `about` */
    json_t *about;      /* config, model, arch, steps, gen_length, max_new, batch, device, dtype,
                           quant, weights_random: what either kind of record said of it */
    char *series;       /* config without its step count: the sweep it belongs to */
    const char *model, *device, *dtype, *quant; /* "" when not said; borrowed from `about` */
    int is_llada, random; /* masked diffusion; weights are random, so no quality counts */
    double batch, length, steps; /* NaN: not said */
    double cost, cost_lo, cost_hi; /* NaN: none */
    double *launch, *sample; /* of the cost, ascending by launch and by value; owned */
    size_t n_launch, n_sample;
    int64_t dropped;    /* its quality rows without a number */
};

struct point_row { /* one prompt's figure */
    size_t point, metric, id; /* places in v, metrics, ids */
    double value, tokens, bytes; /* bytes, tokens NaN: not said */
};

struct points {
    const char *cost_metric; /* set by the caller before the first record */
    int cost_higher;         /* from the records: 1 when more is better */
    struct point *v;
    size_t n, cap;
    struct point_row *rows;  /* after points_finish: by metric, point, id */
    size_t n_rows, cap_rows;
    const char **ids;        /* after points_finish: ascending */
    size_t n_ids, cap_ids;
    const char **metrics;    /* names met; direction of each: 1 more is better, -1 not said */
    int *higher;
    size_t n_metrics, cap_metrics, cap_higher;
    json_t *index, *id_index; /* text -> place */
    int64_t dropped;          /* rows whose value is null */
};

/* Takes a `metric` record of cost_metric or a per-prompt `quality` record. 1 taken, 0 another, -1
 * malformed (EXIT_BAD_DATA). */
int points_take(struct points *p, const json_t *record, struct err *e);
/* Puts everything into an order of its own: points by device, batch, length, series, steps. */
void points_finish(struct points *p);
/* 1 when the points have one device, batch size and length. */
int point_same_group(const struct point *a, const struct point *b);
/* 1 when draws of its cost differ: several launches, or samples of one. */
int point_is_resampled(const struct point *p);

/* Place of a metric in `metrics`, n_metrics when it was not met. */
size_t points_metric(const struct points *p, const char *name);

enum points_weight { POINTS_BY_PROMPT, POINTS_BY_TOKEN, POINTS_BY_BYTE };
/* Sums the rows of a metric over the points from..from+n-1 into num, den, there[n][n_ids] and
 * has[n], all zero before. Rows without the weight and points of random weights are left out. */
void points_pool(const struct points *p, const char *metric, enum points_weight weight, size_t from,
                 size_t n, double *num, double *den, unsigned char *there, unsigned char *has);
void points_free(struct points *p);

#endif
