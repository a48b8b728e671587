/* rng.h - counter-based random numbers: a function of (seed, place), not of earlier draws.
 *
 * Philox4x32-10 (philox.h) maps a 128-bit counter and a 64-bit key to 128 random bits. The
 * counter names the place (sample, step, position, vocabulary id), so a resumed run, another batch
 * size and another back end draw the same numbers.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/linkage.h"

C_BEGIN

/* 64 bits at the place (a, b) of stream `seed`. */
uint64_t rng_at(uint64_t seed, uint64_t a, uint64_t b);

/* A double in [0, 1) with 53 random bits, from 64 random bits. */
double rng_unit(uint64_t bits);

/* A seed for a named part of the work; different names give independent streams. */
uint64_t rng_derive(uint64_t seed, const char *name);

/* A sequence, for code without a natural place. */
struct rng {
    uint64_t seed, stream, next;
};
uint64_t rng_next(struct rng *rng);
double rng_uniform(struct rng *rng);                 /* [0, 1) */
uint64_t rng_below(struct rng *rng, uint64_t n);     /* 0 .. n-1, exactly uniform; n > 0 */
double rng_normal(struct rng *rng);                  /* mean 0, variance 1 (Box-Muller) */
void rng_shuffle(struct rng *rng, uint32_t *v, size_t n);

C_END
