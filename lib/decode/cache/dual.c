/* dual.c - the keys and values before and after the block are kept while it is filled.
 *
 * The first pass of a block computes the whole canvas, commits like any other, and leaves the keys
 * and values of every position in its slot. The others compute the block alone and read all that
 * is around it as it was. Queries of such a pass: the length of a block.
 * Source: Wu et al. 2025, "Fast-dLLM", arXiv 2505.22618, section 3.2 (dual cache).
 */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *v, struct cache_part *part)
{
    const struct canvas_state *c = v->canvas;
    int32_t block = c->prompt + c->block * v->block_length;
    part->n_rows = c->step ? cache_list(part->row, block, block + v->block_length)
                           : cache_list(part->row, 0, c->len);
    part->n_keys = cache_list(part->key, 0, c->len);
    part->passes = c->step ? SIZE_MAX : 1;
}

const struct cache_policy cache_dual = {
    .name = "dual", .kept = 1, .per_block = 1, .mask = MASK_FULL, .describe = describe};
