/* sparse.c - of the keys and values around a block only those are kept that the block asks for.
 *
 * The first passes of a block, keep_delay and one more, compute the whole canvas and keep nothing
 * but this: each layer scores every position outside the block by the mean over its queries and
 * heads of q k, lets the largest of three neighbours count, and keeps the keys and values of the
 * share `keep` that scores most (rounded up; of equals the lowest). The others compute the block
 * alone and read it and what is kept. So the cache holds that share of a canvas and a block, in
 * every layer, and the keys and values of a whole pass exist for one layer at a time.
 *
 * The authors' default is one pass of delay. Without delay, and with all kept, this is dual.
 * Source: Song et al. 2025, "Sparse-dLLM", arXiv 2508.02558, section 3, and the authors' code
 * (github.com/OpenMOSS/Sparse-dLLM), which rounds the share down.
 */
#include "lib/decode/cache/cache.h"

/* Kept slots, then those of the block. */
static size_t slots(const struct cache_params *p, size_t len, size_t block_length)
{
    return cache_share(p->keep, len - block_length) + block_length;
}

static void describe(const struct cache_view *v, struct cache_part *part)
{
    const struct canvas_state *c = v->canvas;
    const struct cache_params *p = &v->params;
    int32_t begin = c->prompt + c->block * v->block_length, end = begin + v->block_length;
    int32_t kept = (int32_t)cache_share(p->keep, (size_t)(c->len - v->block_length));
    int32_t before = kept < begin ? kept : begin;
    if (c->step <= p->keep_delay) {
        part->sifts = 1;
        part->n_rows = cache_list(part->row, 0, c->len);
        part->first = (size_t)begin;
        part->n = (size_t)v->block_length;
        part->take = (size_t)kept;
        part->passes = (size_t)(p->keep_delay - c->step) + 1;
        return;
    }
    part->n_rows = cache_list(part->row, begin, end);
    part->shift = kept - begin;
    /* When all are kept, in the order of their positions. */
    size_t n = cache_list(part->key, 0, before);
    n += cache_list(part->key + n, kept, kept + v->block_length);
    part->n_keys = n + cache_list(part->key + n, before, kept);
    part->passes = SIZE_MAX;
}

const struct cache_policy cache_sparse = {.name = "sparse",
                                          .kept = 1,
                                          .per_block = 1,
                                          .mask = MASK_FULL,
                                          .slots = slots,
                                          .describe = describe};
