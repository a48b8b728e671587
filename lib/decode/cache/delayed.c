/* delayed.c - keeps the keys and values of a token from the pass after the one that committed it,
 * because they change most between the two.
 *
 * The first two passes of each block compute the whole canvas: tokens committed by the first are
 * kept as the second computes them. A later pass computes the masks of the whole canvas and the
 * tokens committed by the pass before, and reads the kept keys and values of all others. Each
 * delayed_refresh-th pass of a block computes everything. The rows are known only after the pass
 * before, so each pass has its own description. Source: Ma et al. 2025, "dKV-Cache", arXiv
 * 2505.15781 (dKV-Cache-Decode), and the authors' code (github.com/horseee/dKV-Cache; on LLaDA each
 * 8th pass is whole). */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *view, struct cache_part *part)
{
    int32_t every = view->params.delayed_refresh, step = view->canvas->step;
    int all = step < 2 || (every && step % every == 0);
    cache_span(view, part, 0, 0);
    for (int32_t p = 0; p < view->canvas->len; p++)
        if (all || view->token[p] == view->mask || cache_stale(view, p))
            part->row[part->n_rows++] = p;
    part->passes = 1;
}

const struct cache_policy cache_delayed = {
    .name = "delayed", .kept = 1, .fleeting = 1, .describe = describe};
