/* prefix.c - keeps the keys and values before the block while it is filled.
 *
 * The first pass of a block computes the whole canvas, commits like any other pass, and stores the
 * keys and values of every position. The other passes compute the block and everything after it,
 * and read the stored keys and values before it, until a refresh.
 * Source: Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618, section 3.2 (prefix cache); the refresh
 * within a block: "dInfer", arXiv 2510.08666. */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *view, struct cache_part *part)
{
    cache_span(view, part, cache_refreshes(view, 1, &part->passes) ? 0 : view->begin,
               view->canvas->len);
}

const struct cache_policy cache_prefix = {
    .name = "prefix", .kept = 1, .per_block = 1, .describe = describe};
