/* experts.h - a mixture of experts in place of the feed-forward of a layer: for each row a router
 * chooses some of n gated products (experts), and their weighted outputs are added.
 *
 *     p = softmax(Wr x)                        of all n experts, in fp32
 *     S = the `used` experts with the largest p; among equals the lowest number
 *     y += sum_{e in S} p_e Wdown_e (silu(Wgate_e x) * (Wup_e x)),    e ascending
 *
 * p is not divided by its sum over S. If there is a bias b, the router has this formula instead:
 *
 *     s = sigmoid(Wr x)                        in fp32; experts are in groups of n / groups
 *     G = the `groups_used` groups with the largest sum of their two largest s + b
 *     S = the `used` experts of G with the largest s + b
 *     p_e = scale s_e / (sum of s over S + 1e-20);  scale s_e if `used` is 1
 *
 * Among equal groups the lowest number is chosen. Rows are sorted by expert once, and each expert
 * multiplies only the rows that chose it, so weights of experts that no row chose are not read.
 * Source: Shazeer et al. 2017 (arXiv 1701.06538); modeling_lladamoe.py and modeling_llada2_moe.py
 * of inclusionAI (families/llada_moe.c, families/llada2.c); DeepSeek-V3 (arXiv 2412.19437),
 * 2.1.2. */
#pragma once

#include "kernels/ops.h"

enum { EXPERTS_MOST = 512, EXPERTS_USED_MOST = 32, EXPERTS_GROUPS_MOST = 32, EXPERTS_PARTS = 3 };

/* Operands of ops.experts. All matrices of one part (gate, up or down) have one shape and dtype, so
 * one layout in memory. */
struct experts {
    const act *x;             /* [T, D], normalized rows */
    const struct mat *router; /* [n, D], F32: x is not rounded, sums are fp32 */
    const struct mat *gate, *up, *down; /* n matrices each, all of one dtype: [F, D], [F, D], [D,
                                         * F] */
    const void *data;         /* [3 n] addresses of the data of gate[n], up[n] and down[n], for a
                               * device; memory of the back end */
    size_t n, used;           /* used <= n <= EXPERTS_MOST, used <= EXPERTS_USED_MOST */
    const float *bias;        /* [n] b, memory of the back end; NULL: the router with softmax */
    size_t groups, groups_used; /* used only with a bias: at most EXPERTS_GROUPS_MOST groups of 2
                                 * experts or more; used <= groups_used n / groups */
    float scale;
    act *y;                   /* [T, D], rounded to `act` once after the sum */
    int32_t *active;          /* [1], memory of the back end: the number of experts with at least
                               * one row is added to it. A back end that takes many rows in pieces
                               * adds the number for each piece */
};
