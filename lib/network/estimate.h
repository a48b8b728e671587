/* estimate.h - the memory that a network needs, computed from its config and precision alone.
 *
 *     weights      network_expected_bytes: what is resident, with the slots of what is not
 *     kv           2 L S K E values of the cache's dtype, L less those of layers outside and of
 *                  those two (offload.h); where outputs are kept A 2 L S D too
 *     activations  A [T (D + 2HE) + N F + R D], 4 T E of the rotation, answers, index arrays, and
 *                  the scratch of the neediest operation, N rows being those of a row tile, or T;
 *                  without a cache A 2 T K E too, with CFG A R D too, with logits 4 R V too, with
 *                  chosen rows A T D too, with sifting 2 T K E of the cache's dtype too, unfused
 *                  A N F too. Scratch holds, but on ref, 4 h T S with scores of h heads at once,
 *                  4 R V with a dense head, 8 R V where rows have twins. A = 4, or 2 where
 *                  activations are bf16
 *
 * With a mixer that recurs kv is 4 L (H E^2 + D) a text, and activations hold its mixtures and
 * projections too, 4 T (6 D + 5 R + 4 HE) for RWKV 6 and 4 T (7 D + R + 8 HE) for 7.
 *
 * Weights and cache are rounded up to 64 bytes, as memory is handed out, every array of the
 * activations to 256.
 */
#ifndef NETWORK_ESTIMATE_H
#define NETWORK_ESTIMATE_H

#include "lib/network/work.h"

struct memory_estimate {
    size_t weights, kv, activations; /* bytes */
    size_t logits;   /* of the activations: rows and answers of the head, logits where asked for */
    size_t reserved; /* all of it in memory of the host, each block in whole pages */
    size_t outside, outside_kv; /* what a pass reads that is outside; of it keys and values */
};
size_t estimate_bytes(const struct memory_estimate *m); /* weights, kv and activations */
/* Of two networks side by side. */
struct memory_estimate estimate_sum(const struct memory_estimate *a,
                                    const struct memory_estimate *b);
/* For passes of that size, with a cache of `kv_slots` (0: none): the arguments of work_make and
 * kv_make. */
struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots);

#endif
