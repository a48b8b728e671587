/* field.h - a field: the points that compete (one device, batch size, length and contract), as
 * numbers. Each point has its cost and qualities, as measured and in every draw. Draws of the cost
 * are over launches and prompts, paired with one of the points, the base (costs.h); draws of the
 * quality are over prompts, the same prompts for all points. A point without pairs has no cost
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
};
struct field_board { /* one quality of all points */
    const struct field_quality *quality;
    int binary;              /* 1: answers are right or wrong */
    size_t n;                /* prompts that every point with this quality has */
    size_t left_out;         /* prompts that only some points have */
    unsigned char *has;      /* [points] */
    double *num, *den;       /* [points][n] */
    double *value, *draw;    /* [points], [draws][points]; NaN: none */
    double *good, *good_draw; /* the same by pooled_scale(): higher is better */
};
struct field {
    const struct points *points;
    size_t from, n;          /* points from..from+n-1 of the table */
    size_t draws;
    uint64_t seed;
    double *at;              /* [n]: their place in the order of their series */
    const struct costs *costs;
    size_t base;             /* the point that costs are paired with; n: none has enough launches */
    struct paired *ratio;    /* [n]: cost / cost of the base */
    double *cost, *cost_draw; /* [n], [draws][n]: cost of the base * ratio, lower is better
                                 (1 / cost when more is better); NaN: no ratio */
    struct field_board board[FIELD_QUALITIES];
    size_t n_boards;
};

/* Opens the field that begins at points->v[from]; its base is the best suited LLaMA. Costs and
 * qualities are borrowed. Released by field_free. */
void field_open(struct field *field, const struct points *points, size_t from,
                const struct costs *costs, const struct field_quality *qualities, size_t n);
/* Changes the base and all costs. */
void field_against(struct field *field, size_t base);
void field_free(struct field *field);

const struct point *field_point(const struct field *field, size_t i);
/* The contest over the cost and, unless board is NULL, a quality; its arrays are borrowed. */
struct contest field_contest(const struct field *field, const struct field_board *board);
/* The interval of a quality of point i: by percentiles, or Wilson's for right and wrong.
 * work[draws]. */
struct interval field_quality_interval(const struct field *field, const struct field_board *board,
                                       size_t i, double *work);
/* level[0..draws]: the quality of point `rival` less the margin, in every draw and, last, as
 * measured. */
void field_level(const struct field *field, const struct field_board *board, size_t rival,
                 double *level);
/* One past the last point of the series of point i. */
size_t field_series_end(const struct field *field, size_t i);
/* 1: some diffusion points form a sweep. Then a single point is a method, which `compare` handles:
 * a single point has no crossover. */
int field_has_sweep(const struct field *field);
/* points_rank() of point `rival` for point i; -1: it is not autoregressive. */
int field_rank(const struct field *field, size_t i, size_t rival);
