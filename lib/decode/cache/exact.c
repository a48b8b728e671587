/* exact.c - for block-causal models: positions before the block never change again, so their keys
 * and values are kept, and answers equal those without a cache.
 *
 * A pass computes the blocks of the mask that contain the block of the canvas, and reads the keys
 * and values before them. If a position before these blocks was committed after its keys and values
 * were computed, its block of the mask and all later blocks are computed again: at first the
 * prompt, later the block before. A pass that seeds a block computes only blocks before that
 * block. Invariant: positions before the computed rows were computed when everything that they see
 * was final. Source: Arriola et al. 2025, "Block Diffusion", arXiv 2503.09573, section 3; Wu et al.
 * 2025, "Fast-dLLM v2", arXiv 2509.26328 (block-level cache). */
#include "lib/decode/cache/cache.h"

#include <assert.h>

/* Returns the first position of the block of the mask that holds position p. */
static int32_t start_of(const struct cache_view *view, int32_t p)
{
    int32_t start = p - (p + view->offset) % view->mask_block;
    return p >= view->joined && start > 0 ? start : 0;
}

static int32_t end_of(const struct cache_view *view, int32_t p)
{
    int32_t end = p - (p + view->offset) % view->mask_block + view->mask_block;
    return end < view->canvas->len ? end : view->canvas->len;
}

static void describe(const struct cache_view *view, struct cache_part *part)
{
    assert(view->mask_block > 0);
    int32_t now = start_of(view, view->begin),
            end = view->seeds ? now : end_of(view, view->end - 1), first = 0;
    while (first < now && view->token[first] != view->mask && !cache_stale(view, first))
        first++;
    first = start_of(view, first < end ? first : end - 1);
    part->n_rows = cache_list(part->row, first, end);
    part->n_keys = cache_list(part->key, 0, end);
    part->passes = first < now || view->seeds ? 1 : SIZE_MAX;
}

const struct cache_policy cache_exact = {
    .name = "exact", .kept = 1, .per_block = 1, .causal = 1, .describe = describe};
