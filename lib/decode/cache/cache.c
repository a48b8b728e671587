/* cache.c - the table of the policies, from the rows of cache.h, and what they share. A policy is
 * asked on the host, once a description and canvas, so it may be plain C over lists: nothing of it
 * runs between two passes. */
#include "lib/decode/cache/cache.h"

#define CACHE_ADDRESS(ENUM, name) &cache_##name,
const struct cache_policy *const cache_policies[] = {CACHE_POLICIES(CACHE_ADDRESS)};

#define CACHE_USUAL(name, type, policies, least, most, standard, unit, meaning) .name = standard,
const struct cache_params cache_usual = {CACHE_PARAMETERS(CACHE_USUAL)};

size_t cache_list(int32_t *list, int32_t first, int32_t end)
{
    for (int32_t p = first; p < end; p++)
        list[p - first] = p;
    return (size_t)(end - first);
}

void cache_span(const struct cache_view *v, struct cache_part *part, int32_t first, int32_t end)
{
    part->n_rows = cache_list(part->row, first, end);
    part->n_keys = cache_list(part->key, 0, v->canvas->len);
}

int cache_refreshes(const struct cache_view *v, int32_t whole, size_t *passes)
{
    int32_t step = v->canvas->step, every = v->params.refresh;
    int32_t since = every ? step % every : step;
    int fresh = step < whole || since == 0;
    *passes = step < whole ? (size_t)(whole - step)
              : fresh      ? 1
              : every      ? (size_t)(every - since)
                           : SIZE_MAX;
    return fresh;
}

int cache_stale(const struct cache_view *v, int32_t p)
{
    return v->cached[p] != v->token[p];
}
