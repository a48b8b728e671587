/* prune.h - structured pruning: a network without some of its heads and without some of the hidden
 * units of its feed-forward parts, which is a smaller network of the same family.
 *
 * What goes is cut from every tensor that knows it: a query head from W_q (its rows), its bias, and
 * W_o (its columns); a key head, with all query heads that read it, from W_k, W_v and their biases
 * too; hidden unit j is row j of W_gate and of W_up and column j of W_down, together.
 *
 * config.json has one number of heads and one FFN width for all layers, so each layer gives up as
 * many, and chooses which by a score of its own; no budget is shared between layers.
 */
#ifndef CHECKPOINT_PRUNE_H
#define CHECKPOINT_PRUNE_H

#include "lib/checkpoint/checkpoint.h"

/* What is kept, ascending, layer after layer. */
struct prune {
    struct config config; /* of what remains: heads H', kv_heads K', ffn F' */
    size_t *query;        /* [L, H'] query heads */
    size_t *key;          /* [L, K'] key heads; of the query heads H'/K' side by side read each */
    size_t *unit;         /* [L, F'] hidden units */
};

/* Sizes of what remains when at most these shares of the query heads and of the hidden units go.
 * Heads: in a network with grouped queries either as many query heads of every group, or whole
 * groups, a key head with its query heads; whichever comes nearer to the share, and of equals the
 * first, which keeps every key head. Where each query head has a key head of its own (LLaDA 8B)
 * that means whole pairs. Hidden units: F' is a multiple of 64, or of the largest power of two that
 * is at most F / 8. Both are rounded towards removing less. Lists are NULL as yet. -1
 * (EXIT_BAD_USAGE): a share is not in [0, 1), or no head or unit would be left; (EXIT_BAD_DATA)
 * heads of a network whose layers read latents with as many. */
int prune_settle(struct prune *p, const struct config *c, double heads, double ffn, struct err *e);

/* A number for each head and hidden unit of a network. */
struct prune_values {
    double *head; /* [L, H] */
    double *unit; /* [L, F] */
};
struct prune_values prune_values_make(const struct config *c); /* zeros; the caller's */
void prune_values_free(struct prune_values *v);

/* How much a head or a unit matters, by
 *     first       its index: the first go first, as where nothing is known
 *     l2          |up_j| |down_j|                   |V_h| |O_h|
 *     gate        |gate_j| |up_j| |down_j|          |V_h| |O_h| (attention has no gate)
 *     activation  rms(h_j) |down_j|                 rms(|y_h|) |O_h|
 * with row j of W_gate and W_up, column j of W_down, h_j = silu(gate_j x) (up_j x), the rows V_h of
 * W_v that head h reads, the columns O_h of W_o that its output y_h meets; Frobenius norms. Norms
 * of weights alone do not see how large the inputs are: where a few directions of the stream carry
 * most of it, activation is the better score. Source of the first two: the usual magnitude
 * criterion (Li et al. 2017, arXiv 1608.08710); of the third: Sun et al. 2024 (Wanda, arXiv
 * 2306.11695), for single weights, here for whole units as in An et al. 2024 (arXiv 2312.11983). */
enum prune_score { PRUNE_FIRST, PRUNE_L2, PRUNE_GATE, PRUNE_ACTIVATION };
#define PRUNE_SCORES "first|l2|gate|activation"
enum prune_score prune_score_named(const char *name); /* one of PRUNE_SCORES */
/* *out = scores. activity: mean squares of y_h (summed over the head) and of h_j over tokens; read
 * for PRUNE_ACTIVATION alone. -1 (EXIT_BAD_DATA): a score is no number. */
int prune_scores(const struct checkpoint *c, enum prune_score how,
                 const struct prune_values *activity, const struct prune_values *out,
                 struct err *e);

/* Fills the lists of a pruning that is settled: the best of each group and layer, of equals the
 * lowest index; a key head is worth the squares of its query heads together. */
void prune_choose(struct prune *p, const struct config *c, const struct prune_values *score);
void prune_free(struct prune *p);

/* What is kept of the tensor in a role. One of the two lists is NULL, or both: all is kept. An
 * entry stands for `unit` rows or columns side by side. */
struct prune_cut {
    const size_t *rows, *cols;
    size_t unit;
};
struct prune_cut prune_cut_of(const struct prune *p, enum role r, size_t layer);
/* The row of the source that row i is (list cut.rows), or the column (cut.cols). */
size_t prune_place(const size_t *list, size_t unit, size_t i);

#endif
