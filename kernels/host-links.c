/* host-links.c - links.h on the host, for ref and cpu. Threads divide the rows. The scores of a row
 * are computed twice, once for the sum of their exponentials, so that no scratch is needed; sums
 * are doubles in ascending order. */
#include "kernels/links.h"

#include <math.h>

#include "kernels/host.h"

static double score(const struct links *l, size_t t, size_t h, size_t k)
{
    const size_t E = l->head_dim, at = (k * l->kv_heads + h / (l->heads / l->kv_heads)) * E;
    const float *q = (const float *)l->q + (t * l->heads + h) * E;
    double dot = 0;
    for (size_t e = 0; e < E; e++)
        dot += (double)q[e] * host_value(l->kv.k, l->kv.dtype, at + e);
    return dot / sqrt((double)E);
}

static void add_head(const struct links *l, const struct attn_seq *s, size_t t, size_t h)
{
    const size_t first = (size_t)s->row_begin, n = (size_t)s->rows;
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        const double x = score(l, t, h, first + j), more = fmax(max, x);
        sum = sum * exp(max - more) + exp(x - more);
        max = more;
    }
    for (size_t j = 0; j < n; j++)
        l->map[t * l->stride + j] += (float)(l->share / (double)l->heads *
                                             exp(score(l, t, h, first + j) - max) / sum);
}

static void link_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct links *l = ctx;
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        const struct attn_seq *s = links_seq(l, t);
        for (size_t j = 0; j < (size_t)s->rows && !l->add; j++)
            l->map[t * l->stride + j] = 0;
        for (size_t h = 0; h < l->heads; h++)
            add_head(l, s, t, h);
    }
}

static void average_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct links *l = ctx;
    (void)worker;
    for (size_t t = begin; t < end; t++) {
        const struct attn_seq *s = links_seq(l, t);
        const size_t first = (size_t)s->row_begin, n = (size_t)s->rows;
        double sum = 0;
        for (size_t row = first; row < first + n; row++)
            sum += l->map[row * l->stride + t - first];
        l->mean[t] = (float)(sum / (double)n);
    }
}

void host_links(struct backend *b, const struct links *l)
{
    pool_run(b->pool, l->T, 1, link_rows, (void *)(uintptr_t)l);
    if (l->mean)
        pool_run(b->pool, l->T, 64, average_rows, (void *)(uintptr_t)l);
}
