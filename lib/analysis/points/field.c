/* field.c - see field.h. A random stream has the name of the thing that is drawn ("prompts"), so
 * that neither the number nor the order of the points changes a draw. Arrays are [draw][point]. A
 * draw is one row, so the same code reads it and the measured values. */
#include "lib/analysis/points/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"

static const double LEVEL = 0.95;

const struct point *field_point(const struct field *field, size_t i)
{
    return &field->points->v[field->from + i];
}

void field_against(struct field *field, size_t base)
{
    if (field->base == base)
        return;
    const struct point *of = field_point(field, base);
    const double unit = field->points->cost_higher ? 1 / of->cost : of->cost;
    size_t paired = 0;
    field->base = base;
    for (size_t i = 0; i < field->n; i++) {
        if (i == base)
            continue;
        double *draw = field->cost_draw + i;
        field->ratio[i] = costs_ratio(field->costs, of, field_point(field, i), draw, field->n);
        const struct ratio *ratio = &field->ratio[i].ratio;
        field->cost[i] = isnan(ratio->lo) ? (double)NAN : unit * ratio->value;
        for (size_t at = 0; at < field->draws; at++)
            draw[at * field->n] = unit * exp(draw[at * field->n]);
        paired += isnan(ratio->lo) ? 0 : 1;
    }
    field->ratio[base] = costs_ratio(field->costs, of, of, NULL, 0); /* 1, or NaN with a reason */
    field->cost[base] = paired || !isnan(field->ratio[base].ratio.lo) ? unit : (double)NAN;
    for (size_t at = 0; at < field->draws; at++)
        field->cost_draw[at * field->n + base] = field->cost[base];
}

/* The base: the LLaMA with the best points_rank() among those with enough launches (plain ones come
 * first), else among the others. If there is no LLaMA: a point with enough launches. Returns
 * field->n if there is none. */
