/* points-pool.c - see points.h: the qualities of points, prompt by prompt. A prompt counts once,
 * however many answers to it were scored, so that launches are never taken for prompts. */
#include "lib/analysis/points.h"

#include <stdlib.h>

#include "lib/base/mem.h"

int points_is_binary(const struct points *p, const char *metric)
{
    size_t i = points_metric(p, metric);
    return i < p->n_metrics && p->binary[i];
}

void points_pool(const struct points *p, const char *metric, enum points_weight weight, size_t from,
                 size_t n, double *num, double *den, unsigned char *there, unsigned char *has)
{
    size_t which = points_metric(p, metric);
    double *copies = mem_zero(n * p->ids.n, sizeof *copies);
    for (size_t k = 0; k < p->n_rows; k++) {
        const struct point_row *r = &p->rows[k];
        double w = weight == POINTS_BY_TOKEN  ? r->tokens
                   : weight == POINTS_BY_BYTE ? r->bytes
                                              : 1;
        if (r->metric != which || r->point < from || r->point >= from + n || !(w >= 0) ||
            p->v[r->point].random)
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
