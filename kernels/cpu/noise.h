/* noise.h - finds the ids that may still have the best score logit + T * Gumbel noise, LANES ids at
 * a time. The noise of all other ids need not be computed. */
#pragma once

#include <math.h>

#include "kernels/cpu/level.h"

/* The state of Philox: four words. Each word is the lower half of its 64-bit lanes; the upper
 * halves are never read. */
struct philox {
    vecw c0, c1, c2, c3;
};

INLINE void philox_round(struct philox *philox, uint32_t k0, uint32_t k1)
{
    vecw a = mul_low(philox->c0, 0xD2511F53u - (vecw){0}),
         b = mul_low(philox->c2, 0xCD9E8D57u - (vecw){0});
    philox->c0 = b >> 32 ^ philox->c1 ^ k0;
    philox->c2 = a >> 32 ^ philox->c3 ^ k1;
    philox->c1 = b;
    philox->c3 = a;
}

/* The lanes first, first + 1, ... */
INLINE vecu count_from(uint32_t first)
{
    static const uint32_t lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load_bits(lanes) + first;
}

/* The upper 32 bits of rng_at(seed, low, b) of lib/base/rng.c, for each lane of b. */
INLINE vecu rng_lanes(uint64_t seed, uint64_t low, vecu b)
{
    struct philox even = {low - (vecw){0}, (low >> 32) - (vecw){0}, (vecw)b, {0}}, odd = even;
    odd.c2 >>= 32;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < 10; i++) {
        philox_round(&even, k0, k1);
        philox_round(&odd, k0, k1);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (vecu)((even.c1 & 0xffffffffu) | odd.c1 << 32);
}

/* A lower bar for scores l + T * noise: an id whose score is certainly below it is skipped. */
struct bar {
    float best, per_t, margin;
};

INLINE struct bar bar_at(double best, double temperature)
{
    /* the margin covers four roundings of `best` to float, and the errors of exp and of its
     * argument */
    double margin = 1e-3 + 0x1p-22 * fabs(best) / temperature;
    return (struct bar){(float)best, (float)(1 / temperature), (float)margin};
}

/* All ones in lanes where l - T log(-log u) > best is possible. h: the upper 32 bits of the random
 * bits that give u. The condition is -log u < e^((l - best) / T) = a, and -log u >= 1 - u >=
 * (2^32 - 1 - h) / 2^32. The term 1e-30 of `a` lets the largest h pass for any l. */
INLINE veci may_win(const struct bar *bar, vec l, vecu h)
{
    vec a = vexp((l - bar->best) * bar->per_t + bar->margin) + 1e-30f;
    return __builtin_convertvector(~h, vec) * 0x1p-32f < a;
}
