/* estimate.h - the memory that a network needs, computed from its config and precision alone.
 *
 *     weights      network_expected_bytes: resident weights, and the slots for offloaded layers
 *     kv           2 L S K E values of the cache's dtype; of offloaded layers only two count
 *                  (offload.h); with stored outputs A 2 L S D more
 *     activations  A [T (D + 2HE) + N F + R D], 4 T E of the rotation, answers, index arrays, and
 *                  the scratch of the operation that needs most; N: rows of a row tile, or T.
 *                  More: without a cache A 2 T K E; with CFG A R D; with logits 4 R V; with chosen
 *                  rows A T D; with experts A N D; with sifting 2 T K E of the cache's dtype;
 *                  unfused A N F. Except on ref, scratch holds 4 h T S with all scores of h heads,
 *                  4 R V with a dense head, 8 R V where rows also have unconditional rows. A = 4,
 *                  or 2 where activations are bf16
 *
 * F is that of the widest expert.
 *
 * With time mixing kv is 4 L (H E^2 + D) a text, and activations also hold its mixtures and
 * projections: 4 T (6 D + 5 R + 4 HE) for RWKV 6, 4 T (7 D + R + 8 HE) for RWKV 7.
 *
 * Weights and cache are rounded up to 64 bytes, as memory is handed out; every array of the
 * activations to 256. */
#pragma once

#include "lib/network/work.h"

struct memory_estimate {
    size_t weights, kv, activations; /* bytes */
    size_t logits;   /* part of the activations: rows and answers of the head, and logits if asked
                      * for */
    size_t reserved; /* everything in host memory, each block in whole pages */
    size_t outside, outside_kv; /* offloaded bytes that a pass reads; outside_kv: those of keys and
                                 * values */
};
size_t estimate_bytes(const struct memory_estimate *estimate); /* weights, kv and activations */
/* The sum for two networks loaded at once. */
struct memory_estimate estimate_sum(const struct memory_estimate *a,
                                    const struct memory_estimate *b);
/* For passes of that size, with a cache of `kv_slots` (0: none). The arguments are those of
 * work_make and kv_make. */
struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots);
