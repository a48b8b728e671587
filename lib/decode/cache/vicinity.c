/* vicinity.c - as dual, but positions near the block are computed with it.
 *
 * The first vicinity_warmup passes of a block compute the whole canvas, because the first commits
 * of a block change the rest most. The other passes compute the block, vicinity_before positions
 * before it and vicinity_after after it, and read the stored keys and values around them, until a
 * refresh. With a warmup of 1 and no positions around the block this is dual. Source: "dInfer",
 * arXiv 2510.08666 (vicinity KV-cache refresh; its code has 16 positions before, 16 after, and a
 * warmup of 4). */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *view, struct cache_part *part)
{
    const struct cache_params *parameters = &view->params;
    int32_t len = view->canvas->len;
    int32_t first = view->begin > parameters->vicinity_before
                        ? view->begin - parameters->vicinity_before
                        : 0;
    int32_t end = view->end < len - parameters->vicinity_after
                      ? view->end + parameters->vicinity_after
                      : len;
    if (cache_refreshes(view, parameters->vicinity_warmup, &part->passes))
        cache_span(view, part, 0, len);
    else
        cache_span(view, part, first, end);
}

const struct cache_policy cache_vicinity = {
    .name = "vicinity", .kept = 1, .per_block = 1, .describe = describe};
