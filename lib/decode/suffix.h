/* suffix.h - decides which masks after the block a pass includes. The positions that a cache policy
 * names are filtered: positions left out are neither computed nor read; the others keep their true
 * positions. The result is the same in all passes of a block.
 *
 *     all      every slot: the official sampler
 *     window   the next `window` slots, and the last one of the canvas, which shows its length
 *     dropout  each of the next `window` slots, at distance d = 1, 2, ..., with probability
 *              min(1, scale / sqrt(2 pi) exp(-(sigma d / window)^2 / 2)); new draws per block
 *     grow     none: the canvas ends with the block, and grows block by block until its text has
 *              ended or gen_length is reached
 *
 * Source: window: "Streaming-dLLM", arXiv 2601.17917; dropout: "DPad", arXiv 2508.14148 (window
 * 256, sigma 4 and scale 2 in its code). */
#pragma once

#include "lib/decode/cache/cache.h"

struct suffix {
    enum suffix_kind kind;
    int32_t window;      /* slots */
    double sigma, scale; /* end of the window in standard deviations; factor of the density */
};
/* 1: the position of a canvas exists while the block of the view is filled. Draws depend on seed,
 * the key of the canvas, the block and place. */
int suffix_keeps(const struct suffix *suffix, const struct cache_view *view, uint64_t seed,
                 int32_t place);
/* Keeps only existing positions in both lists of *part. Returns the number of positions after the
 * block that are read: among part->key, or with kept 0 (no cache) among part->row. */
int32_t suffix_filter(const struct suffix *suffix, const struct cache_view *view, uint64_t seed,
                      int kept, struct cache_part *part);