static size_t base_of(const struct field *field)
{
    size_t best = field->n;
    int best_rank = 2 * POINTS_RANKS + 1;
    for (size_t i = 0; i < field->n; i++) {
        const struct point *point = field_point(field, i);
        int few = isnan(field->ratio[i].ratio.lo);
        int rank = !point->is_rival
                       ? 2 * POINTS_RANKS
                       : points_rank(field_point(field, 0), point) + (few ? POINTS_RANKS : 0);
        if (rank < best_rank && !isnan(point->cost) && (point->is_rival || !few)) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

/* Sets num, den, has and n of the board, over the prompts that all points with the quality have. */
static void fill_board(const struct field *field, struct field_board *board)
{
    const struct pooled_kind *k = &board->quality->is;
    size_t ids = field->points->ids.n;
    unsigned char *there = mem_zero(field->n * ids, 1);
    board->num = mem_zero(field->n * ids, sizeof *board->num);
    board->den = mem_zero(field->n * ids, sizeof *board->den);
    board->has = mem_zero(field->n, 1);
    points_pool(field->points, k->source, k->weight, field->from, field->n, board->num, board->den,
                there, board->has);
    board->n = pooled_common(board->num, board->den, there, board->has, field->n, ids,
                             &board->left_out);
    free(there);
}

static void make_board(const struct field *field, struct field_board *board,
                       const struct field_quality *quality)
{
    *board = (struct field_board){.quality = quality,
                                  .binary = points_is_binary(field->points, quality->is.source)};
    fill_board(field, board);
    board->value = mem_zero(field->n, sizeof *board->value);
    board->draw = mem_zero(field->draws * field->n, sizeof *board->draw);
    uint32_t *index = mem_zero(board->n, sizeof *index);
    double *work = mem_zero(2 * field->n * (board->n + 1), sizeof *work);
    pooled_draws(board->num, board->den, board->has, field->n, board->n, quality->is.transform,
                 rng_derive(field->seed, "prompts"), field->draws, board->value, board->draw, index,
                 work);
    free(index);
    free(work);
    board->good = mem_zero(field->n, sizeof *board->good);
    board->good_draw = mem_zero(field->draws * field->n, sizeof *board->good_draw);
    for (size_t i = 0; i < field->n; i++)
        board->good[i] = pooled_scale(board->value[i], quality->is.transform, quality->higher);
    for (size_t i = 0; i < field->n * field->draws; i++)
        board->good_draw[i] = pooled_scale(board->draw[i], quality->is.transform,
                                           quality->higher);
}

void field_open(struct field *field, const struct points *points, size_t from,
                const struct costs *costs, const struct field_quality *qualities, size_t n)
{
    *field = (struct field){.points = points, .from = from, .n = 1, .draws = costs->draws,
                            .seed = costs->seed, .costs = costs, .n_boards = n};
    while (from + field->n < points->n &&
           points_same_group(&points->v[from], &points->v[from + field->n]))
        field->n++;
    field->at = mem_zero(field->n, sizeof *field->at);
    field->cost = mem_zero(field->n, sizeof *field->cost);
    field->cost_draw = mem_zero(field->draws * field->n, sizeof *field->cost_draw);
    field->ratio = mem_zero(field->n, sizeof *field->ratio);
    for (size_t i = 0; i < field->n; i++) {
        const struct point *point = field_point(field, i);
        field->at[i] = point->at;
        field->cost[i] = NAN;
        field->ratio[i] = costs_ratio(costs, point, point, NULL, 0);
    }
    for (size_t i = 0; i < field->n * field->draws; i++)
        field->cost_draw[i] = NAN;
    field->base = field->n;
    size_t base = base_of(field);
    if (base < field->n)
        field_against(field, base);
    for (size_t k = 0; k < n; k++)
        make_board(field, &field->board[k], &qualities[k]);
}

void field_free(struct field *field)
{
    for (size_t k = 0; k < field->n_boards; k++) {
        struct field_board *board = &field->board[k];
        free(board->num);
        free(board->den);
        free(board->has);
        free(board->value);
        free(board->draw);
        free(board->good);
        free(board->good_draw);
    }
    free(field->at);
    free(field->cost);
    free(field->cost_draw);
    free(field->ratio);
}

struct contest field_contest(const struct field *field, const struct field_board *board)
{
    return (struct contest){field->n, field->draws, field->at, field->cost, field->cost_draw,
                            board ? board->good : NULL, board ? board->good_draw : NULL,
                            field->costs->level};
}

static struct interval interval_of(const struct field *field, double value, const double *draw,
                                   size_t i, double *work)
{
    for (size_t d = 0; d < field->draws; d++)
        work[d] = draw[d * field->n + i];
    return bootstrap_interval(value, work, field->draws, LEVEL);
}

struct interval field_quality_interval(const struct field *field, const struct field_board *board,
                                       size_t i, double *work)
{
    const struct pooled_kind *k = &board->quality->is;
    if (k->transform == POOLED_PLAIN && board->binary)
        return bootstrap_wilson(stat_sum(board->num + i * board->n, board->n), (double)board->n,
                                LEVEL);
    return interval_of(field, board->value[i], board->draw, i, work);
}

void field_level(const struct field *field, const struct field_board *board, size_t rival,
                 double *level)
{
    const struct field_quality *quality = board->quality;
    for (size_t d = 0; d <= field->draws; d++) {
        const double *value = d < field->draws ? board->draw + d * field->n : board->value;
        level[d] = pooled_scale(pooled_worsened(value[rival], &quality->margin, quality->higher),
                                quality->is.transform, quality->higher);
    }
}

size_t field_series_end(const struct field *field, size_t i)
{
    size_t end = i + 1;
    while (end < field->n && points_same_series(field_point(field, i), field_point(field, end)))
        end++;
    return end;
}

int field_rank(const struct field *field, size_t i, size_t rival)
{
    const struct point *point = field_point(field, rival);
    return point->is_rival ? points_rank(field_point(field, i), point) : -1;
}

int field_has_sweep(const struct field *field)
{
    size_t i = 0;
    while (i < field->n &&
           (!field_point(field, i)->is_diffusion || field_series_end(field, i) == i + 1))
        i = field_series_end(field, i);
    return i < field->n;
}

size_t field_fastest(struct field *field, size_t plain, json_t *among)
{
    const struct point *best = costs_fastest(field->costs, field->points, field_point(field, plain),
                                             among);
    field_against(field, plain);
    return (size_t)(best - field_point(field, 0));
}
