/* estimate.h - the memory that a network needs, computed from its config and precision alone, in
 * bytes. Letters of kernels/ops.h, and S: slots of the cache. R: rows with an answer. N: rows of a
 * tile (network.row_tile), or T. F: width of the widest feed-forward block. A: bytes of an
 * activation, 4, or 2 where activations are bf16.
 *
 *     weights      network_expected_bytes(): resident weights, and the slots for offloaded layers
 *     kv           2 L S K E values in the dtype of the cache. All offloaded layers together count
 *                  as two layers at most (offload.h). Stored outputs take A 2 L S D more
 *     activations  A [T (D + 2HE) + N F + R D], 4 T E of the rotation, answers, index arrays, and
 *                  the scratch of the operation that needs most
 *
 * Activations grow with options of the passes (struct work_size):
 *
 *     no cache               A 2 T K E
 *     sifting                2 T K E values in the dtype of the cache
 *     guided (CFG)           A R D
 *     compared               2 A R D
 *     logits                 4 R V
 *     chosen rows            A T D, and 16 T of lists
 *     experts                A N D
 *     unfused                A N F
 *     taps                   A T D for each tap
 *     fed                    A T D (fed + 1)
 *     chained                A 2 T D
 *     scratch, except on ref 4 h T S with all scores of h heads; 4 R V with a dense head, 8 R V if
 *                            its rows also have unconditional rows
 *
 * With time mixing kv is 4 L (H E^2 + D) a text. Activations then also have the mixtures and
 * projections: 4 T (6 D + 5 r + 4 HE) for RWKV 6, 4 T (7 D + r + 8 HE) for RWKV 7, where r is the
 * rank of the low-rank parts.
 *
 * Weights and cache are rounded up to 64 bytes, as the back end rounds blocks. Every array of the
 * activations is rounded up to 256 bytes. */
#pragma once

#include "lib/network/work.h"

struct memory_estimate {
    size_t weights, kv, activations; /* bytes */
    size_t logits;   /* the part of the activations that belongs to the head: rows, answers, and
                      * logits if a pass computes them */
    size_t reserved; /* weights, kv and activations in host memory, each block in whole pages */
    size_t outside, outside_kv; /* offloaded bytes that a pass reads: all; of keys and values */
};
size_t estimate_bytes(const struct memory_estimate *estimate); /* weights + kv + activations */
/* *a + *b, member by member: two networks that are loaded at once. */
struct memory_estimate estimate_sum(const struct memory_estimate *a,
                                    const struct memory_estimate *b);
/* The memory of passes of *size with a cache of kv_slots slots (0: no cache). n must be settled;
 * the arguments are those of work_make() and kv_make(). */
struct memory_estimate estimate_of(const struct network *n, const struct work_size *size,
                                   size_t kv_slots);
