/* host.h - what the back ends that compute in host memory (ref, cpu) share: blocks that know their
 * size, and the bf16 format. */
#ifndef KERNELS_HOST_H
#define KERNELS_HOST_H

#include <stdint.h>
#include <string.h>

#include "kernels/ops.h"

/* Cleared, 64-byte aligned, counted. NULL beyond the cap or when the machine has no more. */
void *host_alloc(struct backend *b, size_t bytes, enum memory_kind kind);
void host_free(struct backend *b, void *p); /* NULL is fine */

/* bf16 is the upper half of a float; rounding is to nearest, ties to even, NaN stays NaN. */
static inline uint16_t bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float bf16_float(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

#endif
