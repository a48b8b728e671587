/* none.c - every pass computes the whole canvas, and nothing is kept: the official sampler. A
 * description serves until the set of canvases changes.
 * Source: Nie et al. 2025, "Large Language Diffusion Models", algorithms 4 and 5. */
#include "lib/decode/cache/cache.h"

static void describe(const struct cache_view *view, struct cache_part *part)
{
    cache_span(view, part, 0, view->canvas->len);
    part->passes = SIZE_MAX;
}

const struct cache_policy cache_none = {.name = "none", .describe = describe};
