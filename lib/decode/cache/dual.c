/* dual.c - keeps the keys and values before and after the block while it is filled.
 *
 * The first pass of a block computes the whole canvas, commits like any other pass, and stores the
 * keys and values of every position. The other passes compute only the block and read the stored
 * keys and values around it, until a refresh.
 * Source: Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618, section 3.2 (dual cache); the refresh
 * within a block: "dInfer", arXiv 2510.08666. */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *view, struct cache_part *part)
{
    if (cache_refreshes(view, 1, &part->passes))
        cache_span(view, part, 0, view->canvas->len);
    else
        cache_span(view, part, view->begin, view->end);
}

const struct cache_policy cache_dual = {
    .name = "dual", .kept = 1, .per_block = 1, .describe = describe};
