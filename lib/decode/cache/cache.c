/* cache.c - the table of the policies, from the rows of cache.h, and what they share. A policy is
 * asked on the host, once a description and canvas, so it may be plain C over lists: nothing of it
 * runs between two passes. */
#include "lib/decode/cache/cache.h"

#include <math.h>

#define CACHE_ADDRESS(ENUM, name) &cache_##name,
const struct cache_policy *const cache_policies[] = {CACHE_POLICIES(CACHE_ADDRESS)};

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
