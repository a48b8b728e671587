/* cost.h - the least work of passes, in flops and bytes of memory traffic. A roofline divides this
 * work by the time of the passes.
 *
 *     flops = T (2 P + B) + 4 L H E pairs + R (2 F + 2 V D)
 *     bytes = P in its format, with scales + 4 B + F and the head in their own formats if R > 0
 *             + 2 L K E (read + written) values of the cache
 *
 *     T      rows; R: rows with an answer; L, H, K, E, V, D: kernels/ops.h
 *     P      values of the matrices of all layers, without F
 *     F      values of the last feed-forward block, which only rows with an answer need
 *     B      values of the biases of q, k, v and of routers, and of the vectors of time mixing
 *     pairs  pairs of a row and a key that the row sees
 *
 * A multiplication and an addition are two flops, for integers too. A pass reads each matrix once.
 * Every sequence reads each key and value of the cache that it sees once. Left out: rows of the
 * embedding, norms, activations, products that run once a text (keys and values of latents), and
 * keys and values of a pass without a cache, which need not leave the chip.
 *
 * Looked rows: the first layer computes the whole row, the other layers only its values. Such a row
 * takes (2 (P + F) + B) / L flops, 4 H E flops a pair, and (L - 1) K E 2 D flops for the values
 * (2 D + 1 in place of 2 D with a bias). Where outputs of layers are stored, 2 L D values are read
 * or written for every row.
 *
 * Experts: for flops, P and F count the experts that a row uses. For bytes P and F count no expert;
 * extent.experts counts the experts that are read. Shared experts, routers and first layers without
 * experts count as other matrices. The cost of a looked row is the mean over all layers.
 *
 * Time mixing: each row takes 5 (RWKV 6) or 9 (RWKV 7) L H E^2 flops more. `pairs` then counts only
 * pairs of a row and a latent, and a slot of the cache is the state of one text.
 *
 * Source: Williams, Waterman, Patterson, "Roofline", CACM 52 (2009); 2 P flops a row: Kaplan et al.
 * 2020 (arXiv 2001.08361), 2.1. */
#pragma once

#include "lib/network/network.h"

struct cost {
    double flops, bytes; /* whole numbers, exact to 2^53 */
};
/* The counts of a pass that determine its cost. */
struct extent {
    double rows;          /* rows that are computed, whether the result is used or not */
    double pairs;         /* pairs of a row and a key that the row sees */
    double wanted;        /* rows that the head answers; with CFG the unconditional rows too */
    double compared;      /* rows of `wanted` that are kept from the pass before; only the head
                           * computes them */
    double read, written; /* slots of the cache; 0 without a cache */
    double looked, looked_pairs; /* looked rows (see above); their pairs in the first layer */
    double outputs;       /* positions whose stored outputs are read or written */
    double experts;       /* experts that are read: the sum over layers */
};
/* The costs in a network of a row, a pair, an answer and a slot, and of reading the matrices. */
struct cost_model {
    double row_flops, pair_flops, answer_flops;
    double last_flops; /* the last feed-forward block, for each answer */
    double block_bytes, head_bytes, last_bytes, slot_bytes;
    double look_flops, look_pair_flops, output_bytes; /* of a looked row, its pair, a position */
    double expert_bytes;   /* the matrices of one expert: the mean over all experts */
    double experts;        /* number of experts in all layers */
    double share;          /* share of the experts of a layer that a row uses */
    double last_experts;   /* number of experts in the last layer */
};
/* n must be settled (network.h); it need not be loaded. */
struct cost_model cost_model_of(const struct network *n);
struct cost cost_of(const struct cost_model *model, const struct extent *extent);
/* The cost of `rows` rows of context: 2 D (taps D + 2 L K E) flops a row for pass_context(), 2 D
 * taps D for pass_fuse() of a drafter with config.chains. */
struct cost cost_of_context(const struct network *n, double rows);
void cost_add(struct cost *sum, struct cost more);

/* Add to a pass `rows` rows whose keys are the last of `keys` keys. cost_causal(): a row sees the
 * keys up to its own. cost_full(): a row sees all keys. */
void cost_causal(struct extent *extent, double rows, double keys);
void cost_full(struct extent *extent, double rows, double keys);
/* Adds looked rows (see above), each of which sees all keys in the first layer. */
void cost_look(struct extent *extent, double rows, double keys);
/* Sets extent->experts to the expected number. If each row draws k of n experts, independently of
 * other rows, a layer reads n (1 - (1 - k/n)^rows) experts. In the last layer only the rows with an
 * answer count. diffuse() does not use this model: it counts the experts read (work_experts). */
void cost_experts(const struct cost_model *model, struct extent *extent);
/* *extent += times * *more, member by member. */
void cost_join(struct extent *extent, double times, const struct extent *more);
