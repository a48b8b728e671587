/* field.c - see field.h. Random streams are named after what is drawn, so that neither the number
 * nor the order of the points changes a draw. Arrays are [draw][point]: a draw is one row, read by
 * the same code as the measured values. */
#include "lib/analysis/points/field.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rng.h"
#include "lib/stat/bootstrap.h"

static const double LEVEL = 0.95;

const struct point *field_point(const struct field *f, size_t i)
{
    return &f->points->v[f->from + i];
}

void field_against(struct field *f, size_t base)
{
    if (f->base == base)
        return;
    const struct point *of = field_point(f, base);
    const double unit = f->points->cost_higher ? 1 / of->cost : of->cost;
    size_t paired = 0;
    f->base = base;
    for (size_t i = 0; i < f->n; i++) {
        if (i == base)
            continue;
        double *draw = f->cost_draw + i;
        f->ratio[i] = costs_ratio(f->costs, of, field_point(f, i), draw, f->n);
        const struct ratio *r = &f->ratio[i].ratio;
        f->cost[i] = isnan(r->lo) ? (double)NAN : unit * r->value;
        for (size_t d = 0; d < f->draws; d++)
            draw[d * f->n] = unit * exp(draw[d * f->n]);
        paired += isnan(r->lo) ? 0 : 1;
    }
    f->ratio[base] = costs_ratio(f->costs, of, of, NULL, 0); /* 1, or a reason for none */
    f->cost[base] = paired || !isnan(f->ratio[base].ratio.lo) ? unit : (double)NAN;
    for (size_t d = 0; d < f->draws; d++)
        f->cost_draw[d * f->n + base] = f->cost[base];
}

/* The base: the plain LLaMA with enough launches, else any such LLaMA, else any point with enough
 * launches. */
