/* points-rows.c - the values of a table of points, prompt by prompt; see points.h. There may be
 * millions of values. They stay where they were stored; their order is a list of indices. */
#include "lib/analysis/points/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

size_t points_metric(const struct points *p, const char *name)
{
    size_t i = 0;
    while (i < p->n_metrics && strcmp(p->metrics[i], name))
        i++;
    return i;
}

int points_is_binary(const struct points *p, const char *metric)
{
    size_t i = points_metric(p, metric);
    return i < p->n_metrics && p->binary[i];
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

void points_order(struct points *p)
{
    p->order = mem_zero(p->n_rows, sizeof *p->order);
    for (size_t i = 0; i < p->n_rows; i++)
        p->order[i] = (uint32_t)i;
    qsort_r(p->order, p->n_rows, sizeof *p->order, by_row, p->rows);
}

/* The first index of the order with at least this metric and point. */
static size_t begin_of(const struct points *p, size_t metric, size_t point)
{
    size_t lo = 0, hi = p->n_rows;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct point_row *r = &p->rows[p->order[mid]];
        if (r->metric < metric || (r->metric == metric && r->point < point))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* A prompt counts once, however many of its answers were scored: launches are not prompts. */
void points_pool(const struct points *p, const char *metric, enum pooled_weight weight, size_t from,
                 size_t n, double *num, double *den, unsigned char *there, unsigned char *has)
{
    size_t which = points_metric(p, metric);
    double *copies = mem_zero(n * p->ids.n, sizeof *copies);
    size_t end = begin_of(p, which, from + n);
    for (size_t k = begin_of(p, which, from); k < end; k++) {
        const struct point_row *r = &p->rows[p->order[k]];
        double w = weight == POOLED_BY_TOKEN  ? r->tokens
                   : weight == POOLED_BY_BYTE ? r->bytes
                                              : 1;
        if (!(w >= 0) || p->v[r->point].random)
            continue;
        size_t i = r->point - from, at = i * p->ids.n + r->id;
        has[i] = there[at] = 1;
        num[at] += r->value * r->copies;
        den[at] += w * r->copies;
        copies[at] += r->copies;
    }
    for (size_t at = 0; at < n * p->ids.n; at++)
        if (there[at]) {
            num[at] /= copies[at];
            den[at] /= copies[at];
        }
    free(copies);
}
