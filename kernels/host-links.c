/* host-links.c - links.h on the host, for ref and cpu. Threads divide the rows. The scores of a row
 * are computed twice (first for the sum of their exponentials, then for the shares), so that no
 * scratch is needed. All sums run in ascending order. They are doubles, except the sum over heads,
 * which is a float in map[]. */
#include "kernels/links.h"

#include <math.h>

#include "kernels/host.h"

static double score(const struct links *links, size_t row, size_t head, size_t k)
{
    const size_t E = links->head_dim,
                 at = (k * links->kv_heads + head / (links->heads / links->kv_heads)) * E;
    const float *query = (const float *)links->q + (row * links->heads + head) * E;
    double dot = 0;
    for (size_t e = 0; e < E; e++)
        dot += (double)query[e] * host_value(links->kv.k, links->kv.dtype, at + e);
    return dot / sqrt((double)E);
}

static void add_head(const struct links *links, const struct attn_seq *sequence, size_t row,
                     size_t head)
{
    const size_t first = (size_t)sequence->row_begin, n = (size_t)sequence->rows;
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        const double x = score(links, row, head, first + j), more = fmax(max, x);
        sum = sum * exp(max - more) + exp(x - more);
        max = more;
    }
    for (size_t j = 0; j < n; j++)
        links->map[row * links->stride + j] +=
            (float)(links->share / (double)links->heads *
                    exp(score(links, row, head, first + j) - max) / sum);
}

static void link_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct links *links = ctx;
    (void)worker;
    for (size_t row = begin; row < end; row++) {
        const struct attn_seq *sequence = links_seq(links, row);
        for (size_t j = 0; j < (size_t)sequence->rows && !links->add; j++)
            links->map[row * links->stride + j] = 0;
        for (size_t head = 0; head < links->heads; head++)
            add_head(links, sequence, row, head);
    }
}

static void average_rows(void *ctx, size_t begin, size_t end, size_t worker)
{
    const struct links *links = ctx;
    (void)worker;
    for (size_t at = begin; at < end; at++) {
        const struct attn_seq *sequence = links_seq(links, at);
        const size_t first = (size_t)sequence->row_begin, n = (size_t)sequence->rows;
        double sum = 0;
        for (size_t row = first; row < first + n; row++)
            sum += links->map[row * links->stride + at - first];
        links->mean[at] = (float)(sum / (double)n);
    }
}

void host_links(struct backend *backend, const struct links *links)
{
    pool_run(backend->pool, links->T, 1, link_rows, (void *)(uintptr_t)links);
    if (links->mean)
        pool_run(backend->pool, links->T, 64, average_rows, (void *)(uintptr_t)links);
}
