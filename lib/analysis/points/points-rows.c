/* points-rows.c - the values of a table of points, prompt by prompt; see points.h. There may be
 * millions of values. They stay where they were stored; their order is a list of indices, made by a
 * counting sort. */
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

typedef size_t place_fn(const struct point_row *r);

static size_t id_of(const struct point_row *r)
{
    return r->id;
}

static size_t point_of(const struct point_row *r)
{
    return r->point;
}

static size_t metric_of(const struct point_row *r)
{
    return r->metric;
}

/* Stable counting sort of the order by a place below `places`. other: [n_rows]. */
static void sort_by(struct points *p, place_fn *place, size_t places, uint32_t **other)
{
    uint32_t *from = p->order, *to = *other;
    size_t *next = mem_zero(places + 1, sizeof *next);
    for (size_t i = 0; i < p->n_rows; i++)
        next[place(&p->rows[i]) + 1]++;
    for (size_t i = 1; i < places; i++)
        next[i] += next[i - 1];
    for (size_t i = 0; i < p->n_rows; i++)
        to[next[place(&p->rows[from[i]])]++] = from[i];
    free(next);
    p->order = to;
    *other = from;
}

static int is_together(const struct point_row *a, const struct point_row *b)
{
    return a->metric == b->metric && a->point == b->point && a->id == b->id;
}

static int by_number(double a, double b) /* NaN first */
{
    return isnan(a) || isnan(b) ? !isnan(a) - !isnan(b) : (a > b) - (a < b);
}

static int by_value(const void *a, const void *b, void *rows)
{
    const struct point_row *x = (struct point_row *)rows + *(const uint32_t *)a;
    const struct point_row *y = (struct point_row *)rows + *(const uint32_t *)b;
    int o = by_number(x->value, y->value);
    return o ? o : by_number(x->tokens, y->tokens);
}

/* Sorts rows of one prompt (other seeds) by value, so that their sum is always the same. */
void points_order(struct points *p)
{
    uint32_t *other = mem_zero(p->n_rows, sizeof *other);
    p->order = mem_zero(p->n_rows, sizeof *p->order);
    for (size_t i = 0; i < p->n_rows; i++)
        p->order[i] = (uint32_t)i;
    sort_by(p, id_of, p->ids.n, &other);
    sort_by(p, point_of, p->n, &other);
    sort_by(p, metric_of, p->n_metrics, &other);
    free(other);
    for (size_t i = 0, end; i < p->n_rows; i = end) {
        end = i + 1;
        while (end < p->n_rows && is_together(&p->rows[p->order[i]], &p->rows[p->order[end]]))
            end++;
        if (end > i + 1)
            qsort_r(p->order + i, end - i, sizeof *p->order, by_value, p->rows);
    }
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
