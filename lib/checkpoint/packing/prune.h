/* prune.h - structured pruning: removes heads and hidden units of the feed-forward parts. The
 * result is a smaller network of the same family.
 *
 * A query head is removed from W_q (rows), its bias, and W_o (columns). A key head is removed with
 * all query heads that read it, also from W_k, W_v and their biases. Hidden unit j is row j of
 * W_gate and W_up and column j of W_down.
 *
 * config.json has one head count and one FFN width for all layers. So every layer loses the same
 * number, and each layer chooses by its own scores; layers share no budget. */
#pragma once

#include "lib/checkpoint/checkpoint.h"

/* The kept heads and units, ascending, layer after layer. */
struct prune {
    struct config config; /* of the smaller network: heads H', kv_heads K', ffn F' */
    size_t *query;        /* [L, H'] query heads */
    size_t *key;          /* [L, K'] key heads; H'/K' adjacent query heads read each */
    size_t *unit;         /* [L, F'] hidden units */
};

/* Sizes after removing at most these shares of the query heads and of the hidden units.
 * Heads, with grouped queries: either the same number of query heads from every group, or whole
 * groups (a key head with its query heads); the one nearer to the share, on a tie the first, which
 * keeps all key heads. If every query head has its own key head (LLaDA 8B), pairs are removed.
 * Hidden units: F' is a multiple of 64, or of the largest power of two up to F / 8. Both are
 * rounded towards removing less. The lists stay NULL. -1 (EXIT_BAD_USAGE): a share is not in [0,
 * 1), or no head or unit would be left; (EXIT_BAD_DATA): heads of a network whose layers read
 * latents. */
int prune_settle(struct prune *prune, const struct config *config, double heads, double ffn,
                 struct err *e);

/* One number per head and hidden unit of a network. */
struct prune_values {
    double *head; /* [L, H] */
    double *unit; /* [L, F] */
};
struct prune_values prune_values_make(const struct config *config); /* zeros; the caller's */
void prune_values_free(struct prune_values *values);

/* The score of a head or a unit; the lowest are removed:
 *     first       its index: a baseline without information
 *     l2          |up_j| |down_j|                   |V_h| |O_h|
 *     gate        |gate_j| |up_j| |down_j|          |V_h| |O_h| (attention has no gate)
 *     activation  rms(h_j) |down_j|                 rms(|y_h|) |O_h|
 * with row j of W_gate and W_up, column j of W_down, h_j = silu(gate_j x) (up_j x), the rows V_h of
 * W_v that head h reads, the columns O_h of W_o that its output y_h meets; Frobenius norms. Norms
 * of weights ignore the size of the inputs: where a few directions of the stream dominate,
 * activation is the better score. Source of l2 and gate: the usual magnitude criterion (Li et al.
 * 2017, arXiv 1608.08710); of activation: Sun et al. 2024 (Wanda, arXiv 2306.11695) for single
 * weights, here for whole units as in An et al. 2024 (arXiv 2312.11983). */
enum prune_score { PRUNE_FIRST, PRUNE_L2, PRUNE_GATE, PRUNE_ACTIVATION };
#define PRUNE_SCORES "first|l2|gate|activation"
enum prune_score prune_score_named(const char *name); /* one of PRUNE_SCORES */
/* *out = scores. activity: mean squares over tokens of y_h (summed over the head) and of h_j; used
 * only for PRUNE_ACTIVATION. -1 (EXIT_BAD_DATA): a score is NaN. */
int prune_scores(const struct checkpoint *model, enum prune_score how,
                 const struct prune_values *activity, const struct prune_values *out,
                 struct err *e);

/* Fills the lists for the sizes in prune: the best of each group and layer, on a tie the lowest
 * index. The score of a key head is the sum of squares over its query heads. */
void prune_choose(struct prune *prune, const struct config *config,
                  const struct prune_values *score);
void prune_free(struct prune *prune);

/* The kept part of the tensor in a role: a list of rows or of columns; both NULL: all. An entry
 * stands for `unit` adjacent rows or columns. */
struct prune_cut {
    const size_t *rows, *cols;
    size_t unit;
};
struct prune_cut prune_cut_of(const struct prune *prune, enum role role, size_t layer);
/* The source row of row i (list cut.rows), or the source column (cut.cols). */
size_t prune_place(const size_t *list, size_t unit, size_t i);
