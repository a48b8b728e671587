/* prune.h - structured pruning: removes heads, and hidden units of the feed-forward. The result is
 * a smaller network of the same family.
 *
 * Removing a query head removes its rows of W_q and of the bias of q, and its columns of W_o.
 * Removing a key head removes its rows of W_k, W_v and their biases, and all query heads that read
 * it. Hidden unit j is row j of W_gate and W_up, and column j of W_down.
 *
 * config.json has one head count and one FFN width for all layers. So every layer loses the same
 * number of heads and units. Each layer chooses them by its own scores. */
#pragma once

#include "lib/checkpoint/checkpoint.h"

/* The kept heads and units, ascending, layer after layer. */
struct prune {
    struct config config; /* of the smaller network: heads H', kv_heads K', ffn F' */
    size_t *query;        /* [L, H'] query heads */
    size_t *key;          /* [L, K'] key heads; H'/K' adjacent query heads read each */
    size_t *unit;         /* [L, F'] hidden units */
};

/* Sets prune->config: the sizes after removing at most the share `heads` of the query heads and the
 * share `ffn` of the hidden units. The lists stay NULL.
 * Heads of grouped queries: removes either the same number of query heads from every group, or
 * whole groups (a key head with its query heads), whichever is nearer to the share; on a tie the
 * same number from every group, which keeps all key heads. If every query head has its own key head
 * (LLaDA 8B), whole groups are removed. Hidden units: F' is a multiple of 64, or of the largest
 * power of two up to F / 8 if this is smaller. Both sizes are rounded towards removing less.
 * -1: EXIT_BAD_USAGE: a share is not in [0, 1), or no head or unit would be left; EXIT_BAD_DATA:
 * the network has experts, or heads would be removed from layers that read latents. */
int prune_settle(struct prune *prune, const struct config *config, double heads, double ffn,
                 struct err *e);

/* One number per head and hidden unit of a network. */
struct prune_values {
    double *head; /* [L, H] */
    double *unit; /* [L, F] */
};
struct prune_values prune_values_make(const struct config *config); /* zeros; the caller's */
void prune_values_free(struct prune_values *values);

/* The scores of heads and units; the lowest scores are removed:
 *                 hidden unit j                     query head h
 *     first       j                                 h (the index: a baseline without information)
 *     l2          |up_j| |down_j|                   |V_h| |O_h|
 *     gate        |gate_j| |up_j| |down_j|          |V_h| |O_h| (attention has no gate)
 *     activation  rms(h_j) |down_j|                 rms(|y_h|) |O_h|
 * |.| is the Frobenius norm, rms is over tokens. gate_j and up_j are row j of W_gate and W_up,
 * down_j is column j of W_down, h_j = silu(gate_j x) (up_j x). V_h are the rows of W_v of the key
 * head of head h, y_h is the output of head h, O_h are the columns of W_o that multiply y_h. Norms
 * of weights ignore the size of the inputs. If a few directions of the stream dominate, activation
 * is the better score. Source of l2 and gate: the usual magnitude criterion (Li et al. 2017, arXiv
 * 1608.08710). Source of activation: Sun et al. 2024 (Wanda, arXiv 2306.11695) for single weights,
 * here for whole units as in An et al. 2024 (arXiv 2312.11983). */
enum prune_score { PRUNE_FIRST, PRUNE_L2, PRUNE_GATE, PRUNE_ACTIVATION };
#define PRUNE_SCORES "first|l2|gate|activation"
enum prune_score prune_score_named(const char *name); /* one of PRUNE_SCORES */
/* *out = the scores. activity: used only for PRUNE_ACTIVATION; head: mean over tokens of |y_h|^2,
 * unit: mean over tokens of h_j^2. -1 (EXIT_BAD_DATA): a score is not finite. */
int prune_scores(const struct checkpoint *model, enum prune_score how,
                 const struct prune_values *activity, const struct prune_values *out,
                 struct err *e);

/* Fills the lists for the sizes in prune->config. Each layer keeps its best hidden units and key
 * heads, and each kept group its best query heads; on a tie the lowest index is kept. The score of
 * a key head is the sum of the squared scores of its query heads. config: before pruning. */
void prune_choose(struct prune *prune, const struct config *config,
                  const struct prune_values *score);
void prune_free(struct prune *prune);

/* The kept part of a tensor: a list of rows, or a list of columns; both NULL: the whole tensor. An
 * entry stands for `unit` adjacent rows or columns. */
struct prune_cut {
    const size_t *rows, *cols;
    size_t unit;
};
struct prune_cut prune_cut_of(const struct prune *prune, enum role role, size_t layer);
/* With list = cut.rows: the row of the source that becomes row i. With list = cut.cols: the column
 * of the source that becomes column i. */
size_t prune_place(const size_t *list, size_t unit, size_t i);
