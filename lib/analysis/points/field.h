/* field.h - a field: the points that compete (one device, batch size, length and contract), as
 * numbers. Each point has its cost and qualities, as measured and in every draw. Costs are paired
 * with the cost of one point, the base, and drawn over launches and prompts (costs.h). Qualities
 * are drawn over prompts, the same prompts for all points. A point without pairs has no cost
 * here. */
#pragma once

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
    int higher; /* scale_higher() */
};
struct field_board { /* one quality of all points */
    const struct field_quality *quality;
    int binary;              /* 1: answers are right or wrong */
    size_t n;                /* prompts that every point with this quality has */
    size_t left_out;         /* prompts that only some points have */
    unsigned char *has;      /* [points]: 1: the point has this quality */
    double *num, *den;       /* [points][n] (pooled.h) */
    double *value, *draw;    /* [points], [draws][points]; NaN: none */
    double *good, *good_draw; /* value and draw by pooled_scale(): higher is better */
};
struct field {
    const struct points *points;
    size_t from, n;          /* the field is points from..from+n-1 of the table */
    size_t draws;
    uint64_t seed;
    double *at;              /* [n]: the work of each point (struct point) */
    const struct costs *costs;
    size_t base;             /* the point that costs are paired with; n: none has enough launches */
    struct paired *ratio;    /* [n]: cost / cost of the base */
    double *cost, *cost_draw; /* [n], [draws][n]: cost of the base * ratio; lower is better (if
                                 more is better, 1 / cost takes the place of the cost); NaN: no
                                 ratio */
    struct field_board board[FIELD_QUALITIES];
    size_t n_boards;
};

/* Opens the field that begins at points->v[from]. Its base is the LLaMA that suits best (field.c);
 * without a LLaMA, a point with enough launches. Costs and qualities are borrowed. Released by
 * field_free. */
void field_open(struct field *field, const struct points *points, size_t from,
                const struct costs *costs, const struct field_quality *qualities, size_t n);
/* Changes the base and all costs. */
void field_against(struct field *field, size_t base);
void field_free(struct field *field);

const struct point *field_point(const struct field *field, size_t i);
/* The contest over the cost and the quality of the board (board NULL: cost alone). The contest
 * borrows the arrays of the field. */
struct contest field_contest(const struct field *field, const struct field_board *board);
/* The interval of the quality of point i: percentiles of the draws, or Wilson's interval for right
 * and wrong answers. work[draws]. */
struct interval field_quality_interval(const struct field *field, const struct field_board *board,
                                       size_t i, double *work);
/* Sets level[0..draws]: the quality of point `rival` less the margin, by pooled_scale(), in every
 * draw and, last, as measured. */
void field_level(const struct field *field, const struct field_board *board, size_t rival,
                 double *level);
/* One past the last point of the series of point i. */
size_t field_series_end(const struct field *field, size_t i);
/* 1: some diffusion points form a sweep. Then a diffusion point that is alone in its series is a
 * method. It has no crossover, and `compare` judges it. */
int field_has_sweep(const struct field *field);
/* points_rank() of point `rival` for point i; -1: `rival` is not autoregressive. */
int field_rank(const struct field *field, size_t i, size_t rival);
/* costs_fastest() of the point `plain`; costs become paired with those of `plain`. */
size_t field_fastest(struct field *field, size_t plain, json_t *among);
