/* rng.c - numbers drawn from Philox; see rng.h.
 *
 * A number depends on (seed, place) alone; struct rng counts the places up. Uniform integers reject
 * the uneven tail of 2^64, so they are exact for every n. */
#include "lib/base/rng.h"

#include <math.h>
#include <string.h>

#include "lib/base/hash64.h"
#include "lib/base/philox.h"

uint64_t rng_at(uint64_t seed, uint64_t a, uint64_t b)
{
    return philox_at(seed, a, b);
}

double rng_unit(uint64_t bits)
{
    return philox_unit(bits);
}

uint64_t rng_derive(uint64_t seed, const char *name)
{
    const uint64_t h = hash64_fnv(HASH64_FNV, name, strlen(name));
    return rng_at(seed, h, 0x64657269);
}

uint64_t rng_next(struct rng *rng)
{
    return rng_at(rng->seed, rng->next++, rng->stream);
}

double rng_uniform(struct rng *rng)
{
    return rng_unit(rng_next(rng));
}

uint64_t rng_below(struct rng *rng, uint64_t n)
{
    uint64_t limit = UINT64_MAX - UINT64_MAX % n; /* reject the uneven tail */
    uint64_t x;
    do
        x = rng_next(rng);
    while (x >= limit);
    return x % n;
}

double rng_normal(struct rng *rng)
{
    double u = 1.0 - rng_uniform(rng), v = rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

void rng_shuffle(struct rng *rng, uint32_t *v, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)rng_below(rng, i);
        uint32_t t = v[i - 1];
        v[i - 1] = v[j];
        v[j] = t;
    }
}
