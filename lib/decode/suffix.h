/* suffix.h - which masks behind the block exist for a pass. A filter over what a cache policy
 * named: positions that are left out are neither computed nor read; the others keep their true
 * positions. It is the same in all passes of a block.
 *
 *     all      every slot: the official sampler
 *     window   the next `window` slots, and the last one of the canvas, which says how long it is
 *     dropout  of the next `window` slots that at distance d = 1, 2, ... with probability
 *              min(1, scale / sqrt(2 pi) exp(-(sigma d / window)^2 / 2)); draws of the block anew
 *     grow     none: the canvas ends with the block, and grows by a block at a time until its text
 *              has ended or gen_length is there
 *
 * Source: window: "Streaming-dLLM", arXiv 2601.17917; dropout: "DPad", arXiv 2508.14148 (256, 4 and
 * 2 in its code).
 */
#ifndef DECODE_SUFFIX_H
#define DECODE_SUFFIX_H

#include "lib/decode/cache/cache.h"

struct suffix {
    enum suffix_kind kind;
    int32_t window;      /* slots */
    double sigma, scale; /* where the window ends, in standard deviations; of the density */
};
/* 1: position p of a canvas exists while the block of the view is filled. seed: of the draws, which
 * depend on the canvas's key, its block and p beside. */
int suffix_keeps(const struct suffix *s, const struct cache_view *v, uint64_t seed, int32_t p);
/* Leaves in both lists of *part what exists. Returns how many positions behind the block are read;
 * kept 0: the rows read rows. */
int32_t suffix_filter(const struct suffix *s, const struct cache_view *v, uint64_t seed, int kept,
                      struct cache_part *part);

#endif
