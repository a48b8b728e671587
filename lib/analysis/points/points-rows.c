/* points-rows.c - sorts and sums the values of a table of points, prompt by prompt; see points.h.
 * There may be millions of values, so the rows are not moved: their order is a list of indices. */
#include "lib/analysis/points/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

size_t points_metric(const struct points *points, const char *name)
{
    size_t i = 0;
    while (i < points->n_metrics && strcmp(points->metrics[i], name))
        i++;
    return i;
}

int points_is_binary(const struct points *points, const char *metric)
{
    size_t i = points_metric(points, metric);
    return i < points->n_metrics && points->binary[i];
}

static int by_number(double a, double b) /* NaN first */
{
    return isnan(a) || isnan(b) ? !isnan(a) - !isnan(b) : (a > b) - (a < b);
}

static int by_place(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* Rows of one prompt (other seeds) are sorted by value, so that their sum is always the same. */
static int by_row(const void *a, const void *b, void *rows)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct point_row *x = (struct point_row *)rows + i, *y = (struct point_row *)rows + k;
    int o = by_place(x->metric, y->metric);
    o = o ? o : by_place(x->point, y->point);
    o = o ? o : by_place(x->id, y->id);
    o = o ? o : by_number(x->value, y->value);
    o = o ? o : by_number(x->tokens, y->tokens);
    return o ? o : by_place(i, k);
}

void points_order(struct points *points)
{
    points->order = mem_zero(points->n_rows, sizeof *points->order);
    for (size_t i = 0; i < points->n_rows; i++)
        points->order[i] = (uint32_t)i;
    qsort_r(points->order, points->n_rows, sizeof *points->order, by_row, points->rows);
}

/* The first index in points->order whose row has this metric and point, or comes after them. */
static size_t begin_of(const struct points *points, size_t metric, size_t point)
{
    size_t lo = 0, hi = points->n_rows;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct point_row *row = &points->rows[points->order[mid]];
        if (row->metric < metric || (row->metric == metric && row->point < point))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A prompt counts once, however many answers to it were scored, because answers of further launches
 * are no further prompts. */
void points_pool(const struct points *points, const char *metric, enum pooled_weight weight,
                 size_t from, size_t n, double *num, double *den, unsigned char *there,
                 unsigned char *has)
{
    size_t which = points_metric(points, metric);
    double *copies = mem_zero(n * points->ids.n, sizeof *copies);
    size_t end = begin_of(points, which, from + n);
    for (size_t k = begin_of(points, which, from); k < end; k++) {
        const struct point_row *row = &points->rows[points->order[k]];
        double w = weight == POOLED_BY_TOKEN  ? row->tokens
                   : weight == POOLED_BY_BYTE ? row->bytes
                                              : 1;
        if (!(w >= 0) || points->v[row->point].random)
            continue;
        size_t i = row->point - from, at = i * points->ids.n + row->id;
        has[i] = there[at] = 1;
        num[at] += row->value * row->copies;
        den[at] += w * row->copies;
        copies[at] += row->copies;
    }
    for (size_t at = 0; at < n * points->ids.n; at++)
        if (there[at]) {
            num[at] /= copies[at];
            den[at] /= copies[at];
        }
    free(copies);
}
