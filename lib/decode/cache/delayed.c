/* delayed.c - the keys and values of a token are kept from the pass after the one that committed
 * it: that is when they have changed most.
 *
 * Each block begins anew: its first two passes compute the whole canvas, for the tokens that the
 * first commits are kept as the second makes them. A later pass computes the masks of the whole
 * canvas and the tokens that the pass before made final, and reads what is kept of all others;
 * each delayed_refresh-th pass of a block computes everything. Which rows these are is known when
 * the pass before is over, so each pass is described by itself.
 * Source: Ma et al. 2025, "dKV-Cache", arXiv 2505.15781 (dKV-Cache-Decode), and the authors' code
 * (github.com/horseee/dKV-Cache; on LLaDA each 8th pass is whole).
 */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *v, struct cache_part *part)
{
    int32_t every = v->params.delayed_refresh, step = v->canvas->step;
    int all = step < 2 || (every && step % every == 0);
    cache_span(v, part, 0, 0);
    for (int32_t p = 0; p < v->canvas->len; p++)
        if (all || v->token[p] == v->mask || cache_stale(v, p))
            part->row[part->n_rows++] = p;
    part->passes = 1;
}

const struct cache_policy cache_delayed = {
    .name = "delayed", .kept = 1, .fleeting = 1, .describe = describe};
