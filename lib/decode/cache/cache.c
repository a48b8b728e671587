/* cache.c - the table of the policies, from the rows of words.h, and their common functions. A
 * policy is asked on the host, once per description and canvas, and never between two passes. So
 * plain C over lists is fast enough. */
#include "lib/decode/cache/cache.h"

#include <math.h>

#define CACHE_ADDRESS(ENUM, name, traits) &cache_##name,
const struct cache_policy *const cache_policies[] = {CACHE_POLICIES(CACHE_ADDRESS)};

#define CACHE_USUAL(name, type, policies, least, most, standard, unit, meaning) .name = standard,
const struct cache_params cache_usual = {CACHE_PARAMETERS(CACHE_USUAL)};

int32_t cache_place(const struct cache_view *view, int32_t p)
{
    return p < view->joined ? 0 : p >= view->open && p < view->open_end ? view->open : p;
}

/* 1: the row of position p sees the key of position k under a block-causal mask. */
static int sees(const struct cache_view *view, int32_t p, int32_t k)
{
    return view->forward ? cache_place(view, k) <= p
                         : (cache_place(view, k) + view->offset) / view->mask_block <=
                            (p + view->offset) / view->mask_block;
}

/* Number of pairs of a row and a key that it sees under a block-causal mask. */
static double pairs_seen(const int32_t *row, size_t rows, const int32_t *key, size_t keys,
                         const struct cache_view *view)
{
    double pairs = 0;
    for (size_t j = 0, seen = 0; j < rows; j++) {
        while (seen < keys && sees(view, row[j], key[seen]))
            seen++;
        pairs += (double)seen;
    }
    return pairs;
}

void cache_extent(const struct cache_policy *policy, const struct cache_part *part,
                  const struct cache_view *view, struct extent *extent)
{
    const int reads = policy->kept && !part->sifts;
    size_t rows = part->take && !part->sifts ? part->take : part->n_rows;
    size_t keys = reads ? part->n_keys : part->n_rows;
    *extent = (struct extent){.read = reads ? (double)keys : 0,
                              .written = (double)(reads ? rows : part->take),
                              .outputs = policy->outputs ? (double)part->n_rows : 0};
    cost_full(extent, (double)rows, (double)keys);
    cost_look(extent, (double)(part->n_rows - rows), (double)keys);
    if (view->mask_block)
        extent->pairs = pairs_seen(part->row, part->n_rows, reads ? part->key : part->row, keys,
                                   view);
}

size_t cache_list(int32_t *list, int32_t first, int32_t end)
{
    for (int32_t p = first; p < end; p++)
        list[p - first] = p;
    return (size_t)(end - first);
}

size_t cache_share(double share, size_t n)
{
    size_t some = (size_t)ceil(share * (double)n);
    return some < n ? some : n;
}

void cache_span(const struct cache_view *view, struct cache_part *part, int32_t first, int32_t end)
{
    part->n_rows = cache_list(part->row, first, end);
    part->n_keys = cache_list(part->key, 0, view->canvas->len);
}

int cache_refreshes(const struct cache_view *view, int32_t whole, size_t *passes)
{
    int32_t step = view->canvas->step, every = view->params.refresh;
    int32_t since = every ? step % every : step;
    int fresh = step < whole || since == 0;
    *passes = step < whole ? (size_t)(whole - step)
              : fresh      ? 1
              : every      ? (size_t)(every - since)
                           : SIZE_MAX;
    return fresh;
}

int cache_stale(const struct cache_view *view, int32_t p)
{
    return view->cached[p] != view->token[p];
}
