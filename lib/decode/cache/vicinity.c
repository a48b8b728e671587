/* vicinity.c - as dual, but what lies near the block is computed with it.
 *
 * The first passes of a block (vicinity_warmup) compute the whole canvas: what a block commits
 * first changes the rest most. The others compute the block, vicinity_before positions before it
 * and vicinity_after behind it, and read all that is around them as it was, until a refresh. With a
 * warmup of 1 and nothing around the block this is dual.
 * Source: "dInfer", arXiv 2510.08666 (vicinity KV-cache refresh; 16, 16 and 4 in its code).
 */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *v, struct cache_part *part)
{
    const struct cache_params *p = &v->params;
    int32_t len = v->canvas->len;
    int32_t first = v->begin > p->vicinity_before ? v->begin - p->vicinity_before : 0;
    int32_t end = v->end < len - p->vicinity_after ? v->end + p->vicinity_after : len;
    if (cache_refreshes(v, p->vicinity_warmup, &part->passes))
        cache_span(v, part, 0, len);
    else
        cache_span(v, part, first, end);
}

const struct cache_policy cache_vicinity = {
    .name = "vicinity", .kept = 1, .per_block = 1, .describe = describe};
