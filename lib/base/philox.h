/* philox.h - the random generator Philox4x32-10 for host and device; rng.h is built on it.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11. */
#pragma once

#include <stdint.h>

#include "lib/base/host_device.h"

/* The block function: out[4] = Philox4x32-10(counter[4], key[2]). */
HOST_DEVICE void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < 10; i++) {
        uint64_t low = (uint64_t)0xD2511F53u * c0, high = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(high >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)high;
        c2 = (uint32_t)(low >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)low;
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* 64 bits at the place (low, high) of stream `seed`, as rng_at() returns. */
HOST_DEVICE uint64_t philox_at(uint64_t seed, uint64_t low, uint64_t high)
{
    const uint32_t counter[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                                 (uint32_t)(high >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    philox(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

/* A double in [0, 1) with 53 random bits, from 64 random bits, as rng_unit() returns. */
HOST_DEVICE double philox_unit(uint64_t bits)
{
    return (double)(bits >> 11) * (1.0 / 9007199254740992.0);
}
