/* cost.h - the least work of passes: a roofline divides it by their time.
 *
 *     flops = T (2 P + B) + 4 L H E pairs + R (2 F + 2 V D)
 *     bytes = P in its format, with scales + 4 B + F and the head in their own formats if R > 0
 *             + 2 L K E (read + written) values of the cache
 *
 * A looked row: the first layer computes all of the row, the other layers only its values. It
 * takes (2 (P + F) + B) / L flops, 4 H E flops a pair, and (L - 1) K E 2 D flops for the values
 * (2 D + 1 with a bias). Where outputs are stored, 2 L D values are read or written for every row.
 *
 * With experts: for flops, P and F count the experts that a row uses. For bytes they count none;
 * extent.experts counts the experts that are read. Shared experts, routers and first layers without
 * experts count as other matrices; the cost of a looked row is the mean over all layers.
 *
 * With time mixing each row takes 5 (RWKV 6) or 9 (RWKV 7) L H E^2 flops more. Then pairs counts
 * only pairs with latents, and a slot of the cache is the state of one text.
 *
 * P: values of the blocks' matrices without F. F: values of the last feed-forward block; only rows
 * with an answer need it. B: values of the biases of q, k, v and of routers, and of a mixer's
 * vectors, where there are any. A multiplication and an addition are two flops, for integers too.
 * Each matrix is read once a pass, each key and value of the cache once by every sequence that sees
 * it. Left out: rows of the embedding, norms, activations, and keys and values of a pass without a
 * cache, which need not leave the chip. Source: Williams, Waterman, Patterson, "Roofline", CACM 52
 * (2009); 2 P flops a row: Kaplan et al. 2020 (arXiv 2001.08361), 2.1. */
#pragma once

#include "lib/network/network.h"

struct cost {
    double flops, bytes; /* whole numbers, exact to 2^53 */
};
/* A pass in numbers. */
struct extent {
    double rows;          /* computed rows, whether they are used or not */
    double pairs;         /* pairs of a row and a key that it sees */
    double wanted;        /* rows that the head answers; with CFG also their unconditional rows */
    double compared;      /* rows of `wanted` from the pass before; only the head reads them */
    double read, written; /* slots of the cache; 0 without one */
    double looked, looked_pairs; /* looked rows (see above), and their pairs in the first layer */
    double outputs;       /* positions whose stored outputs are read or written */
    double experts;       /* experts that are read: the sum over layers */
};
/* The cost of a row, a pair, an answer, a slot, and of reading the matrices, in a network. */
struct cost_model {
    double row_flops, pair_flops, answer_flops;
    double last_flops; /* of an answer: the last feed-forward block */
    double block_bytes, head_bytes, last_bytes, slot_bytes;
    double look_flops, look_pair_flops, output_bytes;
    double expert_bytes;   /* the matrices of an expert; of several formats their mean */
    double experts;        /* in all layers */
    double share;          /* of the experts, those that a row uses */
    double last_experts;   /* of the experts, those of the last layer */
};
/* For a settled network (network.h), loaded or not. */
struct cost_model cost_model_of(const struct network *n);
struct cost cost_of(const struct cost_model *model, const struct extent *extent);
/* The cost of `rows` rows of context (pass_context): 2 D (taps D + 2 L K E) flops a row. */
struct cost cost_of_context(const struct network *n, double rows);
void cost_add(struct cost *sum, struct cost more);

/* Adds `rows` rows at the end of `keys` keys to a pass: a row sees the keys up to its own (causal)
 * or all of them (full). */
void cost_causal(struct extent *extent, double rows, double keys);
void cost_full(struct extent *extent, double rows, double keys);
/* Adds rows of which only the values are computed and written. */
void cost_look(struct extent *extent, double rows, double keys);
/* Sets extent->experts to the expected number. Each row draws k of n experts, independently of
 * other rows, so a layer reads n (1 - (1 - k/n)^rows). In the last layer only the rows with an
 * answer count. diffuse() counts the experts that were read (work_experts). */
void cost_experts(const struct cost_model *model, struct extent *extent);
/* Adds all of *more, `times` times. */
void cost_join(struct extent *extent, double times, const struct extent *more);
