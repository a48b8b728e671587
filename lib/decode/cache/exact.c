/* exact.c - block-causal models: what is before the block never changes again, so its keys and
 * values are kept for good, and answers are those of no cache at all.
 *
 * A pass computes the blocks of the mask in which the canvas's block lies and reads what is before
 * them. When something before was committed after its keys and values were made, its block of the
 * mask and all behind it are computed once more: at first the prompt, later the block before.
 * Invariant: what lies before the computed rows was computed when all that it sees was final.
 * Source: Arriola et al. 2025, "Block Diffusion", arXiv 2503.09573, section 3; Wu et al. 2025,
 * "Fast-dLLM v2", arXiv 2509.26328 (block-level cache).
 */
#include "lib/decode/cache/cache.h"

#include <assert.h>

static void describe(const struct cache_view *v, struct cache_part *part)
{
    assert(v->mask_block > 0);
    int32_t m = v->mask_block, len = v->canvas->len, now = v->begin - v->begin % m, first = 0;
    int32_t end = (v->end - 1) / m < (len - 1) / m ? ((v->end - 1) / m + 1) * m : len;
    while (first < now && v->token[first] != v->mask && !cache_stale(v, first))
        first++;
    first -= first % m;
    part->n_rows = cache_list(part->row, first, end);
    part->n_keys = cache_list(part->key, 0, end);
    part->passes = first < now ? 1 : SIZE_MAX;
}

const struct cache_policy cache_exact = {
    .name = "exact", .kept = 1, .per_block = 1, .causal = 1, .describe = describe};
