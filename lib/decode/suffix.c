/* suffix.c - see suffix.h. Whether a position exists depends only on the block and the position, so
 * all passes of a block agree. */
#include "lib/decode/suffix.h"

#include <math.h>

#include "lib/base/rng.h"

static double density(const struct suffix *suffix, int32_t distance)
{
    const double root_two_pi = 2.5066282746310002;
    double x = suffix->sigma * distance / suffix->window;
    return suffix->scale / root_two_pi * exp(-x * x / 2);
}

/* A random number in [0, 1) for a position in the passes of the block. */
static double draw(const struct cache_view *view, uint64_t seed, int32_t place)
{
    const struct canvas_state *canvas = view->canvas;
    uint64_t block = rng_at(seed, canvas->key, (uint64_t)canvas->block);
    return rng_unit(rng_at(block, (uint64_t)place, 0));
}

int suffix_keeps(const struct suffix *suffix, const struct cache_view *view, uint64_t seed,
                 int32_t place)
{
    int32_t distance = place - view->end + 1;
    if (distance <= 0 || suffix->kind == SUFFIX_ALL)
        return 1;
    switch (suffix->kind) {
    case SUFFIX_WINDOW: return distance <= suffix->window || place == view->canvas->len - 1;
    case SUFFIX_DROPOUT:
        return distance <= suffix->window && draw(view, seed, place) < density(suffix, distance);
    case SUFFIX_ALL:
    case SUFFIX_GROW:
    case SUFFIX_COUNT: break;
    }
    return 0;
}

/* Keeps the existing positions of a list, in place. Returns their number. */
static size_t left_of(const struct suffix *suffix, const struct cache_view *view, uint64_t seed,
                      int32_t *list, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++)
        if (suffix_keeps(suffix, view, seed, list[i]))
            list[left++] = list[i];
    return left;
}

int32_t suffix_filter(const struct suffix *suffix, const struct cache_view *view, uint64_t seed,
                      int kept, struct cache_part *part)
{
    int32_t behind = 0;
    part->n_rows = left_of(suffix, view, seed, part->row, part->n_rows);
    part->n_keys = left_of(suffix, view, seed, part->key, part->n_keys);
    const int32_t *read = kept ? part->key : part->row;
    for (size_t n = kept ? part->n_keys : part->n_rows; n > 0 && read[n - 1] >= view->end; n--)
        behind++;
    return behind;
}
