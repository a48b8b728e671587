/* field.h - the points that compete with each other (one device, batch size, length and contract)
 * as numbers: their cost and each of their qualities, as measured and in every draw: of the cost
 * over launches and prompts, in pairs with one of the points, the base (costs.h), of the quality
 * over prompts, the same prompts for all points. A point without such pairs has no cost here.
 */
#ifndef ANALYSIS_POINTS_FIELD_H
#define ANALYSIS_POINTS_FIELD_H

#include <stddef.h>
#include <stdint.h>

#include "lib/analysis/points/costs.h"
#include "lib/analysis/points/points.h"
#include "lib/stat/contest.h"
#include "lib/stat/pooled.h"
#include "lib/stat/stat.h"

enum { FIELD_QUALITIES = 16 };

struct field_quality {
    struct pooled_kind is;
    struct pooled_margin margin;
};
struct field_board { /* one quality over the points */
    const struct field_quality *quality;
    int binary;              /* answers are right or wrong */
    size_t n;                /* prompts that every point with this quality has */
    size_t left_out;         /* prompts that only some have */
    unsigned char *has;      /* [points] */
    double *num, *den;       /* [points][n] */
    double *value, *draw;    /* [points], [draws][points]; NaN where there is none */
    double *good, *good_draw; /* the same on the scale on which higher is better */
};
struct field {
    const struct points *points;
    size_t from, n;          /* which of them */
    size_t draws;
    uint64_t seed;
    double *at;              /* [n]: their place in their series */
    const struct costs *costs;
    size_t base;             /* what costs are paired with; n: no point has enough launches */
    struct paired *ratio;    /* [n]: of the cost to that of the base */
    double *cost, *cost_draw; /* [n], [draws][n]: the cost of the base times the ratio, lower is
                                 better (1 / cost when more is better); NaN: no ratio */
    struct field_board board[FIELD_QUALITIES];
    size_t n_boards;
};

/* The field that begins at points->v[from], its costs against the LLaMA that suits best. Costs and
 * qualities are borrowed. Released by field_free. */
void field_open(struct field *f, const struct points *points, size_t from,
                const struct costs *costs, const struct field_quality *qualities, size_t n);
/* Makes point `base` the one that costs are paired with. */
void field_against(struct field *f, size_t base);
void field_free(struct field *f);

const struct point *field_point(const struct field *f, size_t i);
/* The contest over the cost and, unless b is NULL, a quality. Borrowed. */
struct contest field_contest(const struct field *f, const struct field_board *b);
/* Percentile interval of a quality of point i; of a share of right answers Wilson's. work[draws].
 */
struct interval field_quality_interval(const struct field *f, const struct field_board *b, size_t i,
                                       double *work);
/* level[0..draws]: what a point must reach to be as good as point `rival`, less the margin, in
 * every draw and, last, as measured. */
void field_level(const struct field *f, const struct field_board *b, size_t rival, double *level);
/* The place behind the last point of the series of point i. */
size_t field_series_end(const struct field *f, size_t i);
/* 1: some denoised points are a sweep. Then one that stands alone is a method, held against others
 * by `compare`: where a single point crosses anything nobody can say. */
int field_has_sweep(const struct field *f);
/* The rank of point `rival` as a rival of point i (points_rank); -1: it is not autoregressive. */
int field_rank(const struct field *f, size_t i, size_t rival);

#endif