static size_t base_of(const struct field *f)
{
    size_t best = f->n;
    int best_rank = 2 * POINTS_RANKS + 1;
    for (size_t i = 0; i < f->n; i++) {
        const struct point *p = field_point(f, i);
        int few = isnan(f->ratio[i].ratio.lo);
        int rank = !p->is_rival ? 2 * POINTS_RANKS
                                : points_rank(field_point(f, 0), p) + (few ? POINTS_RANKS : 0);
        if (rank < best_rank && !isnan(p->cost) && (p->is_rival || !few)) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

/* Sets num and den by prompt, over the prompts that all points with the quality have. */
static void fill_board(const struct field *f, struct field_board *b)
{
    const struct pooled_kind *k = &b->quality->is;
    size_t ids = f->points->ids.n;
    unsigned char *there = mem_zero(f->n * ids, 1);
    b->num = mem_zero(f->n * ids, sizeof *b->num);
    b->den = mem_zero(f->n * ids, sizeof *b->den);
    b->has = mem_zero(f->n, 1);
    points_pool(f->points, k->source, k->weight, f->from, f->n, b->num, b->den, there, b->has);
    b->n = pooled_common(b->num, b->den, there, b->has, f->n, ids, &b->left_out);
    free(there);
}

static void make_board(const struct field *f, struct field_board *b, const struct field_quality *q)
{
    *b = (struct field_board){.quality = q,
                              .binary = points_is_binary(f->points, q->is.source)};
    fill_board(f, b);
    b->value = mem_zero(f->n, sizeof *b->value);
    b->draw = mem_zero(f->draws * f->n, sizeof *b->draw);
    uint32_t *index = mem_zero(b->n, sizeof *index);
    double *work = mem_zero(2 * f->n * (b->n + 1), sizeof *work);
    pooled_draws(b->num, b->den, b->has, f->n, b->n, q->is.transform,
                 rng_derive(f->seed, "prompts"), f->draws, b->value, b->draw, index, work);
    free(index);
    free(work);
    b->good = mem_zero(f->n, sizeof *b->good);
    b->good_draw = mem_zero(f->draws * f->n, sizeof *b->good_draw);
    for (size_t i = 0; i < f->n; i++)
        b->good[i] = pooled_scale(b->value[i], q->is.transform, q->is.higher);
    for (size_t i = 0; i < f->n * f->draws; i++)
        b->good_draw[i] = pooled_scale(b->draw[i], q->is.transform, q->is.higher);
}

void field_open(struct field *f, const struct points *points, size_t from,
                const struct costs *costs, const struct field_quality *qualities, size_t n)
{
    *f = (struct field){.points = points, .from = from, .n = 1, .draws = costs->draws,
                        .seed = costs->seed, .costs = costs, .n_boards = n};
    while (from + f->n < points->n &&
           points_same_group(&points->v[from], &points->v[from + f->n]))
        f->n++;
    f->at = mem_zero(f->n, sizeof *f->at);
    f->cost = mem_zero(f->n, sizeof *f->cost);
    f->cost_draw = mem_zero(f->draws * f->n, sizeof *f->cost_draw);
    f->ratio = mem_zero(f->n, sizeof *f->ratio);
    for (size_t i = 0; i < f->n; i++) {
        const struct point *p = field_point(f, i);
        f->at[i] = p->at;
        f->cost[i] = NAN;
        f->ratio[i] = costs_ratio(costs, p, p, NULL, 0);
    }
    for (size_t i = 0; i < f->n * f->draws; i++)
        f->cost_draw[i] = NAN;
    f->base = f->n;
    size_t base = base_of(f);
    if (base < f->n)
        field_against(f, base);
    for (size_t k = 0; k < n; k++)
        make_board(f, &f->board[k], &qualities[k]);
}

void field_free(struct field *f)
{
    for (size_t k = 0; k < f->n_boards; k++) {
        struct field_board *b = &f->board[k];
        free(b->num);
        free(b->den);
        free(b->has);
        free(b->value);
        free(b->draw);
        free(b->good);
        free(b->good_draw);
    }
    free(f->at);
    free(f->cost);
    free(f->cost_draw);
    free(f->ratio);
}

struct contest field_contest(const struct field *f, const struct field_board *b)
{
    return (struct contest){f->n, f->draws, f->at, f->cost, f->cost_draw, b ? b->good : NULL,
                            b ? b->good_draw : NULL};
}

static struct interval interval_of(const struct field *f, double value, const double *draw,
                                   size_t i, double *work)
{
    for (size_t d = 0; d < f->draws; d++)
        work[d] = draw[d * f->n + i];
    return bootstrap_interval(value, work, f->draws, LEVEL);
}

struct interval field_quality_interval(const struct field *f, const struct field_board *b, size_t i,
                                       double *work)
{
    const struct pooled_kind *k = &b->quality->is;
    if (k->transform == POOLED_PLAIN && b->binary)
        return bootstrap_wilson(stat_sum(b->num + i * b->n, b->n), (double)b->n, LEVEL);
    return interval_of(f, b->value[i], b->draw, i, work);
}

void field_level(const struct field *f, const struct field_board *b, size_t rival, double *level)
{
    const struct field_quality *q = b->quality;
    for (size_t d = 0; d <= f->draws; d++) {
        const double *value = d < f->draws ? b->draw + d * f->n : b->value;
        level[d] = pooled_scale(pooled_worsened(value[rival], &q->margin, q->is.higher),
                                q->is.transform, q->is.higher);
    }
}

size_t field_series_end(const struct field *f, size_t i)
{
    size_t end = i + 1;
    while (end < f->n && points_same_series(field_point(f, i), field_point(f, end)))
        end++;
    return end;
}

int field_rank(const struct field *f, size_t i, size_t rival)
{
    const struct point *p = field_point(f, rival);
    return p->is_rival ? points_rank(field_point(f, i), p) : -1;
}

int field_has_sweep(const struct field *f)
{
    size_t i = 0;
    while (i < f->n && (!field_point(f, i)->is_diffusion || field_series_end(f, i) == i + 1))
        i = field_series_end(f, i);
    return i < f->n;
}
