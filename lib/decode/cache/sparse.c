/* sparse.c - keeps only the keys and values around a block that the block attends to most.
 *
 * The first keep_delay + 1 passes of a block compute the whole canvas. In them each layer scores
 * every position outside the block by the mean of q k over the queries of the block and the heads,
 * takes the maximum over three neighbours, and keeps the keys and values of the share `keep` with
 * the highest scores (rounded up; ties go to the lowest). The other passes compute only the block
 * and read it and the kept positions. So the cache holds that share of a canvas plus a block in
 * every layer; keys and values of a whole pass exist for one layer at a time.
 *
 * The authors' default is a delay of one pass. Without delay, and with all kept, this is dual.
 * Source: Song et al. 2025, "Sparse-dLLM", arXiv 2508.02558, section 3, and the authors' code
 * (github.com/OpenMOSS/Sparse-dLLM), which rounds the share down. */
#include "lib/decode/cache/cache.h"

/* A canvas has its kept slots, then the slots of the block. */
static size_t slots(const struct cache_params *parameters, size_t len, size_t block_length)
{
    return cache_share(parameters->keep, len - block_length) + block_length;
}

static void describe_whole(const struct cache_view *view, int32_t kept, struct cache_part *part)
{
    part->n_rows = cache_list(part->row, 0, view->canvas->len);
    part->first = (size_t)view->begin;
    part->n = (size_t)(view->end - view->begin);
    part->take = (size_t)kept;
    part->sifts = 1;
    part->passes = (size_t)(view->params.keep_delay - view->canvas->step) + 1;
}

/* The keys are slots of the canvas. If all positions are kept, the keys are in the order of the
 * positions: those before the block, the block, those after it. */
static void describe_block(const struct cache_view *view, int32_t kept, struct cache_part *part)
{
    int32_t before = kept < view->begin ? kept : view->begin, block = view->end - view->begin;
    size_t n = cache_list(part->key, 0, before);
    n += cache_list(part->key + n, kept, kept + block);
    part->n_keys = n + cache_list(part->key + n, before, kept);
    part->n_rows = cache_list(part->row, view->begin, view->end);
    part->shift = kept - view->begin;
    part->passes = SIZE_MAX;
}

static void describe(const struct cache_view *view, struct cache_part *part)
{
    size_t outside = (size_t)(view->canvas->len - (view->end - view->begin));
    int32_t kept = (int32_t)cache_share(view->params.keep, outside);
    (view->canvas->step <= view->params.keep_delay ? describe_whole : describe_block)(view, kept,
                                                                                      part);
}

const struct cache_policy cache_sparse = {
    .name = "sparse", .kept = 1, .per_block = 1, .slots = slots, .describe = describe};
